/* Trap entry and task switch. */
#include "portasm.h"

/* sstatus.FS: 0 off, 1 initial, 2 clean, 3 dirty. Bit 14 is set when the task has used floating point. */
#define FS_MASK 0x6000
#define FS_USED 0x4000

.macro FOR_EACH_FP_REGISTER instruction base
    .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    \instruction f\n, FP_F(\n)(\base)
    .endr
.endm

.section .text.trap_entry, "ax"
.balign 4
.global trap_entry
.type trap_entry, @function
trap_entry:
    SAVE_FRAME extra=FP_BYTES
    csrr a0, scause
    bgez a0, exception

    la s0, pxCurrentTCB
    ld s1, (s0)                     /* the interrupted task */
    sd sp, (s1)                     /* pxTopOfStack is the first thing in a TCB */
    li t0, FS_MASK
    csrc sstatus, t0                /* handlers may not use floating point */
    mv s3, sp
    lla sp, port_interrupt_stack + 4096 /* not by the GOT, which has no sums */
    call port_handle_interrupt
    ld s2, (s0)                     /* the task to run */
    mv sp, s3
    beq s1, s2, resume              /* the same: its floating-point registers are still there */

    ld t1, FRAME_SSTATUS(sp)
    li t0, FS_USED
    and t1, t1, t0
    beqz t1, switch_to
    li t0, FS_MASK
    csrs sstatus, t0
    FOR_EACH_FP_REGISTER fsd sp
    frcsr t0
    sd t0, FP_FCSR(sp)
    la t0, port_fp_in_use
    li t1, 1
    sb t1, (t0)

switch_to:                          /* s2: the task to run */
    ld sp, (s2)
    ld t1, FRAME_SSTATUS(sp)
    li t0, FS_MASK
    csrs sstatus, t0
    li t0, FS_USED
    and t1, t1, t0
    beqz t1, fresh_fp
    FOR_EACH_FP_REGISTER fld sp
    ld t0, FP_FCSR(sp)
    fscsr t0
    j resume
fresh_fp:                           /* not used so far: the task must not inherit another's rounding mode */
    la t0, port_fp_in_use           /* unless no task has ever set one: under a hypervisor, a first use costs a trap */
    lbu t0, (t0)
    beqz t0, resume
    fscsr zero
resume:
    RESTORE_FRAME_AND_RETURN extra=FP_BYTES

exception:                          /* of a task or of the kernel: there is no way on */
    mv a1, a0
    mv a0, sp
    call report_trap
.size trap_entry, . - trap_entry

.section .text.port_start_first_task, "ax"
.global port_start_first_task
port_start_first_task:              /* does not return; interrupts come on with the task's sstatus */
    la s2, pxCurrentTCB
    ld s2, (s2)
    j switch_to

.section .bss.port_fp_in_use, "aw", @nobits
port_fp_in_use:                     /* 1 when some task has used floating point */
    .byte 0
