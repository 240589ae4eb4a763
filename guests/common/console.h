/* The console: SBI's debug console, or a 16550 UART at 0x10000000 where the SBI has none. */
#pragma once
#include <stdarg.h>
#include <stddef.h>

/* Chooses the way out. Before it nothing can be printed. */
void console_init(void);

/* Writes at once, whatever `print` still holds back. Waits until all is written. */
void console_write(const char *text, size_t length);

/* Like printf, with only %s, %c, %d, %u, %x (with l for 64 bits) and %%. Text is held back until its line is complete, so that a line leaves
 * as one piece (or as several when longer than 1 KiB). Not reentrant: one hart and one task at a time. */
__attribute__((format(printf, 1, 2))) void print(const char *format, ...);
void print_arguments(const char *format, va_list arguments);
