/* The demo: a periodic task that measures how late it is woken, beside a task that burns a share of the hart. */
#include "demo.h"
#include "ainori_sbi.h"
#include "args.h"
#include "console.h"
#include "machine.h"
#include "own_timer.h"
#include "sbi.h"
#include "start.h"
#include "trap.h"

/* Shorter ticks would leave no time for anything else. */
#define LEAST_TICK_US 50
#define MOST_TICK_US  1000

struct parameters parameters;
struct measurement measurement;

uint64_t greatest_common_divisor(uint64_t a, uint64_t b) { return b == 0 ? a : greatest_common_divisor(b, a % b); }

static void read_parameters(void)
{
    static const char *const ends[] = { "poweroff", "forever", NULL };
    struct parameters *p = &parameters;
    p->period_us = arg_number("period_us", 1000, LEAST_TICK_US, 10000000);
    p->periods = arg_number("periods", 10000, 1, 1000000000);
    p->burn_percent = arg_number("burn_percent", 30, 0, 100);
    p->burn_period_us = arg_number("burn_period_us", 500000, LEAST_TICK_US, 10000000);
    p->report_ms = arg_number("report_ms", 1000, 0, 1000000);
    p->begin_ms = arg_number("begin_ms", 0, 0, 1000000);
    p->seed = arg_number("seed", 0, 0, UINT64_MAX);
    p->forever = arg_choice("end", ends) == 1;
    p->marks = arg_number("marks", 0, 0, 1) && sbi_probe(AINORI_EID);
    uint64_t set = task_set_read();
    p->is_set = set != 0;
    if (p->is_set)
        p->run_ms = arg_number("run_ms", 1000, 1, 1000000);
    uint64_t both = p->is_set ? set : greatest_common_divisor(p->period_us, p->burn_period_us);
    p->tick_us = arg_number("tick_us", greatest_common_divisor(both, MOST_TICK_US), 1, 10000000);
    echo_read();
    work_read();
    give_way_read();
    args_finish();

    if (both % p->tick_us != 0)
        fail("bootargs: tick_us=%lu doesn't divide all periods, as their greatest common divisor is %lu us", p->tick_us, both);
    if (p->tick_us < LEAST_TICK_US)
        fail("bootargs: these periods need a tick of %lu us; choose multiples of %d us", p->tick_us, LEAST_TICK_US);
    p->begin = p->begin_ms * 1000 / p->tick_us;
}

bool guest_main(void)
{
    own_timer_needed("the port's tick is the supervisor's own timer");
    read_parameters();
    if (parameters.is_set) {
        print("FreeRTOS " tskKERNEL_VERSION_NUMBER ": a set of tasks for %lu ms\n", parameters.run_ms);
        port_set_tick_period(us_to_ticks(parameters.tick_us));
        task_set_create();
        reporter_create();
        echo_create();
        work_create();
        give_way_create();
        vTaskStartScheduler(); /* does not return */
    }
    print("FreeRTOS " tskKERNEL_VERSION_NUMBER ": %lu periods of %lu us, burner %lu %% of %lu us\n", parameters.periods,
          parameters.period_us, parameters.burn_percent, parameters.burn_period_us);
    port_set_tick_period(us_to_ticks(parameters.tick_us));
    measurement.tick_period.nominal = us_to_ticks(parameters.tick_us);
    periodic_create();
    reporter_create();
    burner_create();
    echo_create();
    work_create();
    give_way_create();
    vTaskStartScheduler(); /* does not return */
    return false;
}

void tick_taken(uint64_t deadline, uint64_t now)
{
    if (parameters.is_set || measurement.over || deadline <= port_tick_deadline(parameters.begin))
        return;
    if (measurement.tick_interrupts > 0)
        spread_add(&measurement.tick_period, now - measurement.last_tick);
    histogram_add(&measurement.handler_delay, now - deadline);
    measurement.tick_interrupts++;
    measurement.last_tick = now;
}

/* The kernel asks for these functions by name. */
void vApplicationIdleHook(void) { wait_for_interrupt(); }

void vApplicationStackOverflowHook(TaskHandle_t task, char *name)
{
    (void)task;
    fail("the stack of task \"%s\" overflowed", name);
}
