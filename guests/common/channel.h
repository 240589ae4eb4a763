/* A channel to another guest: an ivshmem device (QEMU's "Device Specification for Inter-VM shared memory device") on the PCI bus that the device tree names. Its memory is both guests'. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "irqchip.h"

struct channel {
    volatile uint32_t *registers;
    volatile uint32_t *bell; /* where a store rings without a trap; NULL if this channel has no such page */
    volatile void *memory;
    uint64_t size;     /* of the memory, bytes */
    uint32_t position; /* which end this is: 0 or 1 */
    uint32_t source;   /* of its bell at the interrupt controller */
};

/* The guest's channel number `index`, from 0, in the order of its bus. False if it hasn't so many. */
bool channel_find(struct channel *channel, unsigned index);

/* Has the other end's bell interrupt this hart, which must enable external interrupts. */
void channel_listen(const struct channel *channel, const struct irqchip *irqchip);

/* Interrupts the other guest. It sees what was stored before. */
void channel_ring(const struct channel *channel);

/* Has the other end rung since the last call? If so, what it had stored before is seen from here on. Only who asks is interrupted again. */
bool channel_heard(const struct channel *channel);
