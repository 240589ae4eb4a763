/* The task that prints the results when all is over. */
#include "demo.h"
#include "sbi.h"

static StackType_t stack[512];
static StaticTask_t task;
static TaskHandle_t handle;

static void run(void *unused)
{
    (void)unused;
    do
        ulTaskNotifyTake(pdTRUE, portMAX_DELAY);
    while (!(task_set_is_over() && exchange_is_over()));
    ticks.over = true;
    bool ok = task_set_print_result();
    ok = exchange_print_result() && ok;
    if (!parameters.forever)
        sbi_shutdown(ok ? SBI_REASON_NONE : SBI_REASON_FAILURE);
    vTaskSuspend(NULL);
}

void reporter_wake(void) { xTaskNotifyGive(handle); }

void reporter_create(void)
{
    /* On the core with the tick: so the tick's handler isn't in the middle of something when this reads what it has noted. */
    handle = task_create(run, "reporter", NULL, PRIORITY_REPORTER, 0, stack, sizeof stack / sizeof *stack, &task);
}
