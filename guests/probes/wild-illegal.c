/* Runs an instruction that doesn't exist, with nobody in the guest to handle it (stvec = 0). On the bare machine it then traps
 * at address 0 for ever. */
#include "args.h"
#include "console.h"
#include "csr.h"
#include "start.h"
#include "timer.h"

bool guest_main(void)
{
    uint64_t ms = arg_number("ms", 0, 0, 1000000), open = arg_number("open", 0, 0, 1);
    args_finish();
    sleep_us(ms * 1000);
    print("illegal instruction, no trap handler\n");
    if (open)
        console_write("a line without an end", 21);
    csr_write(stvec, 0);
    __asm__ volatile(".word 0"); /* all zeros is defined to be illegal */
    print("nobody stopped the illegal instruction\n");
    print("@result {\"job\":\"wild-illegal\",\"ok\":false}\n");
    return false;
}
