/* Where the machine's interrupt controllers have registers, whichever kind they are: for programs that want to disturb, and so reach all of them at random. */
#pragma once
#include <stdint.h>

#define MOST_IRQCHIPS 2

/* A PLIC, or an APLIC, which interrupts harts itself or sends messages to their IMSICs (AIA). In this order: where sources are configured, and the
 * interrupt files, a page each, if there are some. */
extern struct irqchip_registers {
    uint64_t base, size;
    uint64_t (*offset)(uint64_t r, uint64_t size); /* of a register, rather than a gap */
} irqchips[MOST_IRQCHIPS];
extern unsigned irqchip_count;

/* Looks for them in the device tree. Ends the guest with a message if there are none. */
void irqchips_find(void);

/* The address that a random number chooses: where registers are, rather than the gaps, and mostly aligned. */
uint64_t irqchip_address(uint64_t r);
