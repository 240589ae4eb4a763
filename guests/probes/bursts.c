/* Computes in bursts, the first at `phase_us` behind a multiple of `pause_us` of the machine's `time`, so that guests can be told to do so at the same
 * time. Without `n`: one that never ends, on all harts, which gives the hypervisor no occasion to look at it, or with `yields` as many as can be. */
#include "ainori_sbi.h"
#include "args.h"
#include "console.h"
#include "csr.h"
#include "machine.h"
#include "sbi.h"
#include "start.h"
#include "timer.h"

#define STACK_WORDS 128

static struct secondary secondaries[MAX_HARTS];
static uint64_t stacks[MAX_HARTS][STACK_WORDS] __attribute__((aligned(16)));

static __attribute__((noreturn)) void compute(void *argument)
{
    (void)argument;
    /* Something changes all the time: else it would be taken for one that spins. */
    for (uint64_t done = 0;; done++)
        __asm__ volatile("" : "+r"(done));
}

static __attribute__((noreturn)) void yield_again_and_again(void *argument)
{
    (void)argument;
    for (;;)
        sbi_call(AINORI_EID, AINORI_YIELD, 0, 0, 0);
}

static void compute_until(uint64_t time)
{
    while (read_time() < time)
        ;
}

bool guest_main(void)
{
    uint64_t n = arg_number("n", 0, 0, 1000000);
    uint64_t us = arg_number("us", 1000, 1, 1000000);
    uint64_t pause_us = arg_number("pause_us", 10000, 1, 1000000);
    uint64_t phase_us = arg_number("phase_us", 0, 0, 1000000);
    bool yields = arg_number("yields", 0, 0, 1);
    args_finish();
    if (n == 0) {
        void (*work)(void *) = yields ? yield_again_and_again : compute;
        for (unsigned i = 0; i < machine.hart_count; i++) {
            if (machine.harts[i].id == machine.boot_hart)
                continue;
            secondaries[i] = (struct secondary){ &stacks[i][STACK_WORDS], work, NULL };
            start_hart(machine.harts[i].id, &secondaries[i]);
        }
        work(NULL);
    }
    for (uint64_t i = 0; i < n; i++) {
        uint64_t begin = (read_time() / us_to_ticks(pause_us) + 1) * us_to_ticks(pause_us) + us_to_ticks(phase_us);
        sleep_us(ticks_to_ns(begin - read_time()) / 1000);
        compute_until(begin + us_to_ticks(us));
    }
    print("@result {\"job\":\"bursts\",\"bursts\":%lu,\"ok\":true}\n", n);
    return true;
}
