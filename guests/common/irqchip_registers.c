#include "irqchip_registers.h"
#include "imsic.h"
#include "machine.h"
#include "trap.h"

#define WIDEST 8

struct irqchip_registers irqchips[MOST_IRQCHIPS];
unsigned irqchip_count;

/* Offsets of the platform-level interrupt controller specification. */
static uint64_t plic_offset(uint64_t r, uint64_t size)
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
        return (r >> 8) % (size - WIDEST);
    }
}

/* Offsets of the AIA's sections 4.5 and 4.8.1. */
static uint64_t aplic_offset(uint64_t r, uint64_t size)
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
        return (r >> 8) % (size - WIDEST);
    }
}

/* Messages: the AIA's section 3.5. The rest of a page is reserved. */
static uint64_t imsic_offset(uint64_t r, uint64_t size)
{
    return r & 7 ? (r >> 8) % (size / IMSIC_FILE_SIZE) * IMSIC_FILE_SIZE + (r >> 32 & 7) : (r >> 8) % (size - WIDEST);
}

static const struct {
    const char *compatible;
    uint64_t (*offset)(uint64_t r, uint64_t size);
} kinds[] = { { "sifive,plic-1.0.0", plic_offset }, { "riscv,aplic", aplic_offset }, { "riscv,imsics", imsic_offset } };

static void find(unsigned kind)
{
    for (struct fdt_node node = { 0 }; fdt_next(&machine.fdt, &node);) {
        if (!fdt_list_has(&machine.fdt, &node, "compatible", kinds[kind].compatible))
            continue;
        struct irqchip_registers found = { .offset = kinds[kind].offset };
        if (irqchip_count == MOST_IRQCHIPS || !fdt_reg(&machine.fdt, &node, &found.base, &found.size))
            fail("the device tree's node %s has no reg, or is one too many", node.name);
        irqchips[irqchip_count++] = found;
    }
}

void irqchips_find(void)
{
    for (unsigned kind = 0; kind < sizeof kinds / sizeof *kinds; kind++)
        find(kind);
    if (irqchip_count == 0)
        fail("the device tree has no interrupt controller");
}

uint64_t irqchip_address(uint64_t r)
{
    const struct irqchip_registers *irqchip = &irqchips[(r >> 40) % irqchip_count];
    uint64_t offset = irqchip->offset(r, irqchip->size);
    return irqchip->base + (r & 0x700000 ? offset & ~3ul : offset);
}
