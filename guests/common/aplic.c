/* An advanced PLIC that interrupts harts itself: direct delivery mode (AIA 1.0, chapter 4, and section 4.8). */
#include "aplic.h"
#include "machine.h"

/* Interrupt delivery control of a hart (section 4.8.1). */
#define IDELIVERY(hart)  (0x4000ul + 32ul * (hart))
#define ITHRESHOLD(hart) (0x4008ul + 32ul * (hart))
#define CLAIMI(hart)     (0x401cul + 32ul * (hart))
#define CLAIMI_SOURCE_SHIFT 16

/* A priority number that each APLIC has, however few of its bits are there: 0 isn't one. */
#define PRIORITY 1u

static bool probe(struct irqchip *aplic, const struct fdt_node *node, uint32_t cpu_intc)
{
    uint64_t size;
    return fdt_list_has(&machine.fdt, node, "compatible", "riscv,aplic") && fdt_reg(&machine.fdt, node, &aplic->base, &size)
        && irqchip_context(node, cpu_intc, &aplic->context);
}

void aplic_configure(const struct irqchip *aplic, uint32_t source, enum trigger trigger, uint32_t how)
{
    /* A source has no target before it is active. */
    *aplic_register(aplic, APLIC_SOURCECFG(source)) = trigger == EDGE_RISING ? APLIC_SOURCE_EDGE_RISING : APLIC_SOURCE_LEVEL_HIGH;
    *aplic_register(aplic, APLIC_TARGET(source)) = aplic->context << APLIC_TARGET_HART_SHIFT | how;
}

bool aplic_is_pending(const struct irqchip *aplic, uint32_t source) { return *aplic_register(aplic, APLIC_SETIP(source)) >> source % 32 & 1; }

static void enable(const struct irqchip *aplic, uint32_t source, enum trigger trigger)
{
    aplic_configure(aplic, source, trigger, PRIORITY);
    *aplic_register(aplic, APLIC_DOMAINCFG) = APLIC_DOMAINCFG_IE;
    *aplic_register(aplic, IDELIVERY(aplic->context)) = 1;
    *aplic_register(aplic, APLIC_SETIENUM) = source;
}

static uint32_t threshold(const struct irqchip *aplic) { return *aplic_register(aplic, ITHRESHOLD(aplic->context)); }

static void set_threshold(const struct irqchip *aplic, uint32_t threshold) { *aplic_register(aplic, ITHRESHOLD(aplic->context)) = threshold; }

static uint32_t claim(const struct irqchip *aplic) { return *aplic_register(aplic, CLAIMI(aplic->context)) >> CLAIMI_SOURCE_SHIFT; }

/* There is no completion: a level that is high still is pending all the time. */
static void complete(const struct irqchip *aplic, uint32_t source) { (void)aplic, (void)source; }

const struct irqchip_driver aplic_driver = { "APLIC", probe, enable, aplic_is_pending, threshold, set_threshold, claim, complete };
