/* Shuts itself down in good order. */
#include "args.h"
#include "console.h"
#include "sbi.h"
#include "start.h"
#include "timer.h"
#include "trap.h"

bool guest_main(void)
{
    uint64_t ms = arg_number("ms", 0, 0, 1000000);
    bool legacy = arg_number("legacy", 0, 0, 1);
    args_finish();
    sleep_us(ms * 1000);
    print("@result {\"job\":\"selfshutdown\",\"ok\":true}\n");
    if (legacy) {
        sbi_call(SBI_LEGACY_SHUTDOWN, 0, 0, 0, 0);
        fail("the legacy shutdown returned");
    }
    return true;
}
