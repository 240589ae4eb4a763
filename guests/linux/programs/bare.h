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

static void print_number(uint64_t value)
{
	char digits[21] = { 0 };
	size_t at = sizeof digits - 1;
	do {
		digits[--at] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	print(&digits[at]);
}

#endif
