/* Periodic timer interrupts without an RTOS: how late is the handler? With `wake_us`, its second hart wakes the first between two ticks, each fourth
 * time a fifth of a microsecond later, and that computes for a while, across its ticks: a hypervisor isn't told of these. */
#include "timer.h"
#include <stdatomic.h>
#include "args.h"
#include "console.h"
#include "csr.h"
#include "histogram.h"
#include "machine.h"
#include "own_timer.h"
#include "sbi.h"
#include "start.h"
#include "trap.h"

#define STACK_WORDS 128

static uint64_t period, wanted;
static uint64_t origin, deadline, last;
static volatile uint64_t taken;
static struct histogram delay;

static void tick(void)
{
    uint64_t now = read_time();
    /* QEMU with a thread per hart can run the timer of a former deadline late: an interrupt that is none of ours. */
    if (now < deadline) {
        own_timer_set(deadline);
        return;
    }
    histogram_add(&delay, now - deadline);
    last = now;
    taken++;
    /* The next deadline on the grid of the first: late handlers don't shift it. */
    while (deadline <= now)
        deadline += period;
    own_timer_set(deadline);
}

static struct secondary waker;
static uint64_t waker_stack[STACK_WORDS] __attribute__((aligned(16)));
static _Atomic uint64_t wake_at; /* when the first hart is to be woken; 0 if not */
static volatile bool woken;

static __attribute__((noreturn)) void wake_when_told(void *argument)
{
    (void)argument;
    for (;;) {
        uint64_t at = atomic_load(&wake_at);
        if (at != 0 && read_time() >= at) {
            atomic_store(&wake_at, 0);
            sbi_send_ipi(1, machine.boot_hart);
        }
    }
}

static void software(void)
{
    csr_clear(sip, 1ul << IRQ_SOFTWARE);
    woken = true;
}

static void sleep_once(void)
{
    wait_for_interrupt();
    interrupts_on();
    interrupts_off();
}

static void sleep_until(uint64_t ticks)
{
    while (taken < ticks)
        sleep_once();
}

/* Is woken so long behind the next tick, and then computes. */
static void be_woken(uint64_t behind, uint64_t burn)
{
    woken = false;
    atomic_store(&wake_at, deadline + behind);
    while (!woken)
        sleep_once();
    uint64_t end = read_time() + burn;
    interrupts_on();
    while (read_time() < end)
        ;
    interrupts_off();
}

bool guest_main(void)
{
    own_timer_needed("this probe measures the supervisor's own timer");
    uint64_t period_us = arg_number("period_us", 1000, 10, 10000000);
    wanted = arg_number("n", 1000, 1, 1000000000);
    uint64_t wake_us = arg_number("wake_us", 0, 0, 10000000);
    uint64_t burn_us = arg_number("burn_us", 700, 1, 10000000);
    args_finish();
    print("%lu timer interrupts, one each %lu us\n", wanted, period_us);

    period = us_to_ticks(period_us);
    origin = read_time();
    deadline = origin + period;
    on_interrupt(IRQ_TIMER, tick);
    own_timer_set(deadline);
    csr_write(sie, 1ul << IRQ_TIMER | 1ul << IRQ_SOFTWARE);
    if (wake_us != 0) {
        if (machine.hart_count < 2)
            fail("a second hart is needed");
        on_interrupt(IRQ_SOFTWARE, software);
        waker = (struct secondary){ &waker_stack[STACK_WORDS], wake_when_told, NULL };
        start_hart(machine.harts[machine.harts[0].id == machine.boot_hart].id, &waker);
        for (uint64_t later = 0; taken < wanted; later++) {
            be_woken(us_to_ticks(wake_us) + later * us_to_ticks(1) / 5, us_to_ticks(burn_us));
            sleep_until(taken + 4);
        }
    }
    sleep_until(wanted);

    uint64_t lost = (last - origin) / period - taken;
    print("@result {\"job\":\"timer\",\"period_us\":%lu,\"ticks\":%lu,\"ticks_lost\":%lu,\"handler_delay_ns\":", period_us, taken + lost,
          lost);
    histogram_print_summary(&delay);
    print(",\"ok\":%s}\n", lost == 0 ? "true" : "false");
    histogram_print_buckets(&delay, "timer", "handler_delay_ns");
    return lost == 0;
}
