/* Is a guest found that hangs? It feeds the watchdog (Allwinner's A31) `feeds` times, each `feed_us`, and then no more: it computes with interrupts off,
 * sleeps, or ends if `until_ms` of the machine's time are over. With `seconds` it first makes the watchdog its own, as Linux's driver does, with an
 * interval of so many; with `off=1` it switches it off. */
#include "args.h"
#include "console.h"
#include "csr.h"
#include "fdt.h"
#include "machine.h"
#include "sbi.h"
#include "start.h"
#include "timer.h"
#include "trap.h"

#define CONTROL 0x10
#define CONFIG  0x14
#define MODE    0x18
#define RESTART 0x14afu

static uint64_t base;

static volatile uint32_t *reg(uint64_t offset) { return (volatile uint32_t *)(uintptr_t)(base + offset); }

static void find(const char *compatible)
{
    struct fdt_node node = { 0 };
    uint64_t size;
    while (fdt_next(&machine.fdt, &node))
        if (fdt_list_has(&machine.fdt, &node, "compatible", compatible) && fdt_reg(&machine.fdt, &node, &base, &size))
            return;
    fail("the device tree has no device `%s`", compatible);
}

void hang_busy(void);

bool guest_main(void)
{
    static const char *const ways[] = { "busy", "sleep", NULL };
    uint64_t feeds = arg_number("feeds", 10, 0, 100000), feed_us = arg_number("feed_us", 10000, 1, 10000000);
    uint64_t until_ms = arg_number("until_ms", 0, 0, 1000000), seconds = arg_number("seconds", 0, 0, 6);
    bool off = arg_number("off", 0, 0, 1), sleeps = arg_choice("way", ways) == 1;
    args_finish();
    find("allwinner,sun6i-a31-wdt");
    if (seconds != 0) {
        *reg(MODE) = 0;
        *reg(MODE) = (uint32_t)seconds << 4;
        *reg(CONTROL) = RESTART;
        *reg(CONFIG) |= 1;
        *reg(MODE) |= 1;
    }
    for (uint64_t i = 0; i < feeds; i++) {
        sleep_us(feed_us);
        *reg(CONTROL) = RESTART;
    }
    bool hangs = read_time() < us_to_ticks(until_ms * 1000);
    print("@result {\"job\":\"hang\",\"fed_us\":%lu,\"ok\":true}\n", read_time() * 1000000 / machine.timebase_hz);
    if (off) {
        *reg(MODE) = 0;
        sleep_us(until_ms * 1000);
        return true;
    }
    if (!hangs)
        return true;
    csr_write(sie, 0);
    if (sleeps)
        for (;;)
            __asm__ volatile("wfi");
    hang_busy();
    return false;
}

/* A place of its own, which a report can be compared with. */
__attribute__((noinline)) void hang_busy(void)
{
    for (;;)
        __asm__ volatile("" ::: "memory");
}
