/* Writes to the console as fast as it can, on all harts: does that keep anybody else from being heard, or on time? */
#include <stdatomic.h>
#include "args.h"
#include "console.h"
#include "machine.h"
#include "sbi.h"
#include "start.h"
#include "timer.h"
#include "trap.h"
#include "device.h"

#define STACK_WORDS 512
#define UART_THR 0
#define UART_LSR 5
#define UART_LSR_THRE 0x20

struct worker {
    struct secondary start;
    uint64_t stack[STACK_WORDS] __attribute__((aligned(16)));
};

static struct worker workers[MAX_HARTS];
static atomic_uint finished;
static volatile uint8_t *uart;
static uint64_t bytes, line; /* per hart; of a line with its end, 0: it has none */
enum way { DBCN, UART, STORE };
static enum way way;

static void store(uint8_t byte)
{
    /* A driver looks before it writes. */
    while (way == UART && !(uart[UART_LSR] & UART_LSR_THRE))
        ;
    uart[UART_THR] = byte;
}

static void flood(void)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz";
    for (uint64_t i = 0; bytes == 0 || i < bytes;) {
        uint64_t length = 16 - i % 16;
        char piece[16];
        if (bytes != 0 && length > bytes - i)
            length = bytes - i;
        for (uint64_t j = 0; j < length; j++)
            piece[j] = line != 0 && (i + j + 1) % line == 0 ? '\n' : letters[(i + j) % 26];
        if (way == DBCN)
            console_write(piece, length);
        for (uint64_t j = 0; way != DBCN && j < length; j++)
            store(piece[j]);
        i += length;
    }
    atomic_fetch_add(&finished, 1);
}

static void secondary(void *unused)
{
    (void)unused;
    flood();
    sbi_hart_stop();
}

bool guest_main(void)
{
    static const char *const ways[] = { "dbcn", "uart", "store", NULL };
    bytes = arg_number("bytes", 0, 0, UINT64_MAX);
    line = arg_number("line", 0, 0, UINT64_MAX);
    uint64_t ms = arg_number("ms", 0, 0, 1000000);
    way = arg_choice("way", ways);
    args_finish();
    uart = (volatile uint8_t *)(uintptr_t)device_find(UART_16550).base;
    sleep_us(ms * 1000);
    for (unsigned i = 0; i < machine.hart_count; i++) {
        struct worker *worker = &workers[i];
        if (machine.harts[i].id == machine.boot_hart)
            continue;
        worker->start = (struct secondary){ worker->stack + STACK_WORDS, secondary, worker };
        start_hart(machine.harts[i].id, &worker->start);
    }
    flood();
    while (atomic_load(&finished) < machine.hart_count)
        sleep_us(100);
    print("\n@result {\"job\":\"flood\",\"bytes\":%lu,\"ok\":true}\n", bytes * machine.hart_count);
    return true;
}
