/* Periodic timer interrupts without an RTOS: how late is the handler? */
#include "timer.h"
#include "args.h"
#include "console.h"
#include "csr.h"
#include "histogram.h"
#include "machine.h"
#include "start.h"
#include "trap.h"

static uint64_t period, wanted;
static uint64_t origin, deadline, last;
static volatile uint64_t taken;
static struct histogram delay;

static void tick(void)
{
    uint64_t now = read_time();
    /* QEMU with a thread per hart can run the timer of a former deadline late: an interrupt that is none of ours. */
    if (now < deadline) {
        csr_write(CSR_STIMECMP, deadline);
        return;
    }
    histogram_add(&delay, now - deadline);
    last = now;
    taken++;
    /* The next deadline on the grid of the first: late handlers don't shift it. */
    while (deadline <= now)
        deadline += period;
    csr_write(CSR_STIMECMP, deadline);
}

bool guest_main(void)
{
    machine_needs("sstc", "this probe measures the supervisor's own timer");
    uint64_t period_us = arg_number("period_us", 1000, 10, 10000000);
    wanted = arg_number("n", 1000, 1, 1000000000);
    args_finish();
    print("%lu timer interrupts, one each %lu us\n", wanted, period_us);

    period = us_to_ticks(period_us);
    origin = read_time();
    deadline = origin + period;
    on_interrupt(IRQ_TIMER, tick);
    csr_write(CSR_STIMECMP, deadline);
    csr_write(sie, 1ul << IRQ_TIMER);
    while (taken < wanted) {
        wait_for_interrupt();
        interrupts_on();
        interrupts_off();
    }

    uint64_t lost = (last - origin) / period - taken;
    print("@result {\"job\":\"timer\",\"period_us\":%lu,\"ticks\":%lu,\"ticks_lost\":%lu,\"handler_delay_ns\":", period_us, taken + lost,
          lost);
    histogram_print_summary(&delay);
    print(",\"ok\":%s}\n", lost == 0 ? "true" : "false");
    histogram_print_buckets(&delay, "timer", "handler_delay_ns");
    return lost == 0;
}
