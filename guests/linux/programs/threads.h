/* What programs of several threads have in common, beside bare.h, for which they define PROGRAM. The program defines `work`, which is what a thread does,
 * and doesn't return. */
#ifndef THREADS_H
#define THREADS_H

#include "bare.h"

enum { SYS_exit = 93, SYS_sched_setaffinity = 122, SYS_clone = 220, SYS_mmap = 222, SYS_wait4 = 260 };
enum { PROT_READ_WRITE = 3, MAP_PRIVATE_ANONYMOUS = 0x22 };
/* CLONE_VM, CLONE_FS, CLONE_FILES and CLONE_SIGHAND; the signal that tells the parent is SIGCHLD. */
enum { CLONE_THREAD_LIKE = 0x100 | 0x200 | 0x400 | 0x800, SIGCHLD = 17 };
enum { PAGE = 4096, STACK = 4 * PAGE };

/* Starts a thread that does `work(number)`. It begins on another stack, where nothing may be taken from this one: it gets its number in a saved register.
 * Returns its id, or an error below 0. */
long start(uint64_t number, char *stack_top);
__asm__("start:\n"
	"\tmv t0, a0\n"
	"\tli a0, 0xf11\n" /* CLONE_THREAD_LIKE | SIGCHLD */
	"\tli a2, 0\n\tli a3, 0\n\tli a4, 0\n"
	"\tli a7, 220\n"
	"\tecall\n"
	"\tbeqz a0, 1f\n"
	"\tret\n"
	"1:\tmv a0, t0\n"
	"\tj work\n");
_Static_assert((CLONE_THREAD_LIKE | SIGCHLD) == 0xf11 && SYS_clone == 220, "as `start` has them");

#endif
