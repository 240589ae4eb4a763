/* A platform-level interrupt controller. Source: the RISC-V PLIC specification 1.0.0. */
#include "plic.h"
#include "machine.h"
#include "trap.h"

#define PRIORITY(source)          (4ul * (source))
#define PENDING(source)           (0x1000ul + (source) / 32 * 4)
#define ENABLE(context, source)   (0x2000ul + 0x80ul * (context) + (source) / 32 * 4)
#define THRESHOLD(context)        (0x200000ul + 0x1000ul * (context))
#define CLAIM(context)            (0x200004ul + 0x1000ul * (context))

static volatile uint32_t *reg(const struct irqchip *plic, uint64_t offset)
{
    return (volatile uint32_t *)(uintptr_t)(plic->base + offset);
}

static bool probe(struct irqchip *plic, const struct fdt_node *node, uint32_t cpu_intc)
{
    uint64_t size;
    bool is_plic = fdt_list_has(&machine.fdt, node, "compatible", "sifive,plic-1.0.0") || fdt_list_has(&machine.fdt, node, "compatible", "riscv,plic0");
    return is_plic && fdt_reg(&machine.fdt, node, &plic->base, &size) && irqchip_context(node, cpu_intc, &plic->context);
}

struct irqchip plic_find(uint64_t hart)
{
    struct irqchip irqchip = irqchip_find(hart);
    if (irqchip.driver != &plic_driver)
        fail("the interrupt controller isn't a PLIC, but an %s", irqchip.driver->name);
    return irqchip;
}

void plic_set_priority(const struct irqchip *plic, uint32_t source, uint32_t priority) { *reg(plic, PRIORITY(source)) = priority; }

void plic_set_enabled(const struct irqchip *plic, uint32_t source, bool enabled)
{
    volatile uint32_t *word = reg(plic, ENABLE(plic->context, source));
    uint32_t bit = 1u << source % 32;
    *word = enabled ? *word | bit : *word & ~bit;
}

bool plic_is_enabled(const struct irqchip *plic, uint32_t source) { return *reg(plic, ENABLE(plic->context, source)) >> source % 32 & 1; }

volatile uint32_t *plic_threshold(const struct irqchip *plic) { return reg(plic, THRESHOLD(plic->context)); }

/* Its gateways are made for their wires: a PLIC needn't know how a source asks. */
static void enable(const struct irqchip *plic, uint32_t source, enum trigger trigger)
{
    (void)trigger;
    plic_set_priority(plic, source, 1);
    plic_set_enabled(plic, source, true);
}

static bool is_pending(const struct irqchip *plic, uint32_t source) { return *reg(plic, PENDING(source)) >> source % 32 & 1; }

static uint32_t threshold(const struct irqchip *plic) { return *plic_threshold(plic); }

static void set_threshold(const struct irqchip *plic, uint32_t threshold) { *plic_threshold(plic) = threshold; }

static uint32_t claim(const struct irqchip *plic) { return *reg(plic, CLAIM(plic->context)); }

static void complete(const struct irqchip *plic, uint32_t source) { *reg(plic, CLAIM(plic->context)) = source; }

const struct irqchip_driver plic_driver = { "PLIC", probe, enable, is_pending, threshold, set_threshold, claim, complete };
