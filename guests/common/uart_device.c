#include "uart_device.h"
#include "machine.h"
#include "trap.h"

struct uart uart_find(void)
{
    struct uart uart;
    uint64_t size;
    for (struct fdt_node node = { 0 }; fdt_next(&machine.fdt, &node);) {
        if (!fdt_list_has(&machine.fdt, &node, "compatible", "ns16550a"))
            continue;
        if (!fdt_reg(&machine.fdt, &node, &uart.base, &size) || !fdt_cell(&machine.fdt, &node, "interrupts", 0, &uart.source))
            fail("the device tree's node %s has no reg or no interrupts", node.name);
        return uart;
    }
    fail("the device tree has no 16550 UART");
}
