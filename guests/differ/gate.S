/* The way into a program and back. All of this is mapped where it is, for the kernel alone, in each address space that a program can have. */
#include "context.h"

.macro EACH_OWN instruction
    \instruction ra,  0*8(sp)
    \instruction gp,  1*8(sp)
    \instruction tp,  2*8(sp)
    \instruction s0,  3*8(sp)
    \instruction s1,  4*8(sp)
    \instruction s2,  5*8(sp)
    \instruction s3,  6*8(sp)
    \instruction s4,  7*8(sp)
    \instruction s5,  8*8(sp)
    \instruction s6,  9*8(sp)
    \instruction s7, 10*8(sp)
    \instruction s8, 11*8(sp)
    \instruction s9, 12*8(sp)
    \instruction s10, 13*8(sp)
    \instruction s11, 14*8(sp)
.endm

.macro EACH_OF_PROGRAM instruction /* but tp and t0 */
    .irp n, 1,2,3,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    \instruction x\n, CONTEXT_X(\n)(tp)
    .endr
.endm

.section .text.gate, "ax"
.option norelax
.balign 4
.global gate_enter
gate_enter:
    addi sp, sp, -16*8
    EACH_OWN sd
    la tp, context
    sd sp, CONTEXT_HOME(tp)
    ld t0, CONTEXT_VECTOR(tp)
    csrw stvec, t0
    ld t0, CONTEXT_X(0)(tp)
    csrw sepc, t0
    ld t0, CONTEXT_STATUS(tp)
    csrw sstatus, t0
    ld t0, CONTEXT_SATP(tp)
    csrw satp, t0
    EACH_OF_PROGRAM ld
    ld t0, CONTEXT_X(5)(tp)
    sret

/* A trap has come in by the entry whose number is in t0. */
taken:
    sd t0, CONTEXT_ENTRY(tp)
    EACH_OF_PROGRAM sd
    csrrw t0, satp, zero
    sd t0, CONTEXT_SATP(tp)
    csrr t0, sstatus
    sd t0, CONTEXT_STATUS(tp)
    la t1, trap_entry
    csrrw t0, stvec, t1
    sd t0, CONTEXT_VECTOR(tp)
    csrr t0, sepc
    sd t0, CONTEXT_X(0)(tp)
    ld sp, CONTEXT_HOME(tp)
    EACH_OWN ld
    addi sp, sp, 16*8
    ret

.macro EACH_FLOAT instruction
    .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    \instruction f\n, CONTEXT_FLOAT(\n)(t0)
    .endr
.endm

.global gate_save_float
gate_save_float:
    la t0, context
    EACH_FLOAT fsd
    ret

.global gate_load_float
gate_load_float:
    la t0, context
    EACH_FLOAT fld
    ret

/* An entry has room for a jump, so each has its own beginning elsewhere. */
.altmacro
.macro TABLE_ENTRY number
    j entry_\number
.endm
.macro BEGINNING number
entry_\number:
    sd t0, CONTEXT_X(5)(tp)
    li t0, \number
    j taken
.endm

.option norvc
.balign 64
.global gate_tables
gate_tables:
.set number, 0
.rept TABLES * ENTRIES
    TABLE_ENTRY %number
    .set number, number + 1
.endr
.set number, 0
.rept TABLES * ENTRIES
    BEGINNING %number
    .set number, number + 1
.endr
