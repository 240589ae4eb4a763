/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the parts of lockstep.so share. README.md tells what lockstep virtual time is. */
#ifndef LOCKSTEP_H
#define LOCKSTEP_H

#include <stdbool.h>
#include <stdint.h>

#include "harts.h"
#include "qemu_internals.h"
#include "qemu_plugin_api.h"

/* lockstep.c: the options of the command line. */
struct options {
    int64_t quantum;      /* q: instructions per hart and round */
    int64_t ns_per_insn;  /* ns: virtual nanoseconds per instruction */
    bool smooth;          /* smooth: within its slice a hart sees time pass */
    int64_t trace_rounds; /* trace: print time and hash every so many rounds, 0 for never */
    int64_t stop_ns;      /* stop_ns: end the run at this virtual time, 0 for never */
};
extern struct options options;

/* requirements.c: both print what was found and what is needed when they refuse. */
bool qemu_is_known(const struct qemu_info *);
void require_single_threaded_tcg(void); /* exits with status 1 if it isn't */

/* clock.c: the common virtual clock. All times are nanoseconds since the start. */
void clock_install(void);
int64_t clock_time(void);       /* start of the current round */
int64_t clock_next_event(void); /* time of the next timer or of stop_ns, -1 if there is none */
/* Moves the clock and runs the timers that come due, each at its own time. False if a due timer isn't ours to run. */
bool clock_advance(int64_t to);

/* schedule.c: whose turn it is, and for how long. */
struct schedule_counts {
    uint64_t slices, rounds;
    uint64_t jumps; /* times that all harts were halted and the clock jumped to the next event */
    uint64_t hash;  /* of every slice's hart and length and every round's end */
};
extern struct schedule_counts counts;
extern uint64_t timers_run; /* by clock_advance */
void schedule_add_hart(int index);
int schedule_harts(void);
int64_t schedule_ahead_ns(void); /* how far the running hart is past the round's start; 0 outside a slice */
void schedule_translate(struct qemu_plugin_tb *);
bool schedule_idle_hook(CPUState *); /* for accel_ops.thread_is_idle */
bool schedule_asleep(void);          /* the TCG thread waits for a hart to wake up; may be asked from other threads */
void schedule_finish(void);          /* closes the books; later calls change nothing */

/* watchdog.c */
extern uint64_t times_stuck;
void watchdog_start(void);

#endif
