/* Goldfish RTC, the clock of QEMU's virt board: nanoseconds, and one alarm that interrupts (Android's goldfish documentation; QEMU's
 * hw/rtc/goldfish_rtc.c). */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "device.h"

#define CLOCK_GOLDFISH "google,goldfish-rtc"

/* Asks for one interrupt, so many microseconds from now. */
void clock_set_alarm(const struct device *clock, uint64_t us);

/* True until the alarm's time has come. */
bool clock_is_set(const struct device *clock);

/* Asks for an interrupt at once, if one that is over has not been acknowledged. */
void clock_ask_again(const struct device *clock);

/* Takes the interrupt back. */
void clock_acknowledge(const struct device *clock);
