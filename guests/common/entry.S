/* Where a guest begins: SBI hands over in S-mode with translation off, a0 = hart id, a1 = device tree. */

.section .init.start, "ax"
.global _start
_start:
    csrw sie, zero
    csrw sip, zero
.option push
.option norelax                     /* else the linker would load gp relative to gp */
    la gp, __global_pointer$
.option pop
    la sp, __stack_top
    mv tp, zero
    la t0, __bss_start
    la t1, __bss_end
1:  bgeu t0, t1, 2f
    sd zero, (t0)
    addi t0, t0, 8
    j 1b
2:  call guest_start                /* does not return */

/* A hart that HSM started: a0 = hart id, a1 = its struct secondary (see start.h). */
.global secondary_start
secondary_start:
    csrw sie, zero
    csrw sip, zero
.option push
.option norelax
    la gp, __global_pointer$
.option pop
    la t0, trap_entry
    csrw stvec, t0
    ld sp, 0(a1)
    ld t0, 8(a1)
    ld tp, 16(a1)
    mv a0, tp
    jr t0                           /* does not return */
