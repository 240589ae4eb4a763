/* For probes that run on several harts, each of which has a `struct worker` of the probe's own in tp. */
#pragma once
#include <stdatomic.h>
#include "csr.h"
#include "trap.h"

struct worker;

static struct worker *self(void)
{
    struct worker *worker;
    __asm__ volatile("mv %0, tp" : "=r"(worker));
    return worker;
}

/* Somebody has found something wrong. */
static atomic_flag failing = ATOMIC_FLAG_INIT;

/* Only the first hart that finds something wrong says so, by `result`, and why. */
#define CHECK_OR(result, condition, ...)                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            while (atomic_flag_test_and_set(&failing))                                                                 \
                wait_for_interrupt();                                                                                  \
            result;                                                                                                    \
            fail(__VA_ARGS__);                                                                                         \
        }                                                                                                              \
    } while (0)
