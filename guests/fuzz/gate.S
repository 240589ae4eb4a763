/* The way into the code that is tried out, and back: two pages, a copy for each vCPU just before its own page (memory.c).
 *
 * Tried code has no way to leave the fuzzer with a wrong idea of whose hart this is, or with a translation of its own, wherever it jumps:
 * - Of the two pages only the second is mapped while it runs, and what follows behind `came_back` is not. A write of `satp` with a value that
 *   is not zero is the last instruction of the first page.
 * - The vCPU is found by the program counter, not by a register: `sscratch` has nothing but one register's value for a moment. So no other
 *   vCPU's copy is mapped: there this hart would be taken for the other's. Nor is another's code: it may write `stvec` with registers for it.
 * So a jump to the trap entry is like a trap, with any cause; should an interrupt come in the middle of it, it is one more. */
#include "vcpu.h"

.macro EACH_HOME instruction base
    \instruction ra, VCPU_HOME(0)(\base)
    \instruction sp, VCPU_HOME(1)(\base)
    \instruction gp, VCPU_HOME(2)(\base)
    \instruction tp, VCPU_HOME(3)(\base)
    \instruction s0, VCPU_HOME(4)(\base)
    \instruction s1, VCPU_HOME(5)(\base)
    \instruction s2, VCPU_HOME(6)(\base)
    \instruction s3, VCPU_HOME(7)(\base)
    \instruction s4, VCPU_HOME(8)(\base)
    \instruction s5, VCPU_HOME(9)(\base)
    \instruction s6, VCPU_HOME(10)(\base)
    \instruction s7, VCPU_HOME(11)(\base)
    \instruction s8, VCPU_HOME(12)(\base)
    \instruction s9, VCPU_HOME(13)(\base)
    \instruction s10, VCPU_HOME(14)(\base)
    \instruction s11, VCPU_HOME(15)(\base)
.endm

.macro EACH_TO_T4 instruction
    .irp n, 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29
    \instruction x\n, VCPU_X(\n)(t6)
    .endr
.endm

/* A copy must do the same elsewhere, and an instruction be four bytes long. */
.option norelax
.option norvc
.section .rodata.gate, "a"
.balign 4096
.global gate
gate:
    EACH_HOME sd a0
    ld t0, VCPU_X(0)(a0)
    csrw sepc, t0
    ld t0, VCPU_STATUS(a0)
    csrw sstatus, t0
    ld t0, VCPU_SIE(a0)
    csrw sie, t0
    li t0, 1
    sd t0, VCPU_INSIDE(a0)
    fence.i
    mv t6, a0
    ld t5, VCPU_X(31)(t6)
    csrw sscratch, t5
    EACH_TO_T4 ld
    ld t5, VCPU_X(30)(t6)
    ld t6, VCPU_SATP(t6)
    j 1f
    .org gate + 4092
1:  csrw satp, t6
    /* The second page. */
    sfence.vma
    csrr t6, sscratch
    sret

/* Every trap. Translation ends first: the addresses of this page are the same without. */
    .org gate + GATE_TRAP
    csrw sscratch, t6
    csrw satp, zero
    auipc t6, 1
    addi t6, t6, -(GATE_TRAP - 4096 + 8) /* the page behind this one */
    sd t5, VCPU_X(30)(t6)
    ld t5, VCPU_BACK(t6)
    jr t5
    .org gate + 8192

.section .text.came_back, "ax"
.balign 4
.global came_back
came_back:
    /* If it was a jump, interrupts may be on. One that came in until here counts as the trap, or as the next one. */
    csrrci t5, sstatus, 2
    sd t5, VCPU_STATUS(t6)
    EACH_TO_T4 sd
    csrr t0, sscratch
    sd t0, VCPU_X(31)(t6)
    csrr t0, sepc
    sd t0, VCPU_X(0)(t6)
    csrr t0, scause
    sd t0, VCPU_CAUSE(t6)
    csrr t0, stval
    sd t0, VCPU_VALUE(t6)
    ld t0, VCPU_INSIDE(t6)
    beqz t0, 1f
    sd zero, VCPU_INSIDE(t6)
    EACH_HOME ld t6
    ret
1:  /* In the fuzzer's own code: the registers may be anything. */
    mv tp, t6
    ld sp, VCPU_STACK(t6)
    .option push
    .option norelax
    la gp, __global_pointer$
    .option pop
    mv a0, t6
    tail unexpected
