/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How late one hart's timers are, in ticks, while it executes long straight-line code and all others keep the machine
   busy: timers of their own, so that rounds are short; IPIs and remote fences among each other, so that the firmware runs
   with interrupts off; fences, so that blocks are looked up anew. None of that concerns the one that measures. */
#include "guest.h"

enum { TIMERS = 4000, LEAST_TICKS = 20, SPAN_TICKS = 200, SIE_STIE = 1 << 5, SSTATUS_SIE = 1 << 1 };

static uint64_t deadline, max_late;
static volatile int fired;
static atomic_int over, harts_done;
static _Atomic long company; /* the harts but the one that measures, a bit each */

static void set_timer(uint64_t at) { __asm__ volatile("csrw 0x14d, %0" ::"r"(at)); /* stimecmp */ }

__attribute__((interrupt("supervisor"), aligned(4))) static void on_timer(void)
{
    uint64_t late = read_time() - deadline;
    set_timer(UINT64_MAX);
    if (late > max_late) max_late = late;
    fired = 1;
}

/* A long translation block if QEMU is left to itself; Linux copies its pages with one of 162 instructions. */
static void run_straight_on(void) { __asm__ volatile(".rept 200\n addi t0, t0, 1\n .endr" ::: "t0"); }

static void measure(void)
{
    uint64_t random = 1;
    __asm__ volatile("csrw stvec, %0" ::"r"(on_timer));
    set_timer(UINT64_MAX);
    __asm__ volatile("csrs sie, %0\n csrs sstatus, %1" ::"r"(SIE_STIE), "r"(SSTATUS_SIE));
    for (int i = 0; i < TIMERS; i++) {
        fired = 0;
        deadline = read_time() + LEAST_TICKS + next_random(&random) % SPAN_TICKS;
        set_timer(deadline);
        while (!fired) run_straight_on();
    }
    __asm__ volatile("csrc sie, %0" ::"r"(SIE_STIE));
}

/* Never takes its own timer or IPI (sie is 0): they only come due. */
void other_hart(long hart)
{
    uint64_t random = (uint64_t)hart;
    report_ready();
    while (!atomic_load(&over)) {
        uint64_t bits = next_random(&random);
        long others = atomic_load(&company) & ~(1l << hart);
        set_timer(read_time() + 1 + bits % 4);
        if (bits & 0x100) __asm__ volatile("sfence.vma" ::: "memory");
        if ((bits & 0x600) == 0) sbi(SBI_IPI, 0, others, 0, 0);
        if ((bits & 0x1800) == 0) sbi(SBI_RFENCE, 0, others, 0, 0);
        if (bits & 0x2000) run_straight_on();
    }
    atomic_fetch_add(&harts_done, 1);
}

void first_hart(long hart)
{
    int n = start_others(hart);
    atomic_store(&company, ((1l << n) - 1) & ~(1l << hart));
    measure();
    atomic_store(&over, 1);
    while (atomic_load(&harts_done) < n - 1);
    print_number("late", max_late);
    shut_down();
}
