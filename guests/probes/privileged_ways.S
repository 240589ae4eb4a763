/* The instructions that privileged.c measures, in a page without data: a hypervisor that puts something else in their place may do so only there. Operands in a0 and a1. */
    .section .text
    .balign 4096
    .global save_and_restore, return_to_kernel, set_own_timer, fence_page, switch_space
save_and_restore:
    csrrci t0, sstatus, 2
    andi t0, t0, 2
    csrs sstatus, t0
    ret
return_to_kernel:
    la t0, 1f
    csrw sepc, t0
    csrs sstatus, a0
    sret
1:  ret
set_own_timer:
    csrw 0x14d, a0
    ret
fence_page:
    sfence.vma a0, a1
    ret
switch_space:
    csrw satp, a0
    ret
    .balign 4096
