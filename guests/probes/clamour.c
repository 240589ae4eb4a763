/* A device's interrupt that comes again as soon as it has been served: harts that claim and complete it as fast as they can, and make the device ask
 * again, for `ms`. All harts listen. The first one is busy with nothing, or sleeps: where it runs, the interrupt comes in. Who beside it is late? */
#include "args.h"
#include "clock_device.h"
#include "console.h"
#include "csr.h"
#include "machine.h"
#include "plic.h"
#include "sbi.h"
#include "start.h"
#include "timer.h"
#include "trap.h"

#define STACK_WORDS 128

struct server {
    struct secondary start;
    struct irqchip plic;
    uint64_t served;
    uint64_t stack[STACK_WORDS] __attribute__((aligned(16)));
};

static struct server servers[MAX_HARTS];
static struct device the_clock;
static volatile bool stopping;
static uint64_t roles;

static void serve(void *which)
{
    struct server *server = which;
    unsigned role = roles ? 1 + (server - servers) % roles : 0;
    while (!stopping) {
        clock_ask_again(&the_clock);
        if (role != 1)
            server->served += irqchip_claim(&server->plic) == the_clock.source;
        if (role != 2)
            irqchip_complete(&server->plic, the_clock.source);
    }
    sbi_hart_stop();
}

bool guest_main(void)
{
    uint64_t ms = arg_number("ms", 100, 1, 1000000), count = arg_number("servers", 3, 1, MAX_HARTS);
    uint64_t idle = arg_number("idle", 0, 0, 1);
    roles = arg_number("roles", 0, 0, 2);
    args_finish();
    the_clock = device_find(CLOCK_GOLDFISH);
    for (unsigned i = 0; i < machine.hart_count; i++) {
        servers[i].plic = plic_find(machine.harts[i].id);
        irqchip_enable(&servers[i].plic, the_clock.source, LEVEL_HIGH);
    }
    clock_set_alarm(&the_clock, 0);
    for (unsigned i = 1; i < machine.hart_count && i <= count; i++) {
        servers[i].start = (struct secondary){ servers[i].stack + STACK_WORDS, serve, &servers[i] };
        start_hart(machine.harts[i].id, &servers[i].start);
    }
    if (idle)
        sleep_us(ms * 1000);
    for (uint64_t end = read_time() + us_to_ticks(idle ? 0 : ms * 1000); read_time() < end;)
        ;
    stopping = true;
    uint64_t served = 0;
    for (unsigned i = 1; i < machine.hart_count; i++) {
        while (sbi_hart_status(machine.harts[i].id).value != SBI_HART_STOPPED)
            ;
        served += servers[i].served;
    }
    clock_acknowledge(&the_clock);
    print("@result {\"job\":\"clamour\",\"served\":%lu,\"ok\":%s}\n", served, served ? "true" : "false");
    return served;
}
