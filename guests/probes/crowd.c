/* A crowd of timers: each hart sleeps until the next whole period of the machine's `time`, the same for all harts and all guests that do so, and
 * may then fence all and interrupt all, and print the beginning of a line, which never ends. Nobody takes the others' interrupts: who sends them is
 * what is tried. With a period that is never over: only sleeps. All may want a reboot at one moment. */
#include "args.h"
#include "console.h"
#include "csr.h"
#include "machine.h"
#include "sbi.h"
#include "start.h"
#include "timer.h"
#include "trap.h"

#define STACK_WORDS 512
#define ALL_HARTS UINT64_MAX

static struct secondary secondaries[MAX_HARTS];
static uint64_t stacks[MAX_HARTS][STACK_WORDS] __attribute__((aligned(16)));
static uint64_t period, bytes, reboot;
static bool fences, ipis;

static void timer(void) { csr_write(CSR_STIMECMP, NEVER); }

static __attribute__((noreturn)) void sleep_and_wake(void *argument)
{
    static const char text[] = "x@result {\"ok\":fal";
    (void)argument;
    csr_write(sie, 1ul << IRQ_TIMER);
    for (uint64_t round = 0;; round++) {
        uint64_t next = (read_time() / period + 1) * period;
        bool ends = next >= reboot;
        if (ends)
            next = reboot;
        csr_write(CSR_STIMECMP, next);
        while (read_time() < next)
            wait_for_interrupt();
        if (ends)
            sbi_call(SBI_SRST, SBI_SRST_RESET, SBI_RESET_COLD_REBOOT, SBI_REASON_NONE, 0);
        if (fences)
            sbi_remote_sfence_vma(0, ALL_HARTS, 0, UINT64_MAX);
        if (ipis)
            sbi_send_ipi(0, ALL_HARTS);
        if (bytes != 0)
            sbi_call(SBI_DBCN, SBI_DBCN_WRITE, bytes, (uintptr_t)text + round % 2, 0);
    }
}

bool guest_main(void)
{
    period = us_to_ticks(arg_number("period_us", 100, 1, UINT32_MAX));
    bytes = arg_number("bytes", 0, 0, 8);
    uint64_t lives = us_to_ticks(arg_number("reboot_us", 0, 0, UINT32_MAX));
    fences = arg_number("fences", 0, 0, 1);
    ipis = arg_number("ipis", 0, 0, 1);
    args_finish();
    reboot = lives != 0 ? (read_time() / lives + 1) * lives : NEVER;
    on_interrupt(IRQ_TIMER, timer);
    for (unsigned i = 1; i < machine.hart_count; i++) {
        secondaries[i] = (struct secondary){ &stacks[i][STACK_WORDS], sleep_and_wake, NULL };
        sbi_hart_start(i, (uint64_t)(uintptr_t)secondary_start, (uint64_t)(uintptr_t)&secondaries[i]);
    }
    sleep_and_wake(NULL);
}
