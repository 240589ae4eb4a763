/* Makes translations invalid on all CPUs: `shootdown THREADS MILLISECONDS`. So many threads of one process, each on a CPU of its own as far as there are as
 * many, take the right to write from a page and give it back, again and again: the kernel then has all of the process's CPUs forget the page. Each writes its
 * page after each time, which ends the process if one of them has not been told. Prints how often they did. */
#include "bare.h"

enum { SYS_exit = 93, SYS_sched_setaffinity = 122, SYS_mmap = 222, SYS_mprotect = 226, SYS_clone = 220 };
enum { SYS_wait4 = 260, SYS_exit_group = 94, SYS_clock_gettime = 113, CLOCK_MONOTONIC = 1 };
enum { PROT_READ = 1, PROT_READ_WRITE = 3, MAP_PRIVATE_ANONYMOUS = 0x22 };
/* CLONE_VM, CLONE_FS, CLONE_FILES and CLONE_SIGHAND; the signal that tells the parent is SIGCHLD. */
enum { CLONE_THREAD_LIKE = 0x100 | 0x200 | 0x400 | 0x800, SIGCHLD = 17 };
enum { PAGE = 4096, MOST_THREADS = 64, STACK = 4 * PAGE };

struct timespec {
	long s, ns;
};

static struct {
	_Alignas(64) volatile uint64_t count;
} done[MOST_THREADS];
static uint64_t threads, end_ns;

static _Noreturn void fail(const char *why, uint64_t value)
{
	print("shootdown: ");
	print(why);
	print(" ");
	print_number(value);
	print("\n");
	for (;;)
		syscall6(SYS_exit_group, 1, 0, 0, 0, 0, 0);
}

static uint64_t now_ns(void)
{
	struct timespec now;
	syscall6(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&now, 0, 0, 0, 0);
	return (uint64_t)now.s * 1000000000 + (uint64_t)now.ns;
}

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

/* The child begins on another stack, where nothing may be taken from this one: it gets its number in a saved register. */
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

static uint64_t number_of(const char *text)
{
	uint64_t value = 0;
	for (; *text >= '0' && *text <= '9'; text++)
		value = value * 10 + (uint64_t)(*text - '0');
	return *text ? 0 : value;
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
