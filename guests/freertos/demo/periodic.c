/* The highest task: once in each period it notes how long ago the period began. */
#include "demo.h"
#include "ainori_sbi.h"
#include "machine.h"
#include "sbi.h"

/* Value of the trace mark at the start of a job. */
#define MARK_JOB 1

static StackType_t stack[512];
static StaticTask_t task;
static struct progress progress;

/* Notes one job, which was due at the tick `release`, `delay` ticks of `time` ago. */
static void record(TickType_t release, uint64_t delay)
{
    bool is_late = delay > us_to_ticks(parameters.period_us);
    progress.periods++;
    progress.missed += is_late;
    if (delay > progress.worst)
        progress.worst = delay;
    if (measurement.over || release <= parameters.begin)
        return;
    histogram_add(&measurement.delay, delay);
    measurement.missed += is_late;
    measurement.over = measurement.delay.count == parameters.periods;
    if (measurement.over)
        reporter_wake();
}

static void run(void *unused)
{
    (void)unused;
    uint64_t periods_per_report = parameters.report_ms * 1000 / parameters.period_us;
    TickType_t release = 0;
    for (;;) {
        /* A job that is late doesn't wait, so no period is left out: each one is counted, with its own delay. */
        xTaskDelayUntil(&release, parameters.period_us / parameters.tick_us);
        uint64_t delay = read_time() - port_tick_deadline(release);
        if (parameters.marks)
            sbi_call(AINORI_EID, AINORI_MARK, MARK_JOB, 0, 0);
        record(release, delay);
        /* Right after a job the reporter has nearly a whole period for its line: even where the SBI prints with interrupts off,
         * the next job is not late for it. */
        if (periods_per_report != 0 && progress.periods % periods_per_report == 0)
            reporter_wake();
    }
}

struct progress periodic_progress(void)
{
    taskENTER_CRITICAL();
    struct progress seen = progress;
    progress.worst = 0;
    taskEXIT_CRITICAL();
    return seen;
}

void periodic_create(void)
{
    xTaskCreateStatic(run, "periodic", sizeof stack / sizeof *stack, NULL, PRIORITY_PERIODIC, stack, &task);
}
