/* Shuts itself down with reason failure, as a guest does that found something wrong. */
#include "args.h"
#include "console.h"
#include "start.h"
#include "timer.h"

bool guest_main(void)
{
    uint64_t ms = arg_number("ms", 0, 0, 1000000);
    args_finish();
    sleep_us(ms * 1000);
    print("@result {\"job\":\"shutdown-failure\",\"ok\":false}\n");
    return false;
}
