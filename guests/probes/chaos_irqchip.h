/* What the probe `chaos` does to its guest's interrupt controller, whichever kind that is. All take random numbers. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct irqchip_chaos {
    /* Has a hart listen to all that comes, before it begins. */
    void (*open)(void);
    /* Which source asks how, and of whom. */
    void (*configure)(uint64_t r, uint64_t b);
    /* Switches sources on and off, or has them ask. */
    void (*enable)(uint64_t r, uint64_t b);
    /* What stands between the sources and harts: claims, thresholds, messages. */
    void (*deliver)(uint64_t r, uint64_t b);
    /* Has source 10, which is the UART's, ask all harts. */
    void (*listen)(void);
    /* One party of those that serve source 10, or change what it is. */
    void (*fight)(uint64_t r);
    /* Switches many sources on or off for one hart. */
    void (*switch_all)(uint64_t hart, uint32_t bits);
    /* In the handler of the external interrupt: serves what has come for some hart. False if more may come at once, for ever. */
    bool (*serve)(uint64_t r);
};

/* That of this machine. Ends the guest with a message if it has none. */
const struct irqchip_chaos *chaos_irqchip(void);
