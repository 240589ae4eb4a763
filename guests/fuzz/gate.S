/* The way into the code that is tried out, and back. This page, the vCPU's own page and nothing else of the fuzzer is mapped while that code runs. */
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

.macro EACH_BUT_T6 instruction
    .irp n, 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30
    \instruction x\n, VCPU_X(\n)(t6)
    .endr
.endm

.section .text.gate, "ax"
.balign 4096
.global gate
gate:

/* void run_code(struct vcpu *v) */
.global run_code
run_code:
    EACH_HOME sd a0
    csrw sscratch, a0
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
    EACH_BUT_T6 ld
    ld t6, VCPU_SATP(t6)
    csrw satp, t6
    sfence.vma
    csrr t6, sscratch
    ld t6, VCPU_X(31)(t6)
    sret

/* Every trap. Translation ends first: the addresses of this page are the same without. */
.balign 4
.global trap_entry
trap_entry:
    csrrw t6, sscratch, t6
    csrw satp, zero
    beqz t6, 2f
    EACH_BUT_T6 sd
    csrr t0, sscratch
    sd t0, VCPU_X(31)(t6)
    csrw sscratch, t6
    csrr t0, sepc
    sd t0, VCPU_X(0)(t6)
    csrr t0, sstatus
    sd t0, VCPU_STATUS(t6)
    csrr t0, scause
    sd t0, VCPU_CAUSE(t6)
    csrr t0, stval
    sd t0, VCPU_VALUE(t6)
    ld t0, VCPU_INSIDE(t6)
    beqz t0, 1f
3:  sd zero, VCPU_INSIDE(t6)
    EACH_HOME ld t6
    ret
1:  ld t0, VCPU_CAUSE(t6)
    addi t0, t0, -12
    li t1, 4
    bltu t0, t1, 3b   /* a page fault: tried code has jumped to the last lines above, and went on in the fuzzer's own code, under its tables */
    la t0, unexpected /* in the fuzzer's own code, on its own stack */
    mv a0, t6
    jr t0
2:  li a0, 0          /* before there was a vCPU: shut down with reason failure */
    li a1, 1
    li a6, 0
    li a7, 0x53525354
    ecall
    j 2b
.balign 4096
