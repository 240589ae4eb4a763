#include "clock_device.h"

/* Offsets of the registers, 32 bits each. Reading TIME_LOW latches TIME_HIGH; writing ALARM_LOW sets the alarm. */
#define TIME_LOW        0x00
#define TIME_HIGH       0x04
#define ALARM_LOW       0x08
#define ALARM_HIGH      0x0c
#define IRQ_ENABLED     0x10
#define ALARM_STATUS    0x18
#define CLEAR_INTERRUPT 0x1c

static volatile uint32_t *reg(const struct device *clock, uint64_t offset) { return (volatile uint32_t *)(uintptr_t)(clock->base + offset); }

void clock_set_alarm(const struct device *clock, uint64_t us)
{
    uint64_t low = *reg(clock, TIME_LOW), high = *reg(clock, TIME_HIGH);
    uint64_t at = (high << 32 | low) + us * 1000;
    *reg(clock, IRQ_ENABLED) = 1;
    *reg(clock, ALARM_HIGH) = at >> 32;
    *reg(clock, ALARM_LOW) = (uint32_t)at;
}

void clock_ask_again(const struct device *clock) { *reg(clock, IRQ_ENABLED) = 1; }

void clock_acknowledge(const struct device *clock) { *reg(clock, CLEAR_INTERRUPT) = 1; }

bool clock_is_set(const struct device *clock) { return *reg(clock, ALARM_STATUS) != 0; }
