#include "device.h"
#include "machine.h"
#include "trap.h"

/* Moves `node` to the first one. False if there is none. */
static bool find(const char *compatible, struct fdt_node *node)
{
    *node = (struct fdt_node){ 0 };
    while (fdt_next(&machine.fdt, node))
        if (fdt_list_has(&machine.fdt, node, "compatible", compatible))
            return true;
    return false;
}

bool device_is_there(const char *compatible)
{
    struct fdt_node node;
    return find(compatible, &node);
}

struct device device_find(const char *compatible)
{
    struct device device;
    struct fdt_node node;
    uint64_t size;
    if (!find(compatible, &node))
        fail("the device tree has no device `%s`", compatible);
    if (!fdt_reg(&machine.fdt, &node, &device.base, &size) || !fdt_cell(&machine.fdt, &node, "interrupts", 0, &device.source))
        fail("the device tree's node %s has no reg or no interrupts", node.name);
    return device;
}
