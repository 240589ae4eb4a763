/* Stores to an address that is not its own. With `own=BYTES` so many from there on should be: then it stores to all of them, and has to find again what it has stored. */
#include "args.h"
#include "console.h"
#include "machine.h"
#include "start.h"
#include "timer.h"

#define VALUE 0x600dbad600dbadul

/* The program itself must not be there. */
static bool own_are_kept(uint64_t address, uint64_t bytes)
{
    volatile uint64_t *words = (volatile uint64_t *)(uintptr_t)address;
    uint64_t count = bytes / sizeof(uint64_t), found = 0;
    for (uint64_t i = 0; i < count; i++)
        words[i] = VALUE ^ i << 40;
    for (uint64_t i = 0; i < count; i++)
        found += words[i] == (VALUE ^ i << 40);
    print("%lu of %lu words are as they were stored\n", found, count);
    print("@result {\"job\":\"wild-store\",\"words\":%lu,\"ok\":%s}\n", found, found == count ? "true" : "false");
    return found == count;
}

bool guest_main(void)
{
    uint64_t ms = arg_number("ms", 0, 0, 1000000);
    uint64_t address = arg_number("addr", machine.memory_base + machine.memory_size, 0, UINT64_MAX), own = arg_number("own", 0, 0, UINT64_MAX);
    args_finish();
    sleep_us(ms * 1000);
    print("storing to 0x%lx\n", address);
    if (own)
        return own_are_kept(address, own);
    *(volatile uint64_t *)(uintptr_t)address = VALUE;
    print("nobody stopped the store\n");
    print("@result {\"job\":\"wild-store\",\"ok\":false}\n");
    return false;
}
