#include "device.h"
#include "machine.h"
#include "trap.h"

struct device device_find(const char *compatible)
{
    struct device device;
    uint64_t size;
    for (struct fdt_node node = { 0 }; fdt_next(&machine.fdt, &node);) {
        if (!fdt_list_has(&machine.fdt, &node, "compatible", compatible))
            continue;
        if (!fdt_reg(&machine.fdt, &node, &device.base, &size) || !fdt_cell(&machine.fdt, &node, "interrupts", 0, &device.source))
            fail("the device tree's node %s has no reg or no interrupts", node.name);
        return device;
    }
    fail("the device tree has no device `%s`", compatible);
}
