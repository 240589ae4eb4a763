/* Do the interrupts of a device of the board arrive? With `late_us`: it then sets one more alarm and reboots just when that comes, so that the next
 * life may find its interrupt half served. With `completes=0` the handler clears its cause and does no more, as one may whose interrupts are messages.
 * The device is the Goldfish RTC of QEMU's `virt`, whose alarm is set again and again. */
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

#define ARRIVES_MS 5000
#define TWICE_US   100

static struct irqchip irqchip;
static struct device device;
static bool completes;
static volatile uint64_t interrupts;

static void external(void)
{
    uint32_t claimed = irqchip_claim(&irqchip);
    clock_acknowledge(&device);
    if (completes)
        irqchip_complete(&irqchip, claimed);
    interrupts += claimed == device.source;
}

/* Computes, rather than sleeps, until one more has come. */
static bool compute(uint64_t wanted)
{
    uint64_t end = read_time() + us_to_ticks(ARRIVES_MS * 1000);
    interrupts_on();
    while (interrupts < wanted && read_time() < end)
        pause_hint();
    interrupts_off();
    return interrupts >= wanted;
}

bool guest_main(void)
{
    uint64_t n = arg_number("n", 6, 1, 1000);
    uint64_t late_us = arg_number("late_us", 0, 0, 1000000);
    bool busy = arg_number("busy", 0, 0, 1), edge = arg_number("edge", 0, 0, 1);
    completes = arg_number("completes", 1, 0, 1);
    args_finish();
    device = device_find(CLOCK_GOLDFISH);
    irqchip = irqchip_find(machine.boot_hart);
    on_interrupt(IRQ_EXTERNAL, external);
    csr_write(sie, 1ul << IRQ_EXTERNAL);
    irqchip_enable(&irqchip, device.source, edge ? EDGE_RISING : LEVEL_HIGH);
    bool ok = true;
    for (uint64_t i = 0; ok && i < n; i++) {
        clock_set_alarm(&device, 10 * 1000);
        ok = busy ? compute(i + 1) : wait_for_count(&interrupts, i + 1, ARRIVES_MS);
        /* What comes now is one twice. */
        sleep_us(TWICE_US);
        ok = ok && interrupts == i + 1;
    }
    print("@result {\"job\":\"rtc\",\"wanted\":%lu,\"interrupts\":%lu,\"ok\":%s}\n", n, interrupts, ok ? "true" : "false");
    if (ok && late_us != 0) {
        csr_write(sie, 0);
        clock_set_alarm(&device, late_us);
        while (clock_is_set(&device))
            ;
        sbi_call(SBI_SRST, SBI_SRST_RESET, SBI_RESET_COLD_REBOOT, SBI_REASON_NONE, 0);
    }
    return ok;
}
