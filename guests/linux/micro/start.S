/* What stands in front of `main` in a program on Debian's libc, as crt1.o would: the kernel leaves argc and argv on the stack, and the dynamic linker its
 * own last function in a0. */
	.globl _start
_start:
	mv a5, a0 /* what exit() calls for the dynamic linker */
	la a0, main
	ld a1, 0(sp) /* argc */
	addi a2, sp, 8 /* argv */
	mv a6, sp
	andi sp, sp, -16
	li a3, 0 /* no constructors of its own, no destructors */
	li a4, 0
	call __libc_start_main
	ebreak
