#include "clock_device.h"
#include "machine.h"
#include "trap.h"

/* Offsets of the registers, 32 bits each. Reading TIME_LOW latches TIME_HIGH; writing ALARM_LOW sets the alarm. */
#define TIME_LOW        0x00
#define TIME_HIGH       0x04
#define ALARM_LOW       0x08
#define ALARM_HIGH      0x0c
#define IRQ_ENABLED     0x10
#define ALARM_STATUS    0x18
#define CLEAR_INTERRUPT 0x1c

static volatile uint32_t *reg(const struct clock *clock, uint64_t offset) { return (volatile uint32_t *)(uintptr_t)(clock->base + offset); }

struct clock clock_find(void)
{
    struct clock clock;
    uint64_t size;
    for (struct fdt_node node = { 0 }; fdt_next(&machine.fdt, &node);) {
        if (!fdt_list_has(&machine.fdt, &node, "compatible", "google,goldfish-rtc"))
            continue;
        if (!fdt_reg(&machine.fdt, &node, &clock.base, &size) || !fdt_cell(&machine.fdt, &node, "interrupts", 0, &clock.source))
            fail("the device tree's node %s has no reg or no interrupts", node.name);
        return clock;
    }
    fail("the device tree has no clock");
}

void clock_set_alarm(const struct clock *clock, uint64_t us)
{
    uint64_t low = *reg(clock, TIME_LOW), high = *reg(clock, TIME_HIGH);
    uint64_t at = (high << 32 | low) + us * 1000;
    *reg(clock, IRQ_ENABLED) = 1;
    *reg(clock, ALARM_HIGH) = at >> 32;
    *reg(clock, ALARM_LOW) = (uint32_t)at;
}

void clock_ask_again(const struct clock *clock) { *reg(clock, IRQ_ENABLED) = 1; }

void clock_acknowledge(const struct clock *clock) { *reg(clock, CLEAR_INTERRUPT) = 1; }

bool clock_is_set(const struct clock *clock) { return *reg(clock, ALARM_STATUS) != 0; }
