/* The main loop of each vCPU. */
#pragma once
#include "vcpu.h"

/* Does the vCPU's inputs, or the attack. Where a vCPU that was stopped goes on when it is started again. */
__attribute__((noreturn)) void vcpu_run(void *vcpu);

/* The part of the boot vCPU, which returns when all are done. False if some aren't, after so long without any progress. */
bool boot_vcpu_run(uint64_t patience_ticks);

/* What all vCPUs do. */
struct plan {
    unsigned attack; /* 0: inputs */
    uint64_t begin;  /* of the attack or the inputs, at the earliest; in ticks of `time` */
    uint64_t length; /* in ticks; 0: no limit */
    volatile uint64_t end; /* when no more are begun; 0 until all vCPUs are there and begin */
    uint64_t phase;  /* of the attack `fault`: ticks behind a whole millisecond */
    unsigned kinds[64], kind_count; /* by weight */
};
extern struct plan plan;
