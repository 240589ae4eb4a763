/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Goes through the window of windowed.S, again and again. The other harts stay where they are. */
#include "guest.h"

enum { REPETITIONS = 3 };

void run_window(void); /* windowed.S; leaves what a call has to leave but s0 */

void other_hart(long hart) { (void)hart; }

void first_hart(long hart)
{
    (void)hart;
    for (int i = 0; i < REPETITIONS; i++) __asm__ volatile("call run_window" ::: "ra", "t0", "t1", "t2", "s0", "memory");
    shut_down();
}
