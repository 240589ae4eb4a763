/* Where the probe `spin` spins: at places that a count of instructions can name. */

.section .text.spin, "ax"
.balign 4
.global spin
spin:                               /* a0: how many times, from 1 */
    .word 0x00d00073                /* wrs.nto, which the assembler doesn't know */
.global spin_next
spin_next:
    addi a0, a0, -1
    bnez a0, spin
    ret
