/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A window of which all is known: begun in VU-mode, through VS-mode, ended in VU-mode. From the instruction that begins it (counted) to the one that ends it (not):
 *
 *   VU  17 instructions: the beginning, 10, the ECALL, 5
 *   VS   6: each of the five that trap once, and one of them twice
 *   S   12 for each of the 6 traps
 *
 * SATP is read under VTVM: first it is skipped, the second time VTVM is cleared and it is executed again.
 */
    .option norelax
    .equ SSTATUS_SPP, 1 << 8
    .equ HSTATUS_SPV, 1 << 7
    .equ HSTATUS_VTVM, 1 << 20
    .equ HSTATUS_VTW, 1 << 21
    .equ NUMBER, 7

    .balign 128
    .globl run_window
run_window:
    lla t0, on_trap
    csrw stvec, t0
    lla s0, steps
    lla t0, user
    csrw sepc, t0
    li t0, SSTATUS_SPP
    csrc sstatus, t0
    li t0, HSTATUS_SPV | HSTATUS_VTVM | HSTATUS_VTW
    csrs 0x600, t0 /* hstatus */
    sret
user:
    slti x0, x0, NUMBER
    .rept 10
    nop
    .endr
    ecall /* goes on in VS-mode */
    .option norvc
    csrr t0, satp
    sfence.vma
    csrr t0, satp
    wfi
    ecall /* goes on in VU-mode */
    .rept 5
    addi x0, x0, 0
    .endr
    slti x0, x0, -NUMBER
    ecall /* goes on in HS-mode */
    .option rvc
    li t0, HSTATUS_VTVM | HSTATUS_VTW
    csrc 0x600, t0
    ret

    .balign 128
on_trap:
    ld t2, 0(s0)
    csrr t1, sepc
    add t1, t1, t2
    csrw sepc, t1
    ld t2, 8(s0)
    csrs sstatus, t2
    ld t2, 16(s0)
    csrc sstatus, t2
    ld t2, 24(s0)
    csrc 0x600, t2
    addi s0, s0, 32
    sret

    .section .rodata
    .balign 8
steps: /* by how much to go on; set in sstatus, cleared there, cleared in hstatus */
    .dword 4, SSTATUS_SPP, 0, 0            /* ECALL of VU */
    .dword 4, 0, 0, 0                      /* satp */
    .dword 4, 0, 0, 0                      /* SFENCE.VMA */
    .dword 0, 0, 0, HSTATUS_VTVM           /* satp: again */
    .dword 4, 0, 0, 0                      /* WFI */
    .dword 4, 0, SSTATUS_SPP, 0            /* ECALL of VS */
    .dword 4, SSTATUS_SPP, 0, HSTATUS_SPV  /* ECALL of VU, behind the window */
