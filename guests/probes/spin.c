/* What does it cost to say that one spins (WRS.NTO)? It is counted from outside, at the places that spin_places.S names. All harts of the device
 * tree say it so many times in a row, and nothing else: where they share a hart, the one that runs always spins for another that waits, as behind a
 * lock whose holder lost its hart. */
#include <stdatomic.h>
#include "args.h"
#include "console.h"
#include "machine.h"
#include "sbi.h"
#include "start.h"
#include "timer.h"
#include "trap.h"

#define STACK_WORDS 512

void spin(uint64_t times); /* spin_places.S */

struct worker {
    struct secondary start;
    uint64_t stack[STACK_WORDS] __attribute__((aligned(16)));
};

static struct worker workers[MAX_HARTS];
static atomic_uint finished;
static uint64_t n;

static void secondary(void *unused)
{
    (void)unused;
    spin(n);
    atomic_fetch_add(&finished, 1);
    sbi_hart_stop();
}

bool guest_main(void)
{
    machine_needs("zawrs", "WRS.NTO belongs to it");
    n = arg_number("n", 1000, 1, 1000000);
    args_finish();
    for (unsigned i = 0; i < machine.hart_count; i++) {
        if (machine.harts[i].id == machine.boot_hart)
            continue;
        workers[i].start = (struct secondary){ workers[i].stack + STACK_WORDS, secondary, NULL };
        start_hart(machine.harts[i].id, &workers[i].start);
    }
    spin(n);
    while (atomic_load(&finished) < machine.hart_count - 1)
        sleep_us(100);
    print("@result {\"job\":\"spin\",\"harts\":%u,\"samples\":%lu,\"ok\":true}\n", machine.hart_count, n);
    return true;
}
