/* A device that the device tree describes, with one interrupt. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define UART_16550 "ns16550a"

struct device {
    uint64_t base;
    uint32_t source; /* its interrupt at the interrupt controller */
};

/* The first one with that word in its `compatible`. Ends the guest with a message if the tree has none. */
struct device device_find(const char *compatible);

/* Is there one? */
bool device_is_there(const char *compatible);
