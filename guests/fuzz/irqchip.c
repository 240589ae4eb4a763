#include "irqchip.h"
#include "machine.h"
#include "random.h"
#include "trap.h"

#define WIDEST 8

struct irqchip irqchip;

void irqchip_find(void)
{
    for (struct fdt_node node = { 0 }; fdt_next(&machine.fdt, &node);) {
        irqchip.is_aplic = fdt_list_has(&machine.fdt, &node, "compatible", "riscv,aplic");
        if (!irqchip.is_aplic && !fdt_list_has(&machine.fdt, &node, "compatible", "sifive,plic-1.0.0"))
            continue;
        if (!fdt_reg(&machine.fdt, &node, &irqchip.base, &irqchip.size))
            fail("the device tree's node %s has no reg", node.name);
        return;
    }
    fail("the device tree has no interrupt controller");
}

/* Offsets of the platform-level interrupt controller specification. */
static uint64_t plic_offset(uint64_t r)
{
    switch (r & 7) {
    case 0:
        return r >> 8 & 0x1ff; /* priorities */
    case 1:
        return 0x1000 + (r >> 8 & 0x7f); /* pending */
    case 2:
    case 3:
        return 0x2000 + (r >> 8 & 0x7f) * 0x80 + (r >> 16 & 0xf); /* enables */
    case 4:
    case 5:
    case 6:
        return 0x200000 + (r >> 8 & 0x7f) * 0x1000 + (r >> 16 & 0xf); /* threshold, claim and completion */
    default:
        return (r >> 8) % (irqchip.size - WIDEST);
    }
}

/* Offsets of the AIA's sections 4.5 and 4.8.1. */
static uint64_t aplic_offset(uint64_t r)
{
    switch (r & 7) {
    case 0:
        return r >> 8 & 0x7f; /* domaincfg, sourcecfg */
    case 1:
    case 2:
        return 0x1c00 + (r >> 8 & 3) * 0x100 + (r >> 16 & 0xf); /* setip, in_clrip, setie, clrie */
    case 3:
        return 0x1cdc + (r >> 8 & 3) * 0x100; /* the same by number */
    case 4:
        return 0x3000 + (r >> 8 & 0x7f); /* genmsi, target */
    case 5:
    case 6:
        return 0x4000 + (r >> 8 & 31) * 32 + (r >> 16 & 31); /* idelivery to claimi */
    default:
        return (r >> 8) % (irqchip.size - WIDEST);
    }
}

uint64_t irqchip_address(struct vcpu *v)
{
    uint64_t r = any(v), offset = irqchip.is_aplic ? aplic_offset(r) : plic_offset(r);
    return irqchip.base + (r & 0x700000 ? offset & ~3ul : offset);
}
