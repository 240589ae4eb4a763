/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See translated.h. Each is in one page, and loads nothing but what it is told to. */
    .option norelax
    .equ FENCES, 5
    .equ NUMBER, 7
    .equ SSTATUS_SPP, 1 << 8
    .equ HSTATUS_SPV, 1 << 7

    .macro loads
1:  mv t0, a1
    mv t1, a3
2:  ld t2, 0(t0)
    add t0, t0, a2
    addi t1, t1, -1
    bnez t1, 2b
    addi a4, a4, -1
    bnez a4, 1b
    .endm

    .balign 128
    .globl touch
touch:
    csrw satp, a0
    loads
    csrw satp, zero
    ret

    /* The same, where the loop is executed a5 above where it is. */
    .balign 128
    .globl touch_from_alias
touch_from_alias:
    csrw satp, a0
    lla t3, 3f
    lla t4, 4f
    add t3, t3, a5
    jr t3
3:  loads
    jr t4
4:  csrw satp, zero
    ret

    .balign 128
    .globl fence_often
fence_often:
    csrw satp, a0
    .rept FENCES
    sfence.vma
    .endr
    csrw satp, zero
    ret

    /* Whatever traps in VS-mode comes back to HS-mode. */
    .balign 128
    .globl fence_in_vs
fence_in_vs:
    lla t1, fencing
    j enter
    /* The same in VU-mode: a round before a window, one in it, one behind it. The window's instructions are the mark, 2, 4 for each of `count` addresses, and 2. */
    .globl touch_in_window
touch_in_window:
    lla t1, window
    li t0, SSTATUS_SPP
    csrc sstatus, t0
    j enter_mode
    .globl touch_in_vs
touch_in_vs:
    lla t1, touching
enter:
    li t0, SSTATUS_SPP
    csrs sstatus, t0
enter_mode:
    csrw 0x280, a0 /* vsatp */
    lla t0, returned
    csrw stvec, t0
    csrw sepc, t1
    li t0, HSTATUS_SPV
    csrs 0x600, t0 /* hstatus */
    sret
touching:
    loads
    ecall
window:
    loads
    li a4, 1
    slti x0, x0, NUMBER
    loads
    slti x0, x0, -NUMBER
    li a4, 1
    loads
    ecall
fencing:
    sfence.vma
    ecall
    .balign 4
returned:
    csrw 0x280, zero
    ret
