/* The console, by DBCN and by the UART's registers: mostly without newlines. */
#include "kinds.h"
#include "memory.h"
#include "random.h"
#include "sbi.h"

unsigned try_output(struct vcpu *v)
{
    static const char text[] = "the quick brown fox jumps over the lazy dog\n\n\n\r\t\x7f\x80\xff\x1b[2J| @result {\"ok\":false}";
    volatile uint8_t *uart = (volatile uint8_t *)UART_BASE;
    uint64_t r = any(v), from = (r >> 8) % (sizeof text - 1), size = (r >> 16) % (sizeof text - from);
    if (r & 1)
        sbi_call(SBI_DBCN, SBI_DBCN_WRITE, size, (uintptr_t)text + from, 0);
    else if (r & 2)
        sbi_call(SBI_DBCN, SBI_DBCN_WRITE_BYTE, text[from], 0, 0);
    else
        uart[0] = text[from];
    return 1;
}
