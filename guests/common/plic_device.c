#include "plic_device.h"
#include "csr.h"
#include "machine.h"
#include "trap.h"

/* Offsets by the RISC-V PLIC specification 1.0.0. */
#define PRIORITY(source)          (4ul * (source))
#define PENDING(source)           (0x1000ul + (source) / 32 * 4)
#define ENABLE(context, source)   (0x2000ul + 0x80ul * (context) + (source) / 32 * 4)
#define THRESHOLD(context)        (0x200000ul + 0x1000ul * (context))
#define CLAIM(context)            (0x200004ul + 0x1000ul * (context))

/* The same by the AIA specification 1.0, table 4.1 and section 4.8.1. */
#define APLIC_SOURCECFG(source)   (4ul * (source))
#define APLIC_SETIP(source)       (0x1c00ul + (source) / 32 * 4)
#define APLIC_SETIENUM            0x1edcul
#define APLIC_CLRIENUM            0x1fdcul
#define APLIC_TARGET(source)      (0x3000ul + 4ul * (source))
#define APLIC_IDELIVERY(hart)     (0x4000ul + 32ul * (hart))
#define APLIC_ITHRESHOLD(hart)    (0x4008ul + 32ul * (hart))
#define APLIC_CLAIMI(hart)        (0x401cul + 32ul * (hart))
#define APLIC_DOMAINCFG           0ul
#define APLIC_INTERRUPT_ENABLE    (1u << 8)
#define APLIC_LEVEL_HIGH          6u
#define APLIC_EDGE_RISING         4u
#define APLIC_HART_SHIFT          18
#define APLIC_SOURCE_SHIFT        16

static volatile uint32_t *reg(const struct plic *plic, uint64_t offset)
{
    return (volatile uint32_t *)(uintptr_t)(plic->base + offset);
}

/* Contexts are numbered in the order of interrupts-extended: pairs of a hart's interrupt controller and an interrupt of it. */
static bool find_context(const struct fdt_node *node, uint32_t *context)
{
    uint32_t controller = 0, interrupt, phandle;
    for (unsigned i = 0; i < machine.hart_count; i++) {
        if (machine.harts[i].id == machine.boot_hart)
            controller = machine.harts[i].interrupt_controller;
    }
    for (*context = 0; fdt_cell(&machine.fdt, node, "interrupts-extended", 2 * *context, &phandle)
                       && fdt_cell(&machine.fdt, node, "interrupts-extended", 2 * *context + 1, &interrupt); ++*context) {
        if (phandle == controller && interrupt == IRQ_EXTERNAL)
            return true;
    }
    return false;
}

struct plic plic_find(void)
{
    struct plic plic;
    uint64_t size;
    for (struct fdt_node node = { 0 }; fdt_next(&machine.fdt, &node);) {
        plic.is_aplic = fdt_list_has(&machine.fdt, &node, "compatible", "riscv,aplic");
        if (!plic.is_aplic && !fdt_list_has(&machine.fdt, &node, "compatible", "sifive,plic-1.0.0")
            && !fdt_list_has(&machine.fdt, &node, "compatible", "riscv,plic0"))
            continue;
        if (!fdt_reg(&machine.fdt, &node, &plic.base, &size))
            fail("the device tree's node %s has no reg", node.name);
        if (!find_context(&node, &plic.context)) {
            /* On the bare machine the domain of machine level is a node as well. */
            if (plic.is_aplic)
                continue;
            fail("the device tree's node %s has no interrupts-extended entry for hart %lu in S-mode", node.name, machine.boot_hart);
        }
        return plic;
    }
    fail("the device tree has no interrupt controller that serves hart %lu in S-mode", machine.boot_hart);
}

void plic_set_priority(const struct plic *plic, uint32_t source, uint32_t priority)
{
    if (!plic->is_aplic) {
        *reg(plic, PRIORITY(source)) = priority;
        return;
    }
    *reg(plic, APLIC_SOURCECFG(source)) = priority == 0 ? 0 : APLIC_LEVEL_HIGH;
    *reg(plic, APLIC_TARGET(source)) = plic->context << APLIC_HART_SHIFT | (8 - priority);
}

void plic_set_edge(const struct plic *plic, uint32_t source)
{
    if (plic->is_aplic)
        *reg(plic, APLIC_SOURCECFG(source)) = APLIC_EDGE_RISING;
}

void plic_set_enabled(const struct plic *plic, uint32_t source, bool enabled)
{
    if (plic->is_aplic) {
        *reg(plic, APLIC_DOMAINCFG) = APLIC_INTERRUPT_ENABLE;
        *reg(plic, APLIC_IDELIVERY(plic->context)) = 1;
        *reg(plic, enabled ? APLIC_SETIENUM : APLIC_CLRIENUM) = source;
        return;
    }
    volatile uint32_t *word = reg(plic, ENABLE(plic->context, source));
    uint32_t bit = 1u << source % 32;
    *word = enabled ? *word | bit : *word & ~bit;
}

volatile uint32_t *plic_threshold(const struct plic *plic)
{
    return reg(plic, plic->is_aplic ? APLIC_ITHRESHOLD(plic->context) : THRESHOLD(plic->context));
}

void plic_set_threshold(const struct plic *plic, uint32_t threshold)
{
    *plic_threshold(plic) = plic->is_aplic ? (8 - threshold) % 8 : threshold;
}

bool plic_is_pending(const struct plic *plic, uint32_t source)
{
    return *reg(plic, plic->is_aplic ? APLIC_SETIP(source) : PENDING(source)) >> source % 32 & 1;
}

uint32_t plic_claim(const struct plic *plic)
{
    if (plic->is_aplic)
        return *reg(plic, APLIC_CLAIMI(plic->context)) >> APLIC_SOURCE_SHIFT;
    return *reg(plic, CLAIM(plic->context));
}

void plic_complete(const struct plic *plic, uint32_t source)
{
    if (!plic->is_aplic)
        *reg(plic, CLAIM(plic->context)) = source;
}

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
