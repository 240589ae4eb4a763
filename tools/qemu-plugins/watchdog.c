/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A safety net in host time: wakes the TCG thread if it sleeps although a timer is pending. That must not happen; if
 * it does, the run depended on the host, and the last line says so (stuck=).
 */
#include "lockstep.h"

enum { PERIOD_MS = 200 };

uint64_t times_stuck;
static uint64_t timer[32]; /* room for a QEMUTimer */

static void nothing(CPUState *cpu, uint64_t data) { (void)cpu, (void)data; }

static void look(void *data)
{
    static int64_t seen = -1;
    (void)data;
    /* Not whether all harts are idle: they are so, too, while the host doesn't let the TCG thread look at them. */
    if (schedule_asleep() && runstate_is_running() && seen == clock_time() && clock_next_event() >= 0) {
        times_stuck++;
        async_run_on_cpu(qemu_get_cpu(0), nothing, 0); /* makes QEMU's loop ask schedule_idle_hook() again */
    }
    seen = clock_time();
    timer_mod(timer, qemu_clock_get_ns(QEMU_CLOCK_REALTIME) / TIMER_SCALE_MS + PERIOD_MS);
}

void watchdog_start(void)
{
    timer_init_full(timer, NULL, QEMU_CLOCK_REALTIME, TIMER_SCALE_MS, 0, look, NULL);
    look(NULL);
}
