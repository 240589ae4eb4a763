/* The supervisor's own timer without a look at what the hart has: by stimecmp; by the SBI in a program that is built for harts without Sstc
 * (TIMER_BY_SBI). */
#pragma once
#include "csr.h"
#include "machine.h"
#include "sbi.h"

/* Asks for a timer interrupt on this hart when `time` reaches `deadline`, and takes back the one that is pending. */
static inline void own_timer_set(uint64_t deadline)
{
#ifdef TIMER_BY_SBI
    sbi_call(SBI_TIME, SBI_TIME_SET, deadline, 0, 0);
#else
    csr_write(CSR_STIMECMP, deadline);
#endif
}

/* Ends the program with this reason if the hart hasn't what it is built for. */
static inline void own_timer_needed(const char *why)
{
#ifdef TIMER_BY_SBI
    (void)why;
#else
    machine_needs("sstc", why);
#endif
}
