/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The common virtual clock: it moves only when the schedule says so; the host's clock is never read. */
#include "lockstep.h"

uint64_t timers_run;
static int64_t now_ns; /* atomic: the main thread reads it when it looks for due timers */
/* This thread looks at timers: they belong to the common clock, not to the hart that is ahead of it. Of the thread, since
   the main thread may look while a hart reads its time. */
static __thread bool plain;

int64_t clock_time(void) { return __atomic_load_n(&now_ns, __ATOMIC_RELAXED); }

static void set_time(int64_t t) { __atomic_store_n(&now_ns, t, __ATOMIC_RELAXED); }

/* What QEMU takes for QEMU_CLOCK_VIRTUAL, and so what a guest's `time` and its timers are made of. */
static int64_t guest_clock(void) { return clock_time() + (options.smooth && !plain ? schedule_ahead_ns() : 0); }

void clock_install(void)
{
    struct accel_ops *ops = cpus_get_accel();
    ops->get_virtual_clock = guest_clock;
    ops->get_elapsed_ticks = guest_clock;
}

static int64_t next_timer(void)
{
    plain = true;
    int64_t left = qemu_clock_deadline_ns_all(QEMU_CLOCK_VIRTUAL, TIMER_ALL_ATTRIBUTES);
    plain = false;
    return left < 0 ? -1 : clock_time() + left;
}

int64_t clock_next_event(void)
{
    int64_t timer = next_timer();
    if (options.stop_ns && (timer < 0 || options.stop_ns < timer)) return options.stop_ns;
    return timer;
}

bool clock_advance(int64_t to)
{
    int64_t timer = next_timer();
    if (timer < 0 || timer > to) {
        set_time(to);
        return true;
    }
    /* With the BQL held the main thread, which looks for due timers too, can't run them at a host-dependent moment. */
    bool locked_before = bql_locked();
    if (!locked_before) bql_lock_impl(__FILE__, __LINE__);
    bool ours = true;
    while (ours && (timer = next_timer()) >= 0 && timer <= to) {
        set_time(timer);
        plain = true;
        ours = qemu_clock_run_timers(QEMU_CLOCK_VIRTUAL);
        plain = false;
        timers_run++;
    }
    set_time(to);
    if (!locked_before) bql_unlock();
    return ours;
}
