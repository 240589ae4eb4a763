/* Messages to interrupt files (AIA 1.0, section 3.5): are all of them taken, each once, and how long does that take? The boot hart sends them to its guest's last
 * hart, by nothing but a store. */
#include <stdatomic.h>
#include "args.h"
#include "console.h"
#include "csr.h"
#include "histogram.h"
#include "imsic.h"
#include "machine.h"
#include "sbi.h"
#include "start.h"
#include "timer.h"
#include "trap.h"
#include "xorshift.h"

#define STACK_WORDS 512
#define IDENTITY    1

static struct secondary hearer;
static uint64_t stack[STACK_WORDS] __attribute__((aligned(16)));
static uint64_t busy, deaf, ends;
static atomic_ulong sent_at; /* when the message under way was sent */
static atomic_ulong taken, spurious;
static atomic_bool is_ready;
static struct histogram delay;

static void take(void)
{
    uint64_t now = read_time(), at = atomic_load(&sent_at);
    if (imsic_claim() != IDENTITY || at == 0) {
        atomic_fetch_add(&spurious, 1);
        return;
    }
    histogram_add(&delay, now - at);
    atomic_store(&sent_at, 0);
    atomic_fetch_add(&taken, 1);
}

static void hear(void *argument)
{
    (void)argument;
    imsic_enable(IDENTITY);
    csr_write(sie, deaf ? 0 : 1ul << IRQ_EXTERNAL);
    atomic_store(&is_ready, true);
    if (ends)
        sbi_hart_stop();
    interrupts_on();
    for (;;)
        if (!busy)
            wait_for_interrupt();
}

bool guest_main(void)
{
    uint64_t wanted = arg_number("n", 1000, 1, 1000000000);
    uint64_t period = us_to_ticks(arg_number("period_us", 100, 1, 10000000));
    uint64_t phase = us_to_ticks(arg_number("phase_us", 0, 0, 10000000));
    uint64_t spread = us_to_ticks(arg_number("spread_us", 0, 0, 10000000));
    /* It computes all the time; it has its external interrupt off; it has stopped. */
    busy = arg_number("busy", 0, 0, 1);
    deaf = arg_number("deaf", 0, 0, 1);
    ends = arg_number("ends", 0, 0, 1);
    args_finish();
    if (machine.hart_count < 2)
        fail("this probe needs two harts");
    struct hart *to = &machine.harts[machine.hart_count - 1];
    if (to->id == machine.boot_hart)
        to = &machine.harts[0];
    volatile uint32_t *page = imsic_file(to->interrupt_controller);
    if (page == NULL)
        fail("this probe needs interrupt files");
    on_interrupt(IRQ_EXTERNAL, take);
    hearer = (struct secondary){ stack + STACK_WORDS, hear, NULL };
    start_hart(to->id, &hearer);
    while (!atomic_load(&is_ready))
        pause_hint();
    uint64_t random = 1, next = read_time();
    for (uint64_t i = 0; i < wanted; i++) {
        next = next - next % period + period;
        uint64_t until = next + phase + (spread == 0 ? 0 : xorshift(&random) % spread);
        while (read_time() < until)
            pause_hint();
        atomic_store(&sent_at, read_time());
        *page = IDENTITY;
        /* The next one isn't sent before this one is taken: the file would have one message for both. */
        while (!deaf && !ends && atomic_load(&sent_at) != 0)
            pause_hint();
        next = read_time();
    }
    /* What comes now would be one twice. */
    sleep_us(1000);
    uint64_t heard = atomic_load(&taken), twice = atomic_load(&spurious);
    bool ok = heard == (deaf || ends ? 0 : wanted) && twice == 0;
    print("@result {\"job\":\"messages\",\"sent\":%lu,\"taken\":%lu,\"twice\":%lu,\"delay_ns\":", wanted, heard, twice);
    histogram_print_summary(&delay);
    print(",\"ok\":%s}\n", ok ? "true" : "false");
    return ok;
}
