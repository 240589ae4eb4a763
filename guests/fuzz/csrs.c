/* Each CSR number with each CSR instruction, in S-mode, and in U-mode. */
#include "code.h"
#include "csr.h"
#include "gate.h"
#include "kinds.h"
#include "machine.h"
#include "memory.h"
#include "random.h"

#define NUMBERS 4096
#define PIECE 4

#define CSRW(csr, rs1) ((uint32_t)(csr) << 20 | (rs1) << 15 | 1u << 12 | 0x73)
#define SATP 0x180
#define SELECTED 0x110 /* sireg, which is tried next, is something else for most numbers below this in siselect, and nothing for the others */

/* Values that satp may take while nothing is mapped: Bare, or a mode that there isn't, so that the write does nothing. */
static uint64_t harmless_satp(struct vcpu *v)
{
    static const uint8_t modes[] = { 0, 1, 2, 7, 11, 12, 15 };
    return (uint64_t)one_of(v, modes) << 60 | any(v) >> 4;
}

unsigned try_csrs(struct vcpu *v)
{
    bool user = once_in(v, 8);
    code_start(v);
    registers_fill(v);
    /* What the way back needs is put in order again before anything can trap: interrupts are off. */
    v->x[20] = gate_trap(v);
    v->x[22] = 0;
    v->x[23] = 1ul << IRQ_TIMER;
    v->x[24] = read_time() + us_to_ticks(100);
    v->x[25] = harmless_satp(v);
    v->x[26] = 2; /* sstatus.SIE */
    for (int i = 0; i < PIECE; i++) {
        unsigned number = v->next_csr++ % NUMBERS;
        unsigned operation = 1 + below(v, 6);
        operation += operation >= 4; /* 1 to 3, 5 to 7 */
        unsigned rs1 = any(v) & 15, rd = any(v) & 15;
        if (operation < 4 && rs1)
            v->x[rs1] = number == CSR_SISELECT ? below(v, SELECTED) : edge_number(v);
        if (number == SATP)
            code_add_exactly(v, CSRW(SATP, 25) | rd << 7);
        else
            code_add_exactly(v, (uint32_t)number << 20 | rs1 << 15 | operation << 12 | rd << 7 | 0x73);
        if (!user) {
            code_add_own(v, CSRW(0x105, 20));
            code_add_own(v, CSRW(SATP, 22));
            code_add_own(v, CSRW(0x104, 23));
            if (machine.has_sstc)
                code_add_own(v, CSRW(CSR_STIMECMP, 24));
            code_add_own(v, 0x100d3073); /* csrrc x0, sstatus, x26 */
        }
    }
    unsigned tried = code_run(v, (struct setting){
        .user = user, .interrupts = user, .satp = user ? fence_satp(v, false) : 0, .limit_us = 100 });
    csr_write(0x106, any(v) & 7); /* scounteren, senvcfg: something else for the next one */
    return tried;
}
