/* The hart's own timer, and waiting. For programs without an operating system. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* No time: takes a timer interrupt back. */
#define NEVER UINT64_MAX

/* Asks for a timer interrupt on this hart when `time` reaches `deadline`; by stimecmp, or through the SBI where there is no Sstc. */
void timer_set(uint64_t deadline);

/* Sleeps until `*count` is at least `value`, with interrupts on (but for the timer's, which is used here). Returns false if it isn't
 * so within `ms`. Expects interrupts off, and leaves them off. */
bool wait_for_count(const volatile uint64_t *count, uint64_t value, uint64_t ms);

/* Sleeps, as above. */
void sleep_us(uint64_t us);
