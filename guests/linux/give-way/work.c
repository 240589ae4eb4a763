/* Computes, and tells how much of it was done in a certain time: `work HZ BEGIN_MS RUN_MS`. It begins at once, and counts the instructions that it executes from BEGIN_MS
 * to RUN_MS later, by the machine's `time`, which has HZ ticks in a second and is the same for all guests: so two of them can count in the same time. */
#define PROGRAM "work"
#include "bare.h"

/* Between two looks at the clock: a fifth of a millisecond at 250 MIPS. */
#define INSTRUCTIONS_PER_ROUND 50000
#define INSTRUCTIONS_PER_LOOP 8

static uint64_t read_time(void)
{
	uint64_t now;
	__asm__ volatile("rdtime %0" : "=r"(now));
	return now;
}

static void compute(void)
{
	uint64_t loops = INSTRUCTIONS_PER_ROUND / INSTRUCTIONS_PER_LOOP;
	__asm__ volatile("1: nop; nop; nop; nop; nop; nop; addi %0, %0, -1; bnez %0, 1b" : "+r"(loops));
}

__attribute__((used)) static void run(const long *stack)
{
	if (stack[0] != 4)
		fail("usage: work HZ BEGIN_MS RUN_MS; words given:", (uint64_t)stack[0] - 1);
	uint64_t ticks_per_ms = number_of((const char *)stack[2]) / 1000;
	uint64_t begin = number_of((const char *)stack[3]) * ticks_per_ms, end = begin + number_of((const char *)stack[4]) * ticks_per_ms;
	uint64_t done = 0, now = read_time();
	/* Who begins too late measures something else. */
	if (now >= begin)
		fail("Linux was up too late, begin later: by so many ticks,", now - begin);
	for (; now < end; now = read_time()) {
		compute();
		if (now >= begin)
			done += INSTRUCTIONS_PER_ROUND;
	}
	print("\"instructions\":");
	print_number(done);
	print("\n");
	for (;;)
		syscall6(SYS_exit_group, 0, 0, 0, 0, 0, 0);
}

/* The kernel leaves argc and argv on the stack. */
__asm__(".globl _start\n_start:\n\tmv a0, sp\n\tcall run\n");
