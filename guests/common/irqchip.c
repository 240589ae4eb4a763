#include "irqchip.h"
#include "csr.h"
#include "machine.h"
#include "trap.h"

static const struct irqchip_driver *const drivers[] = { &plic_driver, &aplic_driver, &imsic_driver };

bool irqchip_context(const struct fdt_node *node, uint32_t cpu_intc, uint32_t *context)
{
    uint32_t phandle, interrupt;
    for (*context = 0; fdt_cell(&machine.fdt, node, "interrupts-extended", 2 * *context, &phandle)
                       && fdt_cell(&machine.fdt, node, "interrupts-extended", 2 * *context + 1, &interrupt); ++*context) {
        if (phandle == cpu_intc && interrupt == IRQ_EXTERNAL)
            return true;
    }
    return false;
}

static uint32_t cpu_intc_of(uint64_t hart)
{
    for (unsigned i = 0; i < machine.hart_count; i++) {
        if (machine.harts[i].id == hart)
            return machine.harts[i].interrupt_controller;
    }
    fail("the device tree has no hart %lu", hart);
}

struct irqchip irqchip_find(uint64_t hart)
{
    uint32_t cpu_intc = cpu_intc_of(hart);
    for (struct fdt_node node = { 0 }; fdt_next(&machine.fdt, &node);) {
        for (unsigned i = 0; i < sizeof drivers / sizeof *drivers; i++) {
            struct irqchip irqchip = { .driver = drivers[i] };
            if (drivers[i]->probe(&irqchip, &node, cpu_intc))
                return irqchip;
        }
    }
    fail("the device tree has no interrupt controller that serves hart %lu in S-mode", hart);
}

void irqchip_enable(const struct irqchip *irqchip, uint32_t source, enum trigger trigger)
{
    /* Firmware may have left one that nothing is above, as OpenSBI does at a PLIC. */
    irqchip->driver->set_threshold(irqchip, 0);
    irqchip->driver->enable(irqchip, source, trigger);
}

bool irqchip_is_pending(const struct irqchip *irqchip, uint32_t source) { return irqchip->driver->is_pending(irqchip, source); }

uint32_t irqchip_threshold(const struct irqchip *irqchip) { return irqchip->driver->threshold(irqchip); }

void irqchip_set_threshold(const struct irqchip *irqchip, uint32_t threshold) { irqchip->driver->set_threshold(irqchip, threshold); }

uint32_t irqchip_claim(const struct irqchip *irqchip) { return irqchip->driver->claim(irqchip); }

void irqchip_complete(const struct irqchip *irqchip, uint32_t source) { irqchip->driver->complete(irqchip, source); }
