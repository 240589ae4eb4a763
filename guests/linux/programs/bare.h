/* What Linux programs without a C library have in common: the cross compiler of this project has none for Linux. System calls are those of
 * asm-generic/unistd.h. */
#ifndef BARE_H
#define BARE_H

#include <stddef.h>
#include <stdint.h>

enum { SYS_write = 64 };

static long syscall6(long number, long a, long b, long c, long d, long e, long f)
{
	register long a0 __asm__("a0") = a, a1 __asm__("a1") = b, a2 __asm__("a2") = c;
	register long a3 __asm__("a3") = d, a4 __asm__("a4") = e, a5 __asm__("a5") = f, a7 __asm__("a7") = number;
	__asm__ volatile("ecall" : "+r"(a0) : "r"(a1), "r"(a2), "r"(a3), "r"(a4), "r"(a5), "r"(a7) : "memory");
	return a0;
}

static void print(const char *text)
{
	size_t length = 0;
	while (text[length])
		length++;
	syscall6(SYS_write, 1, (long)text, (long)length, 0, 0, 0);
}

__attribute__((unused)) static void print_number(uint64_t value)
{
	char digits[21] = { 0 };
	size_t at = sizeof digits - 1;
	do {
		digits[--at] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	print(&digits[at]);
}

/* For those that define PROGRAM before this is included: what a message begins with. */
#ifdef PROGRAM

enum { SYS_exit_group = 94, SYS_clock_gettime = 113, CLOCK_MONOTONIC = 1 };

struct timespec {
	long s, ns;
};

static _Noreturn void fail(const char *why, uint64_t value)
{
	print(PROGRAM ": ");
	print(why);
	print(" ");
	print_number(value);
	print("\n");
	for (;;)
		syscall6(SYS_exit_group, 1, 0, 0, 0, 0, 0);
}

__attribute__((unused)) static uint64_t now_ns(void)
{
	struct timespec now;
	syscall6(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&now, 0, 0, 0, 0);
	return (uint64_t)now.s * 1000000000 + (uint64_t)now.ns;
}

/* A decimal number; 0 if there is anything else in the text. */
static inline uint64_t number_of(const char *text)
{
	uint64_t value = 0;
	for (; *text >= '0' && *text <= '9'; text++)
		value = value * 10 + (uint64_t)(*text - '0');
	return *text ? 0 : value;
}

#endif

#endif
