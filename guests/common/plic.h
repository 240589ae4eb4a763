/* What only a PLIC has: a priority of each source, from 0 (it never interrupts) to 7, and enable bits that any hart reaches for each. */
#pragma once
#include "irqchip.h"

/* As irqchip_find. Ends the guest with a message if the controller is another one. */
struct irqchip plic_find(uint64_t hart);

void plic_set_priority(const struct irqchip *plic, uint32_t source, uint32_t priority);
void plic_set_enabled(const struct irqchip *plic, uint32_t source, bool enabled);
bool plic_is_enabled(const struct irqchip *plic, uint32_t source);

/* The register itself: reading it has no effect. */
volatile uint32_t *plic_threshold(const struct irqchip *plic);
