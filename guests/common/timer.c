#include "timer.h"
#include "csr.h"
#include "machine.h"
#include "sbi.h"

void timer_set(uint64_t deadline)
{
    if (machine.has_sstc)
        csr_write(CSR_STIMECMP, deadline);
    else
        sbi_call(SBI_TIME, SBI_TIME_SET, deadline, 0, 0);
}

/* Sleeps until `*count` is at least `value` or the deadline is over. */
static void wait(const volatile uint64_t *count, uint64_t value, uint64_t deadline)
{
    timer_set(deadline);
    while (*count < value && read_time() < deadline) {
        /* With interrupts off nothing gets lost between the look at the count and the sleep: a pending interrupt ends wfi. */
        csr_set(sie, 1ul << IRQ_TIMER);
        wait_for_interrupt();
        csr_clear(sie, 1ul << IRQ_TIMER);
        interrupts_on();
        interrupts_off();
    }
    timer_set(NEVER);
}

bool wait_for_count(const volatile uint64_t *count, uint64_t value, uint64_t ms)
{
    wait(count, value, read_time() + us_to_ticks(ms * 1000));
    return *count >= value;
}

void sleep_us(uint64_t us)
{
    static const volatile uint64_t nothing;
    wait(&nothing, 1, read_time() + us_to_ticks(us));
}
