/* Jumps to an address that is not its own. */
#include "args.h"
#include "console.h"
#include "machine.h"
#include "start.h"
#include "timer.h"

bool guest_main(void)
{
    uint64_t ms = arg_number("ms", 0, 0, 1000000);
    uint64_t address = arg_number("addr", machine.memory_base + machine.memory_size, 0, UINT64_MAX);
    args_finish();
    sleep_us(ms * 1000);
    print("jumping to 0x%lx\n", address);
    ((void (*)(void))(uintptr_t)address)();
    print("nobody stopped the jump\n");
    print("@result {\"job\":\"wild-jump\",\"ok\":false}\n");
    return false;
}
