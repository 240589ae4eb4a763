/* Are the bytes of a file where the manifest has it loaded, in each life of the guest? Byte n of the file is n * 7 modulo 251, and `bytes` of them
 * are from `at` on; around them is nothing. Before `until_ms` of the machine's time are over it overwrites them and reboots. */
#include "args.h"
#include "console.h"
#include "csr.h"
#include "machine.h"
#include "sbi.h"
#include "start.h"
#include "timer.h"

#define AROUND 64

static uint8_t expected(uint64_t index) { return (uint8_t)(index * 7 % 251); }

bool guest_main(void)
{
    uint64_t at = arg_number("at", 0, machine.memory_base, UINT64_MAX), bytes = arg_number("bytes", 0, 1, 1 << 20);
    uint64_t until_ms = arg_number("until_ms", 0, 0, 100000);
    args_finish();
    volatile uint8_t *file = (volatile uint8_t *)(uintptr_t)at;
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < bytes; i++)
        wrong += file[i] != expected(i);
    for (uint64_t i = 0; i < AROUND; i++)
        wrong += (file[bytes + i] != 0) + (file[-1 - (int64_t)i] != 0);
    print("@result {\"job\":\"loaded\",\"bytes\":%lu,\"wrong\":%lu,\"ok\":%s}\n", bytes, wrong, wrong == 0 ? "true" : "false");
    if (wrong == 0 && read_time() < us_to_ticks(until_ms * 1000)) {
        for (uint64_t i = 0; i < bytes; i++)
            file[i] = 0xff;
        sbi_call(SBI_SRST, SBI_SRST_RESET, SBI_RESET_COLD_REBOOT, SBI_REASON_NONE, 0);
    }
    return wrong == 0;
}
