/* Tasks that aren't real-time: in a certain time they always have something to compute, and count how much of it they get done. By the machine's `time`, which is the same
 * for all guests: so several of them can count in the same time. */
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
static uint64_t count, begin, end; /* ticks of `time` */

static void compute(void)
{
    uint64_t loops = INSTRUCTIONS_PER_ROUND / INSTRUCTIONS_PER_LOOP;
    __asm__ volatile("1: nop; nop; nop; nop; nop; nop; addi %0, %0, -1; bnez %0, 1b" : "+r"(loops));
}

static void run(void *argument)
{
    struct worker *me = argument;
    while (read_time() < begin)
        vTaskDelay(1);
    while (read_time() < end) {
        compute();
        me->rounds++;
    }
    /* The others, who are still at it, are to have no more of the core than before. */
    for (;;)
        compute();
}

void work_read(void)
{
    count = arg_number("work", 0, 0, MOST_TASKS);
    begin = us_to_ticks(arg_number("work_from_ms", 0, 0, 1000000) * 1000);
    end = begin + us_to_ticks(arg_number("work_ms", 1000, 1, 1000000) * 1000);
}

bool work_is_wanted(void) { return count != 0; }

void work_create(void)
{
    for (uint64_t i = 0; i < count; i++) {
        struct worker *w = &workers[i];
        xTaskCreateStatic(run, "work", sizeof w->stack / sizeof *w->stack, w, PRIORITY_WORK, w->stack, &w->task);
    }
}

void work_wait(void)
{
    while (count != 0 && read_time() < end)
        vTaskDelay(1);
}

void work_print_result(void)
{
    uint64_t rounds = 0;
    for (uint64_t i = 0; i < count; i++)
        rounds += workers[i].rounds;
    print("@result {\"job\":\"work\",\"tasks\":%lu,\"instructions\":%lu,\"ok\":true}\n", count, rounds * INSTRUCTIONS_PER_ROUND);
}
