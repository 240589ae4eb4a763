/* Do the interrupts of a device of the board arrive? With `late_us`: it then sets one more alarm and reboots just when that comes, so that the next
 * life may find its interrupt half served. The device is the Goldfish RTC of QEMU's `virt`, whose alarm is set again and again.
 * (Registers: QEMU, docs of the Android emulator "GOLDFISH-VIRTUAL-HARDWARE", V. Goldfish timer.) */
#include "args.h"
#include "clock_device.h"
#include "console.h"
#include "csr.h"
#include "machine.h"
#include "irqchip.h"
#include "sbi.h"
#include "start.h"
#include "timer.h"
#include "trap.h"

#define TIME_LOW        0x00 /* reading it latches TIME_HIGH */
#define TIME_HIGH       0x04
#define ALARM_LOW       0x08 /* writing it sets the alarm */
#define ALARM_HIGH      0x0c
#define IRQ_ENABLED     0x10
#define ALARM_RUNNING   0x18
#define CLEAR_INTERRUPT 0x1c

#define ARRIVES_MS 5000

static struct irqchip irqchip;
static struct device device;
static volatile uint64_t interrupts;

static volatile uint32_t *rtc(unsigned offset) { return (volatile uint32_t *)(uintptr_t)(device.base + offset); }

static void external(void)
{
    uint32_t claimed = irqchip_claim(&irqchip);
    *rtc(CLEAR_INTERRUPT) = 1;
    irqchip_complete(&irqchip, claimed);
    interrupts += claimed == device.source;
}

static void set_alarm(uint64_t ns)
{
    uint64_t now = *rtc(TIME_LOW);
    now |= (uint64_t)*rtc(TIME_HIGH) << 32;
    uint64_t at = now + ns;
    *rtc(ALARM_HIGH) = at >> 32;
    *rtc(ALARM_LOW) = (uint32_t)at;
}

bool guest_main(void)
{
    uint64_t n = arg_number("n", 6, 1, 1000);
    uint64_t late_us = arg_number("late_us", 0, 0, 1000000);
    args_finish();
    device = device_find(CLOCK_GOLDFISH);
    irqchip = irqchip_find(machine.boot_hart);
    on_interrupt(IRQ_EXTERNAL, external);
    csr_write(sie, 1ul << IRQ_EXTERNAL);
    irqchip_enable(&irqchip, device.source, LEVEL_HIGH);
    *rtc(IRQ_ENABLED) = 1;
    bool ok = true;
    for (uint64_t i = 0; ok && i < n; i++) {
        set_alarm(10 * 1000 * 1000);
        ok = wait_for_count(&interrupts, i + 1, ARRIVES_MS);
    }
    print("@result {\"job\":\"rtc\",\"wanted\":%lu,\"interrupts\":%lu,\"ok\":%s}\n", n, interrupts, ok ? "true" : "false");
    if (ok && late_us != 0) {
        csr_write(sie, 0);
        set_alarm(late_us * 1000);
        while (*rtc(ALARM_RUNNING))
            ;
        sbi_call(SBI_SRST, SBI_SRST_RESET, SBI_RESET_COLD_REBOOT, SBI_REASON_NONE, 0);
    }
    return ok;
}
