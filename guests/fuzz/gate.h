/* What gate.S calls and offers. */
#pragma once
#include "csr.h"
#include "vcpu.h"

#define GATE_SIZE 8192

extern const uint8_t gate[GATE_SIZE]; /* to be copied */
void came_back(void);

/* A vCPU's copy. */
static inline uint8_t *gate_of(struct vcpu *v) { return (uint8_t *)v - GATE_SIZE; }

/* Where its traps go. */
static inline uintptr_t gate_trap(struct vcpu *v) { return (uintptr_t)gate_of(v) + GATE_TRAP; }

/* Makes the copy. */
static inline void gate_prepare(struct vcpu *v)
{
    /* By words: the library's memcpy goes by bytes. */
    volatile uint64_t *to = (volatile uint64_t *)gate_of(v);
    for (unsigned i = 0; i < GATE_SIZE / sizeof *to; i++)
        to[i] = ((const uint64_t *)gate)[i];
    v->back = came_back;
}

/* Has this hart's traps go there. */
static inline void gate_use(struct vcpu *v)
{
    __asm__ volatile("fence.i" ::: "memory");
    csr_write(stvec, gate_trap(v));
}

/* Runs from v->pc with v's registers until the next trap, which it leaves in `pc`, `x`, `status`, `cause` and `value`. */
static inline void run_code(struct vcpu *v) { ((void (*)(struct vcpu *))gate_of(v))(v); }

__attribute__((noreturn)) void unexpected(struct vcpu *v);
