/* The guest's interrupt controller: a PLIC, or an APLIC that interrupts harts itself (AIA). Both are where QEMU's `virt` has them. */
#pragma once
#include "vcpu.h"

struct irqchip {
    uint64_t base;
    uint64_t size; /* of its registers */
    bool is_aplic;
};

extern struct irqchip irqchip;

/* Looks for it in the device tree. Ends the guest with a message if there is none. */
void irqchip_find(void);

/* Where registers are, rather than the gaps. */
uint64_t irqchip_address(struct vcpu *v);
