/* Takes a hart from others again and again, and gives it back for some microseconds, at times that are just the wrong ones: two of these, on two harts,
 * keep a less urgent vCPU that may run on both from being watched over, if the hypervisor can be kept from it. Times are the machine's, so that the two
 * agree. */
#include "args.h"
#include "console.h"
#include "csr.h"
#include "machine.h"
#include "sbi.h"
#include "start.h"
#include "timer.h"
#include "trap.h"
#include "xorshift.h"

/* When the first cycle begins, and for how long the hart is taken in it before and behind the short pause. */
#define BEGIN_US 200000
#define BEFORE_US 150
#define BEHIND_US 130

static void nap(uint64_t until)
{
    csr_write(CSR_STIMECMP, until);
    while (read_time() < until)
        wait_for_interrupt();
}

static void take_hart(uint64_t until)
{
    csr_write(CSR_STIMECMP, UINT64_MAX);
    while (read_time() < until)
        ;
}

bool guest_main(void)
{
    uint64_t n = arg_number("n", 300, 1, 1000000);
    uint64_t cycle = us_to_ticks(arg_number("cycle_us", 6000, 4000, 1000000));
    bool is_second = arg_number("second", 0, 0, 1), for_ever = arg_number("for_ever", 0, 0, 1);
    args_finish();
    uint64_t origin = us_to_ticks(BEGIN_US), random = 12345;
    csr_write(sie, 1ul << IRQ_TIMER);
    for (uint64_t i = 0; i < n; i++) {
        /* The same in both, in ticks of 100 ns: two short pauses of the first, and when the second takes its hart behind the first of them. */
        uint64_t at = origin + (i + 1) * cycle;
        uint64_t pause = 160 + xorshift(&random) % 100;
        uint64_t later = 70 + xorshift(&random) % 90;
        uint64_t second_pause = 115 + xorshift(&random) % 45;
        uint64_t taken = at + pause + us_to_ticks(BEHIND_US);
        if (is_second) {
            nap(at + pause + later);
            take_hart(taken + second_pause + us_to_ticks(80));
        } else {
            nap(at - us_to_ticks(BEFORE_US));
            take_hart(at);
            nap(at + pause);
            take_hart(taken);
            nap(read_time() + second_pause);
            take_hart(for_ever && i + 1 == n ? UINT64_MAX : at + cycle - us_to_ticks(1500));
        }
    }
    csr_write(sie, 0);
    print("@result {\"job\":\"thief\",\"ok\":true}\n");
    return true;
}
