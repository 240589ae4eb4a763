/* All harts sleep for moments, by WFI or by the SBI, often with an interrupt pending that they don't take, wake each other, stop, and start each other. */
#include "args.h"
#include "console.h"
#include "csr.h"
#include "machine.h"
#include "sbi.h"
#include "start.h"
#include "timer.h"
#include "trap.h"
#include "xorshift.h"

#define STACK_WORDS 512

struct worker {
    struct secondary start;
    uint64_t random;
    uint64_t stack[STACK_WORDS] __attribute__((aligned(16)));
};

static struct worker workers[MAX_HARTS];
static uint64_t most;

static void start(uint64_t hart)
{
    sbi_hart_start(hart, (uint64_t)(uintptr_t)secondary_start, (uint64_t)(uintptr_t)&workers[hart].start);
}

/* Until its timer, or another hart's interrupt. These may be taken, or wake it only. */
static void nap(uint64_t random)
{
    csr_write(CSR_STIMECMP, read_time() + 10 + random % most);
    if (random >> 20 & 1) {
        csr_set(sip, 1ul << IRQ_SOFTWARE);
        csr_write(sie, 1ul << IRQ_TIMER);
    } else {
        csr_clear(sip, 1ul << IRQ_SOFTWARE);
        csr_write(sie, 1ul << IRQ_TIMER | 1ul << IRQ_SOFTWARE);
    }
    if (random >> 21 & 1)
        interrupts_on();
    if (random >> 22 & 1)
        wait_for_interrupt();
    else
        sbi_call(SBI_HSM, SBI_HSM_SUSPEND, 0, 0, 0);
    interrupts_off();
}

static __attribute__((noreturn)) void toss(void *argument)
{
    struct worker *me = argument;
    for (;;) {
        uint64_t random = xorshift(&me->random);
        interrupts_off();
        nap(random);
        sbi_send_ipi(1ul << (random >> 24) % machine.hart_count, 0);
        if ((random >> 40) % 61 == 0 && me != &workers[0])
            sbi_hart_stop();
        if ((random >> 40) % 13 == 0)
            start((random >> 50) % machine.hart_count);
    }
}

static void software(void) { csr_clear(sip, 1ul << IRQ_SOFTWARE); }

static void timer(void) { csr_write(CSR_STIMECMP, NEVER); }

bool guest_main(void)
{
    uint64_t seed = arg_number("seed", 1, 1, UINT32_MAX);
    most = us_to_ticks(arg_number("most_us", 60, 1, 100000));
    args_finish();
    on_interrupt(IRQ_SOFTWARE, software);
    on_interrupt(IRQ_TIMER, timer);
    for (unsigned i = 0; i < machine.hart_count; i++) {
        struct worker *worker = &workers[i];
        worker->start = (struct secondary){ &worker->stack[STACK_WORDS], toss, worker };
        worker->random = seed * 64 + i + 1;
    }
    for (unsigned i = 1; i < machine.hart_count; i++)
        start(i);
    toss(&workers[0]);
}
