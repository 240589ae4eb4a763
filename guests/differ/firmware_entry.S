/* The firmware of the bare hart, in M-mode: its beginning, and its traps, which are the kernel's calls. */
#include "firmware.h"

#define KERNEL 0x80400000

.macro EACH_OF_KERNEL instruction /* but sp */
    .irp n, 1,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    \instruction x\n, FIRMWARE_X(\n)(sp)
    .endr
.endm

.section .init.start, "ax"
.option norelax
.global firmware_start
firmware_start:
    la sp, firmware_stack
    la t0, firmware_trap
    csrw mtvec, t0
    mv s0, a0
    mv s1, a1
    call firmware_setup
    csrw mscratch, sp
    li t0, KERNEL
    csrw mepc, t0
    mv a0, s0
    mv a1, s1
    mret

.balign 4
firmware_trap:
    csrrw sp, mscratch, sp
    addi sp, sp, -FIRMWARE_BYTES
    EACH_OF_KERNEL sd
    mv a0, sp
    call firmware_call
    EACH_OF_KERNEL ld
    addi sp, sp, FIRMWARE_BYTES
    csrrw sp, mscratch, sp
    mret
