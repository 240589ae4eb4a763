/* A set of periodic tasks that bootargs describe, as ../../demo/task_set.c, each on the core that it is given or on any: what each computes is the same
 * whatever the clock says meanwhile, and it notes how late it began and ended. */
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
/* How often a task that may go elsewhere looks where it is, in each job. */
#define LOOKS_PER_JOB 16
#define ROUNDING_MODES 5

static struct member {
    uint64_t rounds;
    uint64_t period_us, deadline_us;
    TickType_t period; /* ticks of the kernel */
    UBaseType_t priority;
    uint64_t core;            /* ANY_CORE: wherever the kernel wants it */
    uint64_t missed;
    uint64_t jobs_on[CORES];  /* by the core where they ended */
    uint64_t moves;           /* how often it was found on another core than before */
    uint64_t latest, worst;   /* from the period's start to the beginning and to the end of what it computes, ticks of `time` */
    StaticTask_t task;
    StackType_t stack[384];
} members[MOST_TASKS];
static unsigned count;
static volatile unsigned working;

/* What comes behind task1, core1 and so on is no number of a task: a mistake is better told than left out. */
static void read_member(struct member *m, unsigned number)
{
    char task_key[] = { 't', 'a', 's', 'k', (char)('0' + number), '\0' };
    char core_key[] = { 'c', 'o', 'r', 'e', (char)('0' + number), '\0' };
    enum { PERIOD, INSTRUCTIONS, DEADLINE, PRIORITY, VALUES };
    uint64_t values[VALUES];
    if (!arg_numbers(task_key, values, VALUES))
        return;
    if (values[PERIOD] == 0 || values[PERIOD] > 10000000 || values[INSTRUCTIONS] < INSTRUCTIONS_PER_ROUND)
        fail("bootargs: %s: a period of 1 to 10000000 us, and at least %d instructions", task_key, INSTRUCTIONS_PER_ROUND);
    if (values[PRIORITY] == 0 || values[PRIORITY] >= configMAX_PRIORITIES - BASE_PRIORITY)
        fail("bootargs: %s: a priority from 1 to %d", task_key, configMAX_PRIORITIES - BASE_PRIORITY - 1);
    m->period_us = values[PERIOD];
    m->rounds = values[INSTRUCTIONS] / INSTRUCTIONS_PER_ROUND;
    m->deadline_us = values[DEADLINE];
    m->priority = BASE_PRIORITY + values[PRIORITY];
    m->core = arg_number(core_key, ANY_CORE, 0, CORES - 1);
}

uint64_t task_set_read(void)
{
    uint64_t divisor = 0;
    for (; count < MOST_TASKS; count++) {
        struct member *m = &members[count];
        read_member(m, count + 1);
        if (m->period_us == 0)
            break;
        divisor = greatest_common_divisor(divisor, m->period_us);
    }
    return divisor;
}

/* The task's number in a floating-point register and as a rounding mode. The compiler isn't told: no code here but this uses them, so they are as the
 * kernel leaves them. */
static void write_float(const struct member *m)
{
    uint64_t number = (uint64_t)(m - members) + 1;
    if (parameters.uses_float)
        __asm__ volatile("fmv.d.x fs0, %0; fsrm %1" :: "r"(number), "r"(number % ROUNDING_MODES));
}

static void check_float(const struct member *m)
{
    uint64_t number = (uint64_t)(m - members) + 1, kept, mode;
    if (!parameters.uses_float)
        return;
    __asm__ volatile("fmv.x.d %0, fs0; frrm %1" : "=r"(kept), "=r"(mode));
    if (kept != number || mode != number % ROUNDING_MODES)
        fail("%s has %lu in its floating-point register, and the rounding mode %lu", pcTaskGetName(NULL), kept, mode);
}

/* At least one round. */
static void compute(uint64_t rounds)
{
    __asm__ volatile("1: nop; nop; nop; nop; nop; nop; addi %0, %0, -1; bnez %0, 1b" : "+r"(rounds));
}

/* The core that the task is on, which was on `before` when it looked last. Nothing of the task may have got lost on the way. */
static uint64_t look_where(struct member *m, uint64_t before)
{
    uint64_t core = (uint64_t)portGET_CORE_ID();
    if (m->core != ANY_CORE && core != m->core)
        fail("%s is to stay on core %lu, and runs on core %lu", pcTaskGetName(NULL), m->core, core);
    m->moves += core != before;
    check_float(m);
    return core;
}

/* What a job computes. `core`: where it was last. Returns where it ended. */
static uint64_t do_job(struct member *m, uint64_t core)
{
    core = look_where(m, core);
    uint64_t rounds = m->rounds, piece = m->core == ANY_CORE ? rounds / LOOKS_PER_JOB + 1 : rounds;
    for (; rounds > piece; rounds -= piece) {
        compute(piece);
        core = look_where(m, core);
    }
    compute(rounds);
    return look_where(m, core);
}

static void note(uint64_t *longest, uint64_t ticks_of_time)
{
    if (ticks_of_time > *longest)
        *longest = ticks_of_time;
}

static void run(void *argument)
{
    struct member *m = argument;
    uint64_t deadline = us_to_ticks(m->deadline_us);
    TickType_t release = 0;
    /* All begin at once: there is no busier moment. */
    xTaskDelayUntil(&release, parameters.begin);
    uint64_t core = (uint64_t)portGET_CORE_ID();
    write_float(m);
    for (;;) {
        note(&m->latest, read_time() - port_tick_deadline(release));
        core = do_job(m, core);
        uint64_t response = read_time() - port_tick_deadline(release);
        note(&m->worst, response);
        m->missed += response > deadline;
        m->jobs_on[core]++;
        if (release + m->period >= parameters.end)
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
    working = count;
    for (unsigned i = 0; i < count; i++) {
        struct member *m = &members[i];
        char name[] = { 't', 'a', 's', 'k', (char)('1' + i), '\0' };
        m->period = m->period_us / parameters.tick_us;
        task_create(run, name, m, m->priority, m->core, m->stack, sizeof m->stack / sizeof *m->stack, &m->task);
    }
}

static void print_member(const struct member *m)
{
    uint64_t jobs = 0;
    for (unsigned core = 0; core < CORES; core++)
        jobs += m->jobs_on[core];
    if (m->core == ANY_CORE)
        print("{\"core\":null");
    else
        print("{\"core\":%lu", m->core);
    print(",\"jobs\":%lu,\"missed\":%lu,\"worst_ns\":%lu,\"latest_ns\":%lu,\"moves\":%lu,\"jobs_on\":[", jobs, m->missed, ticks_to_ns(m->worst),
          ticks_to_ns(m->latest), m->moves);
    for (unsigned core = 0; core < CORES; core++)
        print("%s%lu", core == 0 ? "" : ",", m->jobs_on[core]);
    print("]}");
}

bool task_set_print_result(void)
{
    if (count == 0)
        return true;
    /* How many ticks were due, by the clock that runs free: one without an interrupt of its own is lost. A short set is over before there is one. */
    uint64_t taken = ticks.handler_delay.count;
    uint64_t due = taken == 0 ? 0 : (ticks.last - port_tick_deadline(parameters.begin)) / us_to_ticks(parameters.tick_us);
    uint64_t lost = due - taken;
    bool ok = lost == 0;
    print("@result {\"job\":\"task-set\",\"cores\":%d,\"tasks\":[", CORES);
    for (unsigned i = 0; i < count; i++) {
        ok = ok && members[i].missed == 0;
        if (i > 0)
            print(",");
        print_member(&members[i]);
    }
    print("],\"ticks\":%lu,\"ticks_lost\":%lu,\"handler_delay_ns\":", due, lost);
    histogram_print_summary(&ticks.handler_delay);
    print(",\"ok\":%s}\n", ok ? "true" : "false");
    return ok;
}
