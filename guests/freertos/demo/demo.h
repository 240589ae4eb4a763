/* The demo's tasks and what they share. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "FreeRTOS.h"
#include "task.h"
#include "histogram.h"

/* From bootargs; README.md says what they mean. */
struct parameters {
    uint64_t period_us;
    uint64_t periods;
    uint64_t burn_percent;
    uint64_t burn_period_us;
    uint64_t report_ms;
    uint64_t begin_ms;
    uint64_t seed;
    uint64_t run_ms;
    bool forever;
    bool marks;
    bool is_set; /* tasks were given: they run instead of the periodic task and the burner */
    uint64_t tick_us; /* not given: the longest that divides both periods, at most 1 ms */
    TickType_t begin; /* `begin_ms` in ticks: what was due up to this tick is not measured */
};
extern struct parameters parameters;

uint64_t greatest_common_divisor(uint64_t a, uint64_t b);

/* What was measured. The periodic task and the tick handler write it until `over`. */
struct measurement {
    struct histogram delay;         /* from a period's deadline to the task's first instruction */
    struct histogram handler_delay; /* from a tick's deadline to the tick handler's first statement */
    struct spread tick_period;      /* from one start of the tick handler to the next */
    uint64_t missed;                /* periods whose job began after the next deadline */
    uint64_t tick_interrupts;
    uint64_t last_tick;             /* `time` at the start of the last of their handlers */
    bool over;                      /* `periods` jobs have run: nothing changes any more */
};
extern struct measurement measurement;

/* Priorities. The idle task has 0. A task of a set has its own and that of the reporter. */
enum { PRIORITY_BURNER = 1, PRIORITY_WORK = 1, PRIORITY_ECHO = 2, PRIORITY_REPORTER = 2, PRIORITY_PERIODIC = 3 };

/* Creates the task that records its own wake-up delays. */
void periodic_create(void);
/* What it has seen since the last call: for the live line. */
struct progress {
    uint64_t periods; /* since the start */
    uint64_t missed;  /* since the start */
    uint64_t worst;   /* delay since the last call, ticks of `time` */
};
struct progress periodic_progress(void);

/* Creates the task that takes a share of the hart, if bootargs ask for one. */
void burner_create(void);

/* Reads the tasks of a set from bootargs. Returns the greatest common divisor of their periods, in microseconds; 0 if there are none, and the demo's
 * other tasks run. */
uint64_t task_set_read(void);
/* Creates these tasks. */
void task_set_create(void);
/* All have done their jobs. */
bool task_set_is_over(void);
/* Prints how long each took. Returns whether all deadlines were met. */
bool task_set_print_result(void);

/* Reads from bootargs how many numbers of another guest are to be sent back. */
void echo_read(void);
/* Are any? */
bool echo_is_wanted(void);
/* Creates the task that does it, if so. */
void echo_create(void);
/* All have come. */
bool echo_is_over(void);
/* Prints what came. Returns whether each number was the next. */
bool echo_print_result(void);

/* Reads from bootargs how many tasks are to compute all the time. */
void work_read(void);
/* Are any? */
bool work_is_wanted(void);
/* Creates them. */
void work_create(void);
/* Waits until their time is over. They may have had nothing of it, and can't tell. */
void work_wait(void);
/* Prints how much they have computed in it. */
void work_print_result(void);

/* Reads from bootargs whether a task is to give the core to other guests, and its priority. */
void give_way_read(void);
/* Creates it, if so. */
void give_way_create(void);

/* Creates the task that prints. */
void reporter_create(void);
/* Wakes it: there is something to tell. */
void reporter_wake(void);
