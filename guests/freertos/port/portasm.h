/* A task's registers on its stack while it doesn't run. For C and for assembler. */
#pragma once
#include "trap_frame.h"

#define FP_REGISTERS  FRAME_BYTES
#define FP_F(n)       (FP_REGISTERS + (n) * 8)
#define FP_FCSR       FP_F(32)
#define FP_BYTES      (34 * 8)
#define TASK_FRAME_BYTES (FRAME_BYTES + FP_BYTES)

#ifndef __ASSEMBLER__
struct task_frame {
    struct trap_frame trap;
    /* Filled only if trap.sstatus says FS = clean or dirty. */
    uint64_t f[32];
    uint64_t fcsr;
    uint64_t padding;
};
_Static_assert(sizeof(struct task_frame) == TASK_FRAME_BYTES, "known to the assembler");
#endif
