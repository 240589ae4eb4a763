/* The SMP demo's tasks and what they share. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "FreeRTOS.h"
#include "task.h"
#include "histogram.h"

/* Of a task that no core is given for. */
#define ANY_CORE CORES

/* From bootargs; ../../README.md says what they mean. */
struct parameters {
    uint64_t begin_ms;
    uint64_t run_ms;
    uint64_t items;
    uint64_t tick_us;
    bool forever;
    bool uses_float;
    TickType_t begin, end; /* ticks at which jobs of the set begin and don't begin any more */
};
extern struct parameters parameters;

/* Of core 0's tick, from `begin` on. The tick handler writes it until `over`. */
struct ticks {
    struct histogram handler_delay; /* from a tick's deadline to the tick handler's first statement */
    uint64_t last;                  /* `time` at the start of the last handler */
    bool over;
};
extern struct ticks ticks;

/* Priorities. The idle tasks have 0. A task of a set has its own and that of the reporter. */
enum { PRIORITY_EXCHANGE = 1, PRIORITY_REPORTER = 2 };

uint64_t greatest_common_divisor(uint64_t a, uint64_t b);

/* Creates a task that stays on this core, or goes wherever the kernel wants it (ANY_CORE). */
TaskHandle_t task_create(TaskFunction_t code, const char *name, void *argument, UBaseType_t priority, uint64_t core, StackType_t *stack,
                         uint32_t words, StaticTask_t *task);

/* Reads the tasks of a set from bootargs. Returns the greatest common divisor of their periods, in microseconds; 0 if there are none. */
uint64_t task_set_read(void);
void task_set_create(void);
/* All have done their jobs, or there are none. */
bool task_set_is_over(void);
/* Prints how long each took. Returns whether all deadlines were met, and no tick lost. */
bool task_set_print_result(void);

/* Creates the tasks that exchange `items`, if bootargs ask for them. */
void exchange_create(void);
bool exchange_is_over(void);
/* Prints what they have seen. Returns whether that is right. */
bool exchange_print_result(void);

/* Creates the task that prints. */
void reporter_create(void);
/* Wakes it: something is over. */
void reporter_wake(void);
