/* The guest's interrupt controllers: a PLIC, or an APLIC, which interrupts harts itself or sends messages to their IMSICs (AIA). They are where
 * QEMU's `virt` has them. */
#pragma once
#include "vcpu.h"

#define MOST_IRQCHIPS 2

/* In this order: where sources are configured, and the interrupt files, a page each, if there are some. */
extern struct irqchip_registers {
    uint64_t base, size;
    uint64_t (*offset)(uint64_t r, uint64_t size); /* of a register, rather than a gap */
} irqchips[MOST_IRQCHIPS];
extern unsigned irqchip_count;

/* Looks for them in the device tree. Ends the guest with a message if there are none. */
void irqchips_find(void);

/* Where registers are, rather than the gaps. */
uint64_t irqchip_address(struct vcpu *v);
