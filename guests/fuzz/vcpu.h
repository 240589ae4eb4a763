/* One vCPU of the fuzzer: what it remembers, and the registers of the code that it tries out. For C and for gate.S. */
#pragma once

#define VCPU_X(n)    ((n) * 8)  /* x0's place holds the program counter */
#define VCPU_STATUS  (32 * 8)   /* sstatus to run with, and as it was at the trap */
#define VCPU_SIE     (33 * 8)
#define VCPU_SATP    (34 * 8)
#define VCPU_CAUSE   (35 * 8)
#define VCPU_VALUE   (36 * 8)
#define VCPU_INSIDE  (37 * 8)
#define VCPU_HOME(n) ((38 + (n)) * 8) /* ra, sp, gp, tp, s0 to s11 */
#define VCPU_BACK    (54 * 8)
#define VCPU_STACK   (55 * 8)
#define GATE_TRAP    (4096 + 16) /* where the trap entry is in the gate */

#ifndef __ASSEMBLER__
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "start.h"

/* Kinds of inputs. A bit of the parameter `kinds` stands for each. */
enum kind {
    KIND_INSTRUCTIONS, /* any instruction, in S-mode */
    KIND_USER,         /* the same in U-mode */
    KIND_CSRS,         /* each CSR number with each CSR instruction */
    KIND_CALLS,        /* SBI: every extension, edge arguments */
    KIND_DEVICES,      /* loads and stores that virtual devices take */
    KIND_WILD,         /* accesses that no device and no memory takes: the guest must survive these to try them */
    KIND_PAGING,       /* random page tables, and accesses through them */
    KIND_LIFECYCLE,    /* vCPUs that stop, start and suspend each other */
    KIND_PENDING,      /* IPIs, timers, WFI, interrupt enables */
    KIND_KEEP,         /* do f, v and CSRs keep what is in them? */
    KIND_OUTPUT,       /* the console, by DBCN and by the UART */
    KINDS,
};

/* One page each, which the tried-out code may read and nobody but its owner writes. */
struct vcpu {
    union {
        uint64_t x[32];
        uint64_t pc;
    };
    uint64_t status, sie, satp, cause, value;
    uint64_t inside; /* the tried-out code runs: a trap is its trap */
    uint64_t home[16];
    void (*back)(void); /* where the gate goes on after a trap */

    struct secondary start;
    uint64_t id;
    unsigned index;
    uint64_t random;
    uint8_t *code;        /* its page */
    unsigned length;      /* bytes of code in it */
    uint64_t to_try;      /* where the inputs in it begin; bit n: at byte 2n */
    uint64_t tried;       /* the instructions that are known to have been tried, likewise */
    struct fence *fence;  /* what its code may reach (memory.c) */
    uint64_t (*tables)[512]; /* TABLES pages for random translations */
    uint64_t (*wild)[512]; /* two pages for translations that lead anywhere; none if that isn't tried */
    unsigned next_csr;    /* number of the next one that is tried */
    uint64_t inputs;      /* to do */
    volatile uint64_t done; /* so far; the others watch it */
    volatile bool finished;
    uint64_t counts[KINDS];
    uint64_t traps, watchdogs;
    volatile uint64_t lives; /* how often it was started */
    uint64_t first, last; /* `time` before its first input and after its last one; 0: it has had none */
    uint64_t ipis;
    uint64_t way; /* so many ticks may pass from where the watchdog is set until the tried-out code begins */
};

extern struct vcpu *vcpus[];
extern unsigned vcpu_count;
extern unsigned kind_mask;

static inline struct vcpu *self(void)
{
    struct vcpu *v;
    __asm__ volatile("mv %0, tp" : "=r"(v));
    return v;
}

_Static_assert(offsetof(struct vcpu, inside) == VCPU_INSIDE && offsetof(struct vcpu, home) == VCPU_HOME(0) &&
    offsetof(struct vcpu, back) == VCPU_BACK && offsetof(struct vcpu, start.stack_top) == VCPU_STACK, "gate.S knows these");

/* Something that must not be: says so, once for all vCPUs, and ends the guest. */
__attribute__((noreturn, format(printf, 1, 2))) void broken(const char *format, ...);
#endif
