/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Paths with a known number of instructions. Blocks that a trap or an MMIO access leaves in the middle are in, because
   a count per translation block would be wrong there. No compressed instructions: skip_fault adds 4. */
    .option norvc
    .option norelax
    .equ LOOP_COUNT, 1000
    .equ UART_STATUS, 0x10000005
    .equ UNMAPPED, 0xc0000000

    .globl run_paths
run_paths:
    .globl loop_begin
loop_begin: /* 1 + 2 * LOOP_COUNT = 2001 */
    li t0, LOOP_COUNT
1:  addi t0, t0, -1
    bnez t0, 1b
    .globl loop_end
loop_end:
    li t2, UNMAPPED >> 28
    slli t2, t2, 28
    .globl fault_begin
fault_begin: /* 2 + the load that faults + 4 in skip_fault + 3 = 10 */
    nop
    nop
    ld t3, 0(t2)
    nop
    nop
    nop
    .globl fault_end
fault_end:
    lui t2, UART_STATUS >> 12
    .globl mmio_begin
mmio_begin: /* 5 */
    nop
    lbu t3, 5(t2)
    nop
    lbu t3, 5(t2)
    nop
    .globl mmio_end
mmio_end:
    li t0, 4
    .globl twice_begin
twice_begin: /* reached 4 times before twice_end: 4 from the last time, 16 from the first */
    addi t0, t0, -1
    nop
    nop
    bnez t0, twice_begin
    .globl twice_end
twice_end:
    nop
    .globl straight_begin
straight_begin: /* 400, more than a slice: lockstep.so leaves the block somewhere in the middle */
    .rept 400
    addi t0, t0, 1
    .endr
    .globl straight_end
straight_end:
    ret

    .balign 4
    .globl skip_fault
skip_fault:
    csrr t1, sepc
    addi t1, t1, 4
    csrw sepc, t1
    sret
