/* Makes translations invalid on all CPUs: `shootdown THREADS MILLISECONDS`. So many threads of one process, each on a CPU of its own as far as there are as
 * many, take the right to write from a page and give it back, again and again: the kernel then has all of the process's CPUs forget the page. Each writes its
 * page after each time, which ends the process if one of them has not been told. Prints how often they did. */
#define PROGRAM "shootdown"
#include "threads.h"

enum { SYS_mprotect = 226, PROT_READ = 1, MOST_THREADS = 64 };

static struct {
	_Alignas(64) volatile uint64_t count;
} done[MOST_THREADS];
static uint64_t threads, end_ns;

static char *map(size_t bytes)
{
	long at = syscall6(SYS_mmap, 0, (long)bytes, PROT_READ_WRITE, MAP_PRIVATE_ANONYMOUS, -1, 0);
	if (at < 0 && at > -PAGE)
		fail("no memory: error", (uint64_t)-at);
	return (char *)at;
}

__attribute__((used)) static _Noreturn void work(uint64_t number)
{
	uint64_t cpu = UINT64_C(1) << number;
	/* With fewer CPUs it stays where it is. */
	syscall6(SYS_sched_setaffinity, 0, sizeof cpu, (long)&cpu, 0, 0, 0);
	volatile char *page = map(PAGE);
	while (now_ns() < end_ns) {
		page[0] = 1;
		if (syscall6(SYS_mprotect, (long)page, PAGE, PROT_READ, 0, 0, 0) < 0 ||
		    syscall6(SYS_mprotect, (long)page, PAGE, PROT_READ_WRITE, 0, 0, 0) < 0)
			fail("no mprotect in thread", number);
		done[number].count++;
	}
	for (;;)
		syscall6(SYS_exit, 0, 0, 0, 0, 0, 0);
}

__attribute__((used)) static void run(const long *stack)
{
	uint64_t milliseconds = 0;
	if (stack[0] == 3) {
		threads = number_of((const char *)stack[2]);
		milliseconds = number_of((const char *)stack[3]);
	}
	if (!threads || threads > MOST_THREADS || !milliseconds)
		fail("usage: shootdown THREADS MILLISECONDS, threads at most", MOST_THREADS);
	end_ns = now_ns() + milliseconds * 1000000;
	for (uint64_t number = 0; number < threads; number++) {
		long child = start(number, map(STACK) + STACK);
		if (child < 0)
			fail("no thread: error", (uint64_t)-child);
	}
	uint64_t count = 0;
	for (uint64_t number = 0; number < threads; number++) {
		int status = 0;
		long child = syscall6(SYS_wait4, -1, (long)&status, 0, 0, 0, 0);
		if (child < 0 || status)
			fail("a thread ended with", (uint64_t)status);
	}
	for (uint64_t number = 0; number < threads; number++) {
		if (!done[number].count)
			fail("nothing done by thread", number);
		count += done[number].count;
	}
	print("\"shootdowns\":");
	print_number(2 * count);
	print("\n");
	for (;;)
		syscall6(SYS_exit_group, 0, 0, 0, 0, 0, 0);
}

/* The kernel leaves argc and argv on the stack. */
__asm__(".globl _start\n_start:\n\tmv a0, sp\n\tcall run\n");
