/* void run(struct step_state *state, const uint32_t *code): puts a state into the hart, goes to `code`, and when that comes to `arrived`, by a jump or by a trap, puts
 * the hart's state back into memory. The layout is that of `struct step_state` in steps.c. */

.option norelax

.equ SSTATUS, 0
.equ SIE, 8
.equ STVEC, 16
.equ SSCRATCH, 24
.equ SEPC, 32
.equ SCAUSE, 40
.equ STVAL, 48
.equ SIP, 56
.equ STIMECMP, 64
.equ SCOUNTEREN, 72
.equ SENVCFG, 80
.equ A0, 88
.equ A1, 96
.equ SLOT, 104
.equ HAS_STIMECMP, 112
.equ HAS_SENVCFG, 120

#include "callee_saved.h"

.macro put name, at
    ld t0, \at(t4)
    csrw \name, t0
.endm

.macro get name, at
    csrr t0, \name
    sd t0, \at(t4)
.endm

.section .text.run, "ax"
.global run
run:
    la t0, saved
    FOR_CALLEE_SAVED sd
    sd a0, 128(t0)
    mv t4, a0
    mv t5, a1
    la t6, arrived
    put sie, SIE
    put stvec, STVEC
    put sscratch, SSCRATCH
    put sepc, SEPC
    put scause, SCAUSE
    put stval, STVAL
    put sip, SIP
    put scounteren, SCOUNTEREN
    ld t0, HAS_STIMECMP(t4)
    beqz t0, 1f
    put 0x14d, STIMECMP
1:  ld t0, HAS_SENVCFG(t4)
    beqz t0, 1f
    put 0x10a, SENVCFG
1:  ld a0, A0(t4)
    ld a1, A1(t4)
    li t2, 0
    put sstatus, SSTATUS
    jr t5

/* Where traps go. The link of its jump tells which one it was: t2 stays 0 if there was none. */
.global step_vector
.balign 256
step_vector:
.option push
.option norvc
.rept 16
    jal t2, arrived
.endr
.option pop

arrived:
    la t0, saved
    ld t4, 128(t0)
    get sstatus, SSTATUS
    csrci sstatus, 2
    get sie, SIE
    csrw sie, zero
    get stvec, STVEC
    get sscratch, SSCRATCH
    get sepc, SEPC
    get scause, SCAUSE
    get stval, STVAL
    get sip, SIP
    get scounteren, SCOUNTEREN
    ld t0, HAS_STIMECMP(t4)
    beqz t0, 1f
    get 0x14d, STIMECMP
1:  ld t0, HAS_SENVCFG(t4)
    beqz t0, 1f
    get 0x10a, SENVCFG
1:  sd a0, A0(t4)
    sd t2, SLOT(t4)
    la t0, saved
    FOR_CALLEE_SAVED ld
    ret

/* The way to a program. */
.global step_sret
step_sret:
    sret

.section .bss
.balign 8
saved: .space 136
