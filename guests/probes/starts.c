/* A hart that stops whenever it has been started, and another one that starts it again and sends it interrupts, as fast as it can, for `ms`: who
 * runs where the first would run, and how often is it disturbed for that? */
#include "args.h"
#include "console.h"
#include "csr.h"
#include "machine.h"
#include "sbi.h"
#include "start.h"
#include "trap.h"

#define STACK_WORDS 128

static uint64_t stack[STACK_WORDS] __attribute__((aligned(16)));
static volatile uint64_t started;

static void stop(void *unused)
{
    (void)unused;
    started++;
    sbi_hart_stop();
}

bool guest_main(void)
{
    uint64_t ms = arg_number("ms", 100, 1, 1000000);
    args_finish();
    if (machine.hart_count < 2)
        fail("a second hart is needed");
    uint64_t target = machine.harts[machine.harts[0].id == machine.boot_hart].id, asked = 0;
    struct secondary secondary = { stack + STACK_WORDS, stop, NULL };
    uint64_t end = read_time() + us_to_ticks(ms * 1000);
    while (read_time() < end) {
        sbi_hart_start(target, (uint64_t)(uintptr_t)secondary_start, (uint64_t)(uintptr_t)&secondary);
        sbi_send_ipi(1, target);
        asked++;
    }
    while (sbi_hart_status(target).value != SBI_HART_STOPPED)
        ;
    print("@result {\"job\":\"starts\",\"asked\":%lu,\"started\":%lu,\"ok\":true}\n", asked, started);
    return true;
}
