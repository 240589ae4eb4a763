/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Entry of all harts in S-mode: a0 = hart id. The first comes from the firmware, the others from hart_start. */
    .equ STACK_SHIFT, 12
    .equ MAX_HARTS, 64

    .section .text.start, "ax"
    .globl _start
_start:
    la t0, __bss_start
    la t1, __bss_end
1:  sd zero, 0(t0)
    addi t0, t0, 8
    bltu t0, t1, 1b
    call set_stack
    call first_hart
    j .

    .globl secondary_start
secondary_start:
    call set_stack
    call other_hart
    j .

set_stack: /* stacks follow the program, so clearing .bss doesn't touch them */
    la sp, __bss_end
    addi t0, a0, 1
    slli t0, t0, STACK_SHIFT
    add sp, sp, t0
    andi sp, sp, -16
    ret
