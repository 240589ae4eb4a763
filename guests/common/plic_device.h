/* The interrupt controller, as the device tree describes it, and the UART that is wired to it. The controller is a PLIC, or an APLIC that interrupts harts itself, which is
 * driven as if it were one: a completion does nothing, and priorities and thresholds of 0 to 7 are turned round. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct plic {
    uint64_t base;
    uint32_t context; /* of the boot hart in S-mode; APLIC: its hart index */
    bool is_aplic;
};

/* Ends the guest with a message if the tree has no controller, or none that serves the boot hart. */
struct plic plic_find(void);

void plic_set_priority(const struct plic *plic, uint32_t source, uint32_t priority);
/* The source is an edge, not a level: to be said behind its priority. A PLIC needn't know. */
void plic_set_edge(const struct plic *plic, uint32_t source);
void plic_set_enabled(const struct plic *plic, uint32_t source, bool enabled);
void plic_set_threshold(const struct plic *plic, uint32_t threshold);
bool plic_is_pending(const struct plic *plic, uint32_t source);
/* The register itself: reading it has no effect. */
volatile uint32_t *plic_threshold(const struct plic *plic);
/* 0: there is nothing to do. */
uint32_t plic_claim(const struct plic *plic);
void plic_complete(const struct plic *plic, uint32_t source);

struct uart {
    uint64_t base;
    uint32_t source; /* its interrupt at the controller */
};

/* Ends the guest with a message if the tree has no 16550. */
struct uart uart_find(void);
