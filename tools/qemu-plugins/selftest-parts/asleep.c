/* SPDX-License-Identifier: GPL-2.0-or-later */
/* All harts sleep without end: only QEMU's own timers are left. */
#include "guest.h"

static _Noreturn void sleep(void)
{
    for (;;) __asm__ volatile("wfi");
}

void other_hart(long hart)
{
    (void)hart;
    report_ready();
    sleep();
}

void first_hart(long hart)
{
    start_others(hart);
    print("asleep\n");
    sleep();
}
