/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One stage of translation, in S-mode, on every hart. CASE chooses what is touched; tlb.sh says what that comes to. */
#include "translated.h"

POSSIBLE fence(void) { __asm__ volatile("sfence.vma" ::: "memory"); }
POSSIBLE fence_address(uint64_t a) { __asm__ volatile("sfence.vma %0, zero" ::"r"(a) : "memory"); }
POSSIBLE fence_asid(uint64_t asid) { __asm__ volatile("sfence.vma zero, %0" ::"r"(asid) : "memory"); }

POSSIBLE touch_small(uint64_t asid) { touch(atp(asid), SMALL, PAGE, 4, 1); }

POSSIBLE loop(void) { touch(atp(0), SMALL, PAGE, 8, 10); }
POSSIBLE large(void) { touch(atp(0), LARGE, PAGE, 8, 10); }
POSSIBLE napots(void) { touch(atp(0), NAPOT, PAGE, 32, 2); }
POSSIBLE block(void) { fence_often(atp(0)); }
POSSIBLE across(void) { touch(atp(0), SMALL + PAGE - 4, PAGE, 4, 1); } /* five pages */

/* The same code, where it is and in the page of 2 MiB that is the program once more. */
POSSIBLE aliases(void)
{
    touch_from_alias(atp(0), SMALL, PAGE, 4, 1, 0);
    touch_from_alias(atp(0), SMALL, PAGE, 4, 1, LARGE - ((uint64_t)PROGRAM << 12));
}

POSSIBLE fences(void)
{
    touch_small(0);
    fence();
    touch_small(0);
    fence_address(SMALL);
    touch_small(0);
    fence_asid(5); /* nobody's */
    touch_small(0);
    fence_asid(0);
    touch_small(0);
}

POSSIBLE asids(void)
{
    touch_small(1);
    touch_small(2);
    touch_small(1);
    touch(atp(1), GLOBAL, PAGE, 4, 1);
    touch(atp(2), GLOBAL, PAGE, 4, 1);
    fence_asid(1);
    touch(atp(1), GLOBAL, PAGE, 4, 1);
}

static atomic_int harts_done;

void other_hart(long hart)
{
    (void)hart;
    report_ready();
    CASE();
    atomic_fetch_add(&harts_done, 1);
}

void first_hart(long hart)
{
    make_tables();
    int harts = start_others(hart);
    CASE();
    while (atomic_load(&harts_done) < harts - 1);
    shut_down();
}
