/* Computes, and tells how much of it was done in a certain time: `work BEGIN_MS RUN_MS AFTER_MS`. It begins at once, counts the instructions that it executes from
 * BEGIN_MS to RUN_MS later, by the time that Linux has been up, and goes on for another AFTER_MS. */
#define PROGRAM "work"
#include "bare.h"

enum { SYS_exit_group = 94, SYS_clock_gettime = 113 };
enum { CLOCK_MONOTONIC = 1 };
/* Between two looks at the clock, which take some hundred: a fifth of a millisecond at 250 MIPS. */
#define INSTRUCTIONS_PER_ROUND 50000
#define INSTRUCTIONS_PER_LOOP 8

struct timespec {
	long s, ns;
};

static _Noreturn void leave(int status)
{
	for (;;)
		syscall6(SYS_exit_group, status, 0, 0, 0, 0, 0);
}

static uint64_t now_ms(void)
{
	struct timespec now;
	syscall6(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&now, 0, 0, 0, 0);
	return (uint64_t)now.s * 1000 + (uint64_t)now.ns / 1000000;
}

static void compute(void)
{
	uint64_t loops = INSTRUCTIONS_PER_ROUND / INSTRUCTIONS_PER_LOOP;
	__asm__ volatile("1: nop; nop; nop; nop; nop; nop; addi %0, %0, -1; bnez %0, 1b" : "+r"(loops));
}

static uint64_t number_of(const char *text)
{
	uint64_t value = 0;
	for (; *text >= '0' && *text <= '9'; text++)
		value = value * 10 + (uint64_t)(*text - '0');
	return value;
}

__attribute__((used)) static void run(const long *stack)
{
	if (stack[0] != 4) {
		print("usage: work BEGIN_MS RUN_MS AFTER_MS\n");
		leave(1);
	}
	uint64_t begin = number_of((const char *)stack[2]), end = begin + number_of((const char *)stack[3]);
	uint64_t stop = end + number_of((const char *)stack[4]), began = now_ms(), done = 0;
	for (uint64_t now = began; now < stop; now = now_ms()) {
		compute();
		if (now >= begin && now < end)
			done += INSTRUCTIONS_PER_ROUND;
	}
	/* Who began too late has measured something else. */
	if (began >= begin) {
		print(PROGRAM ": Linux was up too late: begin later\n");
		leave(1);
	}
	print("\"instructions\":");
	print_number(done);
	print("\n");
	leave(0);
}

/* The kernel leaves argc and argv on the stack. */
__asm__(".globl _start\n_start:\n\tmv a0, sp\n\tcall run\n");
