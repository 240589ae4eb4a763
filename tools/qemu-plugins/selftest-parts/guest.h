/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the self-test's guests share: the calls to the firmware (SBI), time, and output. */
#ifndef GUEST_H
#define GUEST_H

#include <stdatomic.h>
#include <stdint.h>

#include "../harts.h"

enum {
    SBI_PUTCHAR = 0x01,
    SBI_HSM = 0x48534d, /* function 0: hart_start */
    SBI_IPI = 0x735049, /* function 0: send_ipi */
    SBI_RFENCE = 0x52464e43, /* function 0: remote fence.i */
    SBI_SRST = 0x53525354, /* function 0: system_reset, type 0: shutdown */
};

static inline long sbi(long extension, long function, long arg0, long arg1, long arg2)
{
    register long a0 __asm__("a0") = arg0;
    register long a1 __asm__("a1") = arg1;
    register long a2 __asm__("a2") = arg2;
    register long a6 __asm__("a6") = function;
    register long a7 __asm__("a7") = extension;
    __asm__ volatile("ecall" : "+r"(a0), "+r"(a1) : "r"(a2), "r"(a6), "r"(a7) : "memory");
    return a0;
}

static inline uint64_t read_time(void)
{
    uint64_t time;
    __asm__ volatile("rdtime %0" : "=r"(time)::"memory");
    return time;
}

/* Knuth's MMIX generator; 31 good bits. */
static inline uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static inline void print(const char *text)
{
    while (*text) sbi(SBI_PUTCHAR, 0, *text++, 0, 0);
}

static inline void print_number(const char *name, uint64_t value)
{
    char digits[21], *at = digits + sizeof digits;
    *--at = 0;
    do *--at = (char)('0' + value % 10);
    while (value /= 10);
    print(name), print("="), print(at), print("\n");
}

static inline void shut_down(void)
{
    sbi(SBI_SRST, 0, 0, 0, 0);
}

/* Each guest's own parts: the hart that the firmware starts, and those that start_others() does. */
void first_hart(long hart);
void other_hart(long hart);
void secondary_start(void);

static atomic_int harts_ready;

/* Starts all harts but this one, waits until they called report_ready(), and returns how many harts there are. */
static inline int start_others(long self)
{
    int harts = 1;
    for (long hart = 0; hart < MAX_HARTS; hart++)
        if (hart != self && sbi(SBI_HSM, 0, hart, (long)secondary_start, 0) == 0) harts++;
    while (atomic_load(&harts_ready) < harts - 1);
    return harts;
}

static inline void report_ready(void) { atomic_fetch_add(&harts_ready, 1); }

#endif
