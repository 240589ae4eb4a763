/* Harts that do nothing but send interrupts to one, faster than a hypervisor can hand them on: that one counts those that it takes, and shuts down
 * after so many. Does it get anywhere, and who beside it is late? */
#include <stdatomic.h>
#include "args.h"
#include "console.h"
#include "csr.h"
#include "machine.h"
#include "sbi.h"
#include "start.h"
#include "timer.h"
#include "trap.h"

#define STACK_WORDS 128

struct sender {
    struct secondary start;
    uint64_t stack[STACK_WORDS] __attribute__((aligned(16)));
};

static struct sender senders[MAX_HARTS];
static atomic_uint stopping, stopped;
static volatile uint64_t taken;

static void take(void)
{
    csr_clear(sip, 1ul << IRQ_SOFTWARE);
    taken++;
}

static void send(void *unused)
{
    (void)unused;
    while (!atomic_load(&stopping))
        sbi_send_ipi(1, machine.boot_hart);
    atomic_fetch_add(&stopped, 1);
    sbi_hart_stop();
}

bool guest_main(void)
{
    uint64_t n = arg_number("n", 1000, 1, 1000000000);
    args_finish();
    on_interrupt(IRQ_SOFTWARE, take);
    csr_set(sie, 1ul << IRQ_SOFTWARE);
    for (unsigned i = 0; i < machine.hart_count; i++) {
        if (machine.harts[i].id == machine.boot_hart)
            continue;
        senders[i].start = (struct secondary){ senders[i].stack + STACK_WORDS, send, NULL };
        start_hart(machine.harts[i].id, &senders[i].start);
    }
    uint64_t began = read_time();
    interrupts_on();
    while (taken < n)
        ;
    uint64_t ns = ticks_to_ns(read_time() - began);
    atomic_store(&stopping, 1);
    while (atomic_load(&stopped) < machine.hart_count - 1)
        ;
    interrupts_off();
    print("@result {\"job\":\"storm\",\"senders\":%u,\"taken\":%lu,\"ns\":%lu,\"ok\":true}\n", machine.hart_count - 1, taken, ns);
    return true;
}
