/* Tasks that aren't real-time: from `begin_ms` on they always have something to compute, and count how much of it they get done while the periodic task is measured. */
#include "demo.h"
#include "args.h"
#include "console.h"
#include "machine.h"
#include "trap.h"

#define MOST_TASKS 4
/* Between two looks at the clock: a tenth of a millisecond at 250 MIPS. */
#define INSTRUCTIONS_PER_ROUND 25000
#define INSTRUCTIONS_PER_LOOP 8

static struct worker {
    uint64_t rounds;
    StaticTask_t task;
    StackType_t stack[configMINIMAL_STACK_SIZE];
} workers[MOST_TASKS];
static uint64_t count;

static void compute(void)
{
    uint64_t loops = INSTRUCTIONS_PER_ROUND / INSTRUCTIONS_PER_LOOP;
    __asm__ volatile("1: nop; nop; nop; nop; nop; nop; addi %0, %0, -1; bnez %0, 1b" : "+r"(loops));
}

static void run(void *argument)
{
    struct worker *me = argument;
    uint64_t begin = port_tick_deadline(parameters.begin), length = us_to_ticks(parameters.periods * parameters.period_us);
    TickType_t release = 0;
    if (parameters.begin > 0)
        xTaskDelayUntil(&release, parameters.begin);
    for (;;) {
        uint64_t now = read_time();
        compute();
        me->rounds += now >= begin && now - begin < length;
    }
}

void work_read(void) { count = arg_number("work", 0, 0, MOST_TASKS); }

bool work_is_wanted(void) { return count != 0; }

void work_create(void)
{
    if (count != 0 && parameters.is_set)
        fail("bootargs: work=%lu isn't for a set of tasks: give one of these a low priority and much to compute", count);
    for (uint64_t i = 0; i < count; i++) {
        struct worker *w = &workers[i];
        xTaskCreateStatic(run, "work", sizeof w->stack / sizeof *w->stack, w, PRIORITY_WORK, w->stack, &w->task);
    }
}

void work_print_result(void)
{
    uint64_t rounds = 0;
    for (uint64_t i = 0; i < count; i++)
        rounds += workers[i].rounds;
    print("@result {\"job\":\"work\",\"tasks\":%lu,\"instructions\":%lu,\"ok\":true}\n", count, rounds * INSTRUCTIONS_PER_ROUND);
}
