/* Each hart sleeps until its timer, then is busy: how late does it wake? As the less urgent guest it shows whether anybody watches its
 * timers, as the more urgent one it takes the harts from others in the ways that made that hard. */
#include <stdatomic.h>
#include "args.h"
#include "console.h"
#include "csr.h"
#include "histogram.h"
#include "machine.h"
#include "sbi.h"
#include "start.h"
#include "timer.h"
#include "trap.h"
#include "xorshift.h"

#define STACK_WORDS 512

struct worker {
    struct secondary start;
    struct histogram delay;
    uint64_t random;
    uint64_t stack[STACK_WORDS] __attribute__((aligned(16)));
};

static struct worker workers[MAX_HARTS];
static atomic_uint finished;
static uint64_t first, period, spread, busy, ahead, last_ahead, aligned, wanted;

/* The timer's interrupt wakes the hart, but isn't taken: it stays pending until the timer is set again. */
static void nap(struct worker *me, uint64_t until)
{
    csr_write(CSR_STIMECMP, until);
    uint64_t now;
    while ((now = read_time()) < until)
        wait_for_interrupt();
    histogram_add(&me->delay, now - until);
}

/* How far ahead it sets its timer while it is busy: as it is told, or otherwise just before a neighbour of the same period wakes. */
static uint64_t deadline_ahead(uint64_t now)
{
    return period - now % period <= us_to_ticks(40) ? last_ahead : ahead;
}

static void work(struct worker *me)
{
    csr_write(sie, 1ul << IRQ_TIMER);
    uint64_t next = read_time();
    if (aligned != 0)
        next -= next % period;
    if (first != 0)
        nap(me, next += first);
    for (uint64_t i = 0; i < wanted; i++) {
        next += period + (spread == 0 ? 0 : xorshift(&me->random) % spread);
        uint64_t now = read_time();
        if (next <= now)
            next = now + period;
        nap(me, next);
        uint64_t end = read_time() + busy;
        while (read_time() < end)
            if (ahead != 0)
                csr_write(CSR_STIMECMP, read_time() + deadline_ahead(read_time()));
    }
    csr_write(sie, 0);
    atomic_fetch_add(&finished, 1);
}

static void secondary(void *argument)
{
    work(argument);
    sbi_hart_stop();
}

bool guest_main(void)
{
    machine_needs("sstc", "this probe measures the supervisor's own timer");
    /* One nap that is not counted, before the others. */
    first = us_to_ticks(arg_number("first_us", 0, 0, 10000000));
    period = us_to_ticks(arg_number("period_us", 1000, 1, 10000000));
    spread = us_to_ticks(arg_number("spread_us", 0, 0, 10000000));
    busy = us_to_ticks(arg_number("busy_us", 0, 0, 10000000));
    uint64_t ahead_us = arg_number("ahead_us", 0, 0, 10000000);
    ahead = us_to_ticks(ahead_us);
    last_ahead = us_to_ticks(arg_number("last_ahead_us", ahead_us, 0, 10000000));
    /* Wakes at multiples of its period in the machine's time, wherever it has begun. */
    aligned = arg_number("aligned", 0, 0, 1);
    wanted = arg_number("n", 100, 1, 1000000000);
    uint64_t limit_us = arg_number("limit_us", 10000000, 1, 10000000);
    args_finish();
    struct worker *me = &workers[0];
    for (unsigned i = 0; i < machine.hart_count; i++) {
        struct worker *worker = &workers[i];
        worker->random = machine.harts[i].id + 1;
        if (machine.harts[i].id == machine.boot_hart) {
            me = worker;
            continue;
        }
        worker->start = (struct secondary){ worker->stack + STACK_WORDS, secondary, worker };
        start_hart(machine.harts[i].id, &worker->start);
    }
    work(me);
    while (atomic_load(&finished) < machine.hart_count)
        sleep_us(100);
    uint64_t longest = 0;
    for (unsigned i = 0; i < machine.hart_count; i++)
        if (longest < workers[i].delay.max)
            longest = workers[i].delay.max;
    bool ok = longest <= us_to_ticks(limit_us);
    print("@result {\"job\":\"naps\",\"naps\":%lu,\"latest_ns\":%lu,\"ok\":%s}\n", wanted * machine.hart_count, ticks_to_ns(longest),
          ok ? "true" : "false");
    return ok;
}
