/* The task that prints: a line now and then, and the result at the end. */
#include "demo.h"
#include "console.h"
#include "machine.h"
#include "sbi.h"

static StackType_t stack[512];
static StaticTask_t task;
static TaskHandle_t handle;

/* Prints what was measured. Returns whether the guest did its job: no deadline missed, no tick lost. */
static bool print_result(void)
{
    const struct measurement *m = &measurement;
    /* How many ticks were due, by the clock that runs free: one without an interrupt of its own is lost. */
    uint64_t begin = port_tick_deadline(parameters.begin), ticks = (m->last_tick - begin) / us_to_ticks(parameters.tick_us);
    uint64_t lost = ticks - m->tick_interrupts;
    bool ok = m->missed == 0 && lost == 0;
    print("@result {\"job\":\"freertos\",\"period_us\":%lu,\"burn_percent\":%lu,\"periods\":%lu,\"missed\":%lu,\"ticks\":%lu,"
          "\"ticks_lost\":%lu,\"span\":{\"from\":%lu,\"to\":%lu},\"delay_ns\":", parameters.period_us, parameters.burn_percent, m->delay.count,
          m->missed, ticks, lost, begin, m->last_tick);
    histogram_print_summary(&m->delay);
    print(",\"handler_delay_ns\":");
    histogram_print_summary(&m->handler_delay);
    print(",\"tick_period_ns\":");
    spread_print_summary(&m->tick_period);
    print(",\"ok\":%s}\n", ok ? "true" : "false");
    histogram_print_buckets(&m->delay, "freertos", "delay_ns");
    histogram_print_buckets(&m->handler_delay, "freertos", "handler_delay_ns");
    spread_print_buckets(&m->tick_period, "freertos", "tick_period_ns");
    return ok;
}

static void print_progress(void)
{
    struct progress progress = periodic_progress();
    uint64_t tenths = (ticks_to_ns(progress.worst) + 50) / 100;
    print("%lu periods, worst delay %lu.%lu us", progress.periods, tenths / 10, tenths % 10);
    if (progress.missed > 0)
        print(", %lu missed", progress.missed);
    print("\n");
}

static void run(void *unused)
{
    (void)unused;
    bool reported = false;
    for (;;) {
        ulTaskNotifyTake(pdTRUE, portMAX_DELAY);
        bool over = (parameters.is_set ? task_set_is_over() : measurement.over) && echo_is_over();
        if (over && !reported) {
            work_wait();
            bool ok = parameters.is_set ? task_set_print_result() : print_result();
            if (echo_is_wanted())
                ok &= echo_print_result();
            if (work_is_wanted())
                work_print_result();
            reported = true;
            if (!parameters.forever)
                sbi_shutdown(ok ? SBI_REASON_NONE : SBI_REASON_FAILURE);
        } else if (parameters.report_ms > 0) {
            print_progress();
        }
    }
}

void reporter_wake(void) { xTaskNotifyGive(handle); }

void reporter_create(void)
{
    handle = xTaskCreateStatic(run, "reporter", sizeof stack / sizeof *stack, NULL, PRIORITY_REPORTER, stack, &task);
}
