/* Access to each CSR by its number: two tables of routines of 8 bytes, since the number is part of the instruction. */

.option norvc
.option norelax

/* uint64_t csr_read_N(void): csrrs a0, N, x0 */
.global csr_readers
.balign 8
csr_readers:
.set number, 0
.rept 4096
    .word 0x00002573 | (number << 20)
    ret
.set number, number + 1
.endr

/* void csr_write_N(uint64_t value): csrrw x0, N, a0 */
.global csr_writers
.balign 8
csr_writers:
.set number, 0
.rept 4096
    .word 0x00051073 | (number << 20)
    ret
.set number, number + 1
.endr

/* Any trap goes to the instruction behind the one that made it, and is noted. The routines above leave t0 and t1 free. */
.global csr_trap
.balign 64
csr_trap:
    csrr t0, sepc
    addi t0, t0, 4
    csrw sepc, t0
    la t0, csr_trapped
    li t1, 1
    sd t1, 0(t0)
    sret

.section .bss
.global csr_trapped
.balign 8
csr_trapped: .dword 0
