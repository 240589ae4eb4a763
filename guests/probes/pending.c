/* Does a WFI end at once if an interrupt is pending that `sie` enables, whatever `sstatus.SIE` says? And only then? */
#include "args.h"
#include "console.h"
#include "csr.h"
#include "machine.h"
#include "start.h"
#include "timer.h"

#define TIMER_BIT    (1ul << IRQ_TIMER)
#define SOFTWARE_BIT (1ul << IRQ_SOFTWARE)

static unsigned failures;

/* The time that a WFI takes. After `us` the timer ends it in any case. */
static uint64_t wait_us(uint64_t us)
{
    uint64_t begin = read_time();
    timer_set(begin + us_to_ticks(us));
    wait_for_interrupt();
    return ticks_to_ns(read_time() - begin) / 1000;
}

static void check(bool holds, const char *what, uint64_t us)
{
    if (holds)
        return;
    print("failed: %s: %lu us\n", what, us);
    failures++;
}

bool guest_main(void)
{
    uint64_t n = arg_number("n", 20, 1, 1000000), us = arg_number("us", 5000, 1000, 1000000);
    args_finish();
    for (uint64_t i = 0; i < n; i++) {
        csr_write(sie, TIMER_BIT);
        uint64_t slept = wait_us(us);
        check(slept >= us, "with nothing pending it slept for too short", slept);
        csr_write(sie, TIMER_BIT | SOFTWARE_BIT);
        csr_set(sip, SOFTWARE_BIT);
        slept = wait_us(us);
        check(slept < us / 2, "with a software interrupt pending it slept", slept);
        csr_clear(sip, SOFTWARE_BIT);
        slept = wait_us(us);
        check(slept >= us, "behind that it slept for too short", slept);
        csr_set(sip, SOFTWARE_BIT);
        csr_write(sie, TIMER_BIT);
        slept = wait_us(us);
        check(slept >= us, "with one that isn't enabled it slept for too short", slept);
        csr_clear(sip, SOFTWARE_BIT);
        slept = wait_us(0);
        check(slept < us / 2, "with a timer that is due it slept", slept);
    }
    csr_write(sie, 0);
    print("@result {\"job\":\"pending\",\"ok\":%s}\n", failures == 0 ? "true" : "false");
    return failures == 0;
}
