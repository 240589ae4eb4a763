/* Shuts itself down in good order. */
#include "args.h"
#include "console.h"
#include "start.h"
#include "timer.h"

bool guest_main(void)
{
    uint64_t ms = arg_number("ms", 0, 0, 1000000);
    args_finish();
    sleep_us(ms * 1000);
    print("@result {\"job\":\"selfshutdown\",\"ok\":true}\n");
    return true;
}
