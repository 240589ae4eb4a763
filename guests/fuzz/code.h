/* The code that is tried out: a few instructions in the vCPU's own page. */
#pragma once
#include "vcpu.h"

#define ECALL 0x00000073u
#define A7    17

/* How it runs. */
struct setting {
    bool user;       /* in U-mode, else in S-mode */
    bool interrupts; /* on: needed wherever the code may loop, as the watchdog is one */
    uint64_t satp;
    uint64_t limit_us; /* of the watchdog */
};

void code_start(struct vcpu *v);

/* Adds an instruction to code for S-mode, changed where it would end the fuzzer's hold on the hart: a write to a CSR that the way back
 * needs, a jump into the middle of another instruction, or a write to a7: some SBI calls end the guest, or put the watchdog off. */
void code_add(struct vcpu *v, uint32_t bits);

/* Adds it as it is. */
void code_add_exactly(struct vcpu *v, uint32_t bits);

/* The same for one that is no input. All together have room for 64 instructions of two bytes. */
void code_add_own(struct vcpu *v, uint32_t bits);

/* Runs it from v->x's registers. An instruction that traps is left out and the next one is run. Returns how many of the inputs are known
 * to have been tried: of those behind a jump or the end of the watchdog's patience only the ones that trapped. */
unsigned code_run(struct vcpu *v, struct setting setting);

/* Random registers: addresses of the scratch area, edge numbers, anything. */
void registers_fill(struct vcpu *v);
