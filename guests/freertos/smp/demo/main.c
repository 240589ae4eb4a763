/* The SMP demo: a set of tasks, each on a core of its own or on any, and two tasks that talk to each other across cores. */
#include "demo.h"
#include "args.h"
#include "console.h"
#include "machine.h"
#include "start.h"
#include "trap.h"

/* Shorter ticks would leave no time for anything else. */
#define LEAST_TICK_US 50
#define MOST_TICK_US  1000

struct parameters parameters;
struct ticks ticks;

uint64_t greatest_common_divisor(uint64_t a, uint64_t b) { return b == 0 ? a : greatest_common_divisor(b, a % b); }

static void read_parameters(void)
{
    static const char *const ends[] = { "poweroff", "forever", NULL };
    struct parameters *p = &parameters;
    p->begin_ms = arg_number("begin_ms", 0, 0, 1000000);
    p->run_ms = arg_number("run_ms", 1000, 1, 1000000);
    p->items = arg_number("items", 0, 0, 1000000000);
    p->forever = arg_choice("end", ends) == 1;
    p->uses_float = arg_number("float", 0, 0, 1);
    uint64_t periods = task_set_read();
    p->tick_us = arg_number("tick_us", greatest_common_divisor(periods, MOST_TICK_US), 1, 10000000);
    args_finish();

    if (periods == 0 && p->items == 0)
        fail("bootargs: nothing to do: give task1=PERIOD,INSTRUCTIONS,DEADLINE,PRIORITY, or items=N");
    if (periods % p->tick_us != 0)
        fail("bootargs: tick_us=%lu doesn't divide all periods, as their greatest common divisor is %lu us", p->tick_us, periods);
    if (p->tick_us < LEAST_TICK_US)
        fail("bootargs: these periods need a tick of %lu us; choose multiples of %d us", p->tick_us, LEAST_TICK_US);
    p->begin = p->begin_ms * 1000 / p->tick_us;
    /* The first tick at the earliest: a period doesn't start before the clock does. */
    if (p->begin == 0)
        p->begin = 1;
    p->end = p->begin + p->run_ms * 1000 / p->tick_us;
}

TaskHandle_t task_create(TaskFunction_t code, const char *name, void *argument, UBaseType_t priority, uint64_t core, StackType_t *stack,
                         uint32_t words, StaticTask_t *task)
{
    UBaseType_t cores = core == ANY_CORE ? tskNO_AFFINITY : 1ul << core;
    return xTaskCreateStaticAffinitySet(code, name, words, argument, priority, stack, task, cores);
}

bool guest_main(void)
{
    machine_needs("sstc", "the port's tick is the supervisor's own timer");
    port_init();
    read_parameters();
    print("FreeRTOS " tskKERNEL_VERSION_NUMBER " on %d cores: harts", CORES);
    for (unsigned core = 0; core < CORES; core++)
        print("%s %lu", core == 0 ? "" : ",", port_cores[core].hart);
    print("\n");
    port_set_tick_period(us_to_ticks(parameters.tick_us));
    task_set_create();
    exchange_create();
    reporter_create();
    vTaskStartScheduler(); /* does not return */
    return false;
}

void tick_taken(uint64_t deadline, uint64_t now)
{
    if (ticks.over || deadline <= port_tick_deadline(parameters.begin))
        return;
    histogram_add(&ticks.handler_delay, now - deadline);
    ticks.last = now;
}

/* The kernel asks for these functions by name, and declares the first one nowhere. */
void vApplicationPassiveIdleHook(void);
void vApplicationPassiveIdleHook(void) { wait_for_interrupt(); }

void vApplicationStackOverflowHook(TaskHandle_t task, char *name)
{
    (void)task;
    fail("the stack of task \"%s\" overflowed", name);
}
