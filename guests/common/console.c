#include "console.h"
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "sbi.h"

#define UART_BASE 0x10000000ul
#define UART_THR  0 /* transmit holding register */
#define UART_LSR  5 /* line status register */
#define UART_LSR_THRE 0x20

static bool has_debug_console;
static char line[1024];
static size_t line_length;

void console_init(void) { has_debug_console = sbi_probe(SBI_DBCN); }

static void uart_write(const char *text, size_t length)
{
    volatile uint8_t *uart = (volatile uint8_t *)UART_BASE;
    for (size_t i = 0; i < length; i++) {
        while (!(uart[UART_LSR] & UART_LSR_THRE))
            ;
        uart[UART_THR] = text[i];
    }
}

void console_write(const char *text, size_t length)
{
    if (!has_debug_console) {
        uart_write(text, length);
        return;
    }
    while (length > 0) {
        struct sbi_result result = sbi_call(SBI_DBCN, SBI_DBCN_WRITE, length, (uintptr_t)text, 0);
        if (result.error != SBI_SUCCESS)
            return; /* there is no other place to complain */
        text += result.value; /* the SBI may take less than it was given */
        length -= result.value;
    }
}

static void put(char c)
{
    line[line_length++] = c;
    if (c == '\n' || line_length == sizeof line) {
        console_write(line, line_length);
        line_length = 0;
    }
}

static void put_number(uint64_t value, unsigned base)
{
    char digits[20];
    int n = 0;
    do {
        digits[n++] = "0123456789abcdef"[value % base];
        value /= base;
    } while (value != 0);
    while (n > 0)
        put(digits[--n]);
}

void print_arguments(const char *format, va_list arguments)
{
    for (; *format; format++) {
        if (*format != '%') {
            put(*format);
            continue;
        }
        bool is_long = *++format == 'l';
        if (is_long)
            format++;
        switch (*format) {
        case 's':
            for (const char *s = va_arg(arguments, const char *); *s; s++)
                put(*s);
            break;
        case 'c':
            put((char)va_arg(arguments, int));
            break;
        case 'd': {
            int64_t value = is_long ? va_arg(arguments, int64_t) : va_arg(arguments, int);
            if (value < 0)
                put('-');
            put_number(value < 0 ? -(uint64_t)value : (uint64_t)value, 10);
            break;
        }
        case 'u':
        case 'x':
            put_number(is_long ? va_arg(arguments, uint64_t) : va_arg(arguments, unsigned), *format == 'u' ? 10 : 16);
            break;
        case '\0': /* a lone % at the end */
            return;
        default:
            put(*format);
        }
    }
}

void print(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_arguments(format, arguments);
    va_end(arguments);
}
