/* What programs on Debian's libc use of it. The cross compiler of this project comes without headers of it, so the declarations are our own: libc's
 * functions with the types of its ABI on riscv64 (LP64D). start.S is in front of `main`. */
#ifndef LIBC_H
#define LIBC_H

#include <stddef.h>
#include <stdint.h>

typedef int pid_t;
struct timespec {
	long tv_sec, tv_nsec;
};
enum { CLOCK_MONOTONIC = 1, MADV_NOHUGEPAGE = 15, PROT_READ_WRITE = 3, MAP_PRIVATE_ANONYMOUS = 0x22 };

int printf(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void exit(int status);
_Noreturn void _exit(int status);
unsigned long strtoul(const char *text, char **end, int base);
size_t strlen(const char *text);
pid_t fork(void);
pid_t getpid(void);
pid_t waitpid(pid_t child, int *status, int options);
int execv(const char *file, char *const arguments[]);
int pipe(int ends[2]);
long read(int file, void *to, size_t bytes);
long write(int file, const void *from, size_t bytes);
int clock_gettime(int clock, struct timespec *);
void *mmap(void *at, size_t bytes, int protection, int flags, int file, long offset);
int sched_setaffinity(pid_t process, size_t bytes, const unsigned long *cpus);
int madvise(void *at, size_t bytes, int advice);

/* Begins and ends the window of a number from 1 to 1023 for the plugin windows.so (tools/qemu-plugins): SLTI of x0, x0, a HINT that the ISA leaves for
 * custom use, which does nothing on any hart. */
#define BEGIN_WINDOW(number) __asm__ volatile("slti x0, x0, %0" ::"i"(number) : "memory")
#define END_WINDOW(number) __asm__ volatile("slti x0, x0, -(%0)" ::"i"(number) : "memory")

static _Noreturn void fail(const char *why)
{
	printf("%s failed\n", why);
	exit(1);
}

__attribute__((unused)) static uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* A whole number from 1 to a million. */
__attribute__((unused)) static unsigned long number_of(const char *text)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);
	if (*end || !value || value > 1000000)
		fail("a number on the command line");
	return value;
}

__attribute__((unused)) static void wait_for(pid_t child)
{
	int status;
	if (child < 0 || waitpid(child, &status, 0) != child || status)
		fail("a child");
}

#endif
