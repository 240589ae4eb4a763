/* The interrupt controller that the device tree describes, whichever kind it is. What it is called is up to the machine; what all kinds can do is here. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "fdt.h"

/* How a source asks: while its wire is high, or when that goes high. */
enum trigger { LEVEL_HIGH, EDGE_RISING };

/* As one hart sees it: functions that take it are called on that hart, with its external interrupt off or in its handler. */
struct irqchip {
    const struct irqchip_driver *driver;
    uint64_t base;    /* of the registers by which sources are configured */
    uint32_t context; /* the hart in S-mode, as the controller numbers it: its place in `interrupts-extended` */
};

/* A kind of controller. */
struct irqchip_driver {
    const char *name;
    /* Is this node such a controller, and does it serve the hart with this cpu-intc? Then it fills in base and context. */
    bool (*probe)(struct irqchip *irqchip, const struct fdt_node *node, uint32_t cpu_intc);
    void (*enable)(const struct irqchip *irqchip, uint32_t source, enum trigger trigger);
    bool (*is_pending)(const struct irqchip *irqchip, uint32_t source);
    uint32_t (*threshold)(const struct irqchip *irqchip);
    void (*set_threshold)(const struct irqchip *irqchip, uint32_t threshold);
    uint32_t (*claim)(const struct irqchip *irqchip);
    void (*complete)(const struct irqchip *irqchip, uint32_t source);
};

extern const struct irqchip_driver plic_driver, aplic_driver, imsic_driver;

/* The controller that interrupts this hart. Ends the guest with a message if the tree has none. */
struct irqchip irqchip_find(uint64_t hart);

/* Has the source interrupt the hart, which it does whatever the threshold was. Which of several goes first is up to the kind: in an IMSIC it is the lowest number,
 * whoever would want another one. So nobody asks for it here. */
void irqchip_enable(const struct irqchip *irqchip, uint32_t source, enum trigger trigger);

/* Does the source wait to be claimed, enabled or not? */
bool irqchip_is_pending(const struct irqchip *irqchip, uint32_t source);

/* What is less urgent than this doesn't interrupt; 0: everything does. A PLIC lets priorities above it through; an APLIC priority numbers, and an IMSIC identities,
 * below it. */
uint32_t irqchip_threshold(const struct irqchip *irqchip);
void irqchip_set_threshold(const struct irqchip *irqchip, uint32_t threshold);

/* The source that is to be served; 0: there is nothing to do. */
uint32_t irqchip_claim(const struct irqchip *irqchip);

/* It has been served: if it still asks, it interrupts again. */
void irqchip_complete(const struct irqchip *irqchip, uint32_t source);

/* For drivers: the place of a hart's external interrupt in S-mode in the node's `interrupts-extended`, which are pairs of a cpu-intc and an interrupt of it.
 * False if it isn't there: on the bare machine the controllers of machine level are nodes as well. */
bool irqchip_context(const struct fdt_node *node, uint32_t cpu_intc, uint32_t *context);
