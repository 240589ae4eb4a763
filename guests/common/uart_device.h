/* The 16550 UART that the device tree describes. */
#pragma once
#include <stdint.h>

struct uart {
    uint64_t base;
    uint32_t source; /* its interrupt at the interrupt controller */
};

/* Ends the guest with a message if the tree has no 16550. */
struct uart uart_find(void);
