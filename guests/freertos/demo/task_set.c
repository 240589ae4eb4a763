/* A set of periodic tasks that bootargs describe, instead of the demo's own: each computes so many instructions in each of its periods, whatever the
 * clock says meanwhile, and notes how long after the period's start it has done that. What `ainori check` says of such a set is compared with it. */
#include "demo.h"
#include "args.h"
#include "console.h"
#include "machine.h"
#include "trap.h"

#define MOST_TASKS 8
/* A task's priority in the kernel is this and its own. */
#define BASE_PRIORITY PRIORITY_REPORTER
/* Instructions of the loop that computes. */
#define INSTRUCTIONS_PER_ROUND 8

static struct member {
    uint64_t rounds;
    uint64_t period_us, deadline_us;
    TickType_t period; /* ticks of the kernel */
    UBaseType_t priority;
    uint64_t jobs, missed;
    uint64_t worst; /* from the period's start to the end of what it computes, ticks of `time` */
    StaticTask_t task;
    StackType_t stack[384];
} members[MOST_TASKS];
static unsigned count, working;
static TickType_t end;

uint64_t task_set_read(void)
{
    uint64_t divisor = 0;
    for (unsigned i = 0; i < MOST_TASKS; i++) {
        char key[] = { 't', 'a', 's', 'k', (char)('1' + i), '\0' };
        enum { PERIOD, INSTRUCTIONS, DEADLINE, PRIORITY, VALUES };
        uint64_t values[VALUES];
        if (!arg_numbers(key, values, VALUES))
            break;
        if (values[PERIOD] == 0 || values[PERIOD] > 10000000 || values[INSTRUCTIONS] < INSTRUCTIONS_PER_ROUND)
            fail("bootargs: %s: a period of 1 to 10000000 us, and at least %d instructions", key, INSTRUCTIONS_PER_ROUND);
        if (values[PRIORITY] == 0 || values[PRIORITY] >= configMAX_PRIORITIES - BASE_PRIORITY)
            fail("bootargs: %s: a priority from 1 to %d", key, configMAX_PRIORITIES - BASE_PRIORITY - 1);
        struct member *m = &members[count++];
        m->period_us = values[PERIOD];
        m->rounds = values[INSTRUCTIONS] / INSTRUCTIONS_PER_ROUND;
        m->deadline_us = values[DEADLINE];
        m->priority = BASE_PRIORITY + values[PRIORITY];
        divisor = greatest_common_divisor(divisor, m->period_us);
    }
    return divisor;
}

static void compute(uint64_t rounds)
{
    __asm__ volatile("1: nop; nop; nop; nop; nop; nop; addi %0, %0, -1; bnez %0, 1b" : "+r"(rounds));
}

static void run(void *argument)
{
    struct member *m = argument;
    uint64_t deadline = us_to_ticks(m->deadline_us);
    TickType_t release = 0;
    /* All begin at once: there is no busier moment. */
    xTaskDelayUntil(&release, parameters.begin);
    for (;;) {
        compute(m->rounds);
        uint64_t response = read_time() - port_tick_deadline(release);
        m->jobs++;
        m->missed += response > deadline;
        if (response > m->worst)
            m->worst = response;
        if (release + m->period >= end)
            break;
        /* A job that is late doesn't wait, so no period is left out. */
        xTaskDelayUntil(&release, m->period);
    }
    taskENTER_CRITICAL();
    working--;
    taskEXIT_CRITICAL();
    if (task_set_is_over())
        reporter_wake();
    vTaskSuspend(NULL);
}

bool task_set_is_over(void) { return working == 0; }

void task_set_create(void)
{
    /* The first tick at the earliest: a period doesn't start before the clock does. */
    if (parameters.begin == 0)
        parameters.begin = 1;
    end = parameters.begin + parameters.run_ms * 1000 / parameters.tick_us;
    working = count;
    for (unsigned i = 0; i < count; i++) {
        struct member *m = &members[i];
        char name[] = { 't', 'a', 's', 'k', (char)('1' + i), '\0' };
        m->period = m->period_us / parameters.tick_us;
        xTaskCreateStatic(run, name, sizeof m->stack / sizeof *m->stack, m, m->priority, m->stack, &m->task);
    }
}

bool task_set_print_result(void)
{
    bool ok = true;
    print("@result {\"job\":\"task-set\",\"tasks\":[");
    for (unsigned i = 0; i < count; i++) {
        const struct member *m = &members[i];
        ok = ok && m->missed == 0;
        print("%s{\"jobs\":%lu,\"missed\":%lu,\"worst_ns\":%lu}", i == 0 ? "" : ",", m->jobs, m->missed, ticks_to_ns(m->worst));
    }
    print("],\"ok\":%s}\n", ok ? "true" : "false");
    return ok;
}
