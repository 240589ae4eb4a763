/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A fixed amount of work, split over all harts: in lockstep time n harts take 1/n of one hart's time. */
#include "guest.h"

enum { TOTAL_ITERATIONS = 4000000 }; /* two instructions each */

static atomic_int share, harts_done; /* share: iterations per hart, 0 until the work begins */

static void work(void)
{
    long left;
    while ((left = atomic_load(&share)) == 0);
    __asm__ volatile("1: addi %0, %0, -1\n bnez %0, 1b" : "+r"(left));
    atomic_fetch_add(&harts_done, 1);
}

void other_hart(long hart)
{
    (void)hart;
    report_ready();
    work();
}

void first_hart(long hart)
{
    int harts = start_others(hart);
    uint64_t begin = read_time();
    atomic_store(&share, TOTAL_ITERATIONS / harts);
    work();
    while (atomic_load(&harts_done) < harts);
    uint64_t ticks = read_time() - begin;
    print_number("harts", (uint64_t)harts);
    print_number("ticks", ticks);
    shut_down();
}
