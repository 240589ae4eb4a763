/* Shuts itself down at `at_us` of the machine's time, computing (or sleeping, sleep=1) until then; each `every_us` again in later lives. */
#include "args.h"
#include "csr.h"
#include "machine.h"
#include "console.h"
#include "sbi.h"
#include "start.h"
#include "timer.h"
#include "trap.h"

bool guest_main(void)
{
    uint64_t at_us = arg_number("at_us", 0, 0, 1000000000);
    uint64_t every_us = arg_number("every_us", 0, 0, 1000000000);
    uint64_t bytes = arg_number("bytes", 0, 0, 100000);
    bool sleeps = arg_number("sleep", 1, 0, 1);
    args_finish();
    uint64_t at = us_to_ticks(at_us);
    while (every_us != 0 && (int64_t)(read_time() - at) >= 0)
        at += us_to_ticks(every_us);
    if (sleeps && read_time() < at)
        sleep_us(ticks_to_ns(at - read_time()) / 1000);
    while (read_time() < at)
        ;
    for (uint64_t i = 0; i < bytes; i += 32)
        console_write("abcdefghijklmnopqrstuvwxyz01234\n", 32);
    print("@result {\"job\":\"stopat\",\"ok\":true}\n");
    return true;
}
