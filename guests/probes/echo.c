/* Is what is typed heard? Waits for a line on the 16550, or from legacy SBI calls, looking at it again and again or sleeping in between, and gives it back. */
#include "args.h"
#include "console.h"
#include "sbi.h"
#include "start.h"
#include "timer.h"
#include "device.h"

#define UART_RBR 0
#define UART_FCR 2
#define UART_LSR 5
#define FCR_ENABLE 1
#define LSR_DATA_READY 1

static volatile uint8_t *uart;
static bool legacy;

/* The next character, or -1. */
static long next(void)
{
    if (legacy)
        return sbi_call(SBI_LEGACY_GETCHAR, 0, 0, 0, 0).error;
    return uart[UART_LSR] & LSR_DATA_READY ? uart[UART_RBR] : -1;
}

bool guest_main(void)
{
    static char line[512];
    unsigned length = 0;
    uint64_t pause_us = arg_number("pause_us", 0, 0, 1000000);
    legacy = arg_number("legacy", 0, 0, 1);
    bool same_line = arg_number("same_line", 0, 0, 1);
    static const char question[] = "type a line: ";
    args_finish();
    uart = (volatile uint8_t *)(uintptr_t)device_find(UART_16550).base;
    uart[UART_FCR] = FCR_ENABLE;
    if (same_line)
        console_write(question, sizeof question - 1);
    else
        print("type a line\n");
    while (length < sizeof line - 1) {
        long c = next();
        if (c >= 0) {
            if (c == '\r' || c == '\n')
                break;
            line[length++] = (char)c;
        } else if (pause_us != 0) {
            sleep_us(pause_us);
        }
    }
    print("heard: %s\n", line);
    print("@result {\"job\":\"echo\",\"bytes\":%u,\"ok\":true}\n", length);
    return true;
}
