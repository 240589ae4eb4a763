/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How late timers are, on all harts at once: from the deadline to the handler's first look at `time`, in ticks; for
   deadlines far ahead and within a round, awaited in a busy loop and in WFI. */
#include "guest.h"

enum { TIMERS = 2000, NEAR_TICKS = 6, FAR_TICKS = 400, SIE_STIE = 1 << 5, SSTATUS_SIE = 1 << 1 };

static struct {
    uint64_t deadline;
    uint64_t max_late[2]; /* near, far */
    volatile int far, fired;
} harts[MAX_HARTS];

static atomic_int harts_done;

static void set_timer(uint64_t deadline) { __asm__ volatile("csrw 0x14d, %0" ::"r"(deadline)); /* stimecmp */ }

__attribute__((interrupt("supervisor"), aligned(4))) static void on_timer(void)
{
    uint64_t now = read_time();
    long hart;
    __asm__ volatile("csrr %0, sscratch" : "=r"(hart));
    set_timer(UINT64_MAX);
    uint64_t late = now - harts[hart].deadline, *max = &harts[hart].max_late[harts[hart].far];
    if (late > *max) *max = late;
    harts[hart].fired = 1;
}

/* With interrupts off: between the look at `fired` and the WFI none may come in. WFI wakes up all the same. */
static void sleep_unless_fired(long hart)
{
    __asm__ volatile("csrc sstatus, %0" ::"r"(SSTATUS_SIE));
    if (!harts[hart].fired) __asm__ volatile("wfi");
    __asm__ volatile("csrs sstatus, %0" ::"r"(SSTATUS_SIE));
}

static void measure(long hart)
{
    uint64_t random = (uint64_t)hart + 1;
    __asm__ volatile("csrw sscratch, %0\n csrw stvec, %1" ::"r"(hart), "r"(on_timer));
    set_timer(UINT64_MAX);
    __asm__ volatile("csrs sie, %0\n csrs sstatus, %1" ::"r"(SIE_STIE), "r"(SSTATUS_SIE));
    for (int i = 0; i < TIMERS; i++) {
        uint64_t bits = next_random(&random);
        harts[hart].far = i & 1;
        harts[hart].fired = 0;
        harts[hart].deadline = read_time() + (harts[hart].far ? 20 + bits % FAR_TICKS : 2 + bits % NEAR_TICKS);
        set_timer(harts[hart].deadline);
        while (!harts[hart].fired)
            if (i & 2) sleep_unless_fired(hart);
    }
    atomic_fetch_add(&harts_done, 1);
}

void other_hart(long hart)
{
    report_ready();
    measure(hart);
}

void first_hart(long hart)
{
    int n = start_others(hart);
    measure(hart);
    while (atomic_load(&harts_done) < n);
    uint64_t near = 0, far = 0;
    for (int i = 0; i < MAX_HARTS; i++) {
        if (harts[i].max_late[0] > near) near = harts[i].max_late[0];
        if (harts[i].max_late[1] > far) far = harts[i].max_late[1];
    }
    print_number("near", near);
    print_number("far", far);
    shut_down();
}
