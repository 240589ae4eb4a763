/* Goldfish RTC, the clock of QEMU's virt board: nanoseconds, and one alarm that interrupts (Android's goldfish documentation; QEMU's
 * hw/rtc/goldfish_rtc.c). */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct clock {
    uint64_t base;
    uint32_t source; /* its interrupt at the interrupt controller */
};

/* Ends the guest with a message if the tree has no such clock. */
struct clock clock_find(void);

/* Asks for one interrupt, so many microseconds from now. */
void clock_set_alarm(const struct clock *clock, uint64_t us);

/* True until the alarm's time has come. */
bool clock_is_set(const struct clock *clock);

/* Asks for an interrupt at once, if one that is over has not been acknowledged. */
void clock_ask_again(const struct clock *clock);

/* Takes the interrupt back. */
void clock_acknowledge(const struct clock *clock);
