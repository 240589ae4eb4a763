/* Does everything that is printed arrive, in order, and what is typed as well? Prints lines that a reader can compute (tests/src/random/text.rs
 * does), one hart after the other, each woken by the one before; takes alarms of a clock that it owns meanwhile; then waits for a line. */
#include <stdatomic.h>
#include <string.h>
#include "args.h"
#include "clock_device.h"
#include "console.h"
#include "csr.h"
#include "flash_device.h"
#include "irqchip.h"
#include "machine.h"
#include "sbi.h"
#include "start.h"
#include "timer.h"
#include "trap.h"
#include "device.h"

#define STACK_WORDS 512
#define NUMBERS 5
#define LINE (6 + NUMBERS * 11 + 1) /* "000042", five times " 0123456789", and its end */
#define MOST_HEARD 64
#define LISTEN_US 500 /* between two looks at the port, where no interrupt tells */
#define FIFO 16

#define UART_RBR 0
#define UART_THR 0
#define UART_IER 1
#define UART_FCR 2
#define UART_LSR 5
#define IER_RECEIVED 0x01
#define FCR_ENABLE   0x01
#define LSR_DATA     0x01
#define LSR_THRE     0x20

enum way { DBCN, UART }; /* out */
enum ears { BY_INTERRUPT, BY_POLLING, BY_DBCN };

struct worker {
    struct secondary start;
    uint64_t id;
    uint64_t stack[STACK_WORDS] __attribute__((aligned(16)));
};

static struct worker workers[MAX_HARTS];
static unsigned worker_count;
static uint64_t lines, gap_us, patience_ms;
static enum way way;

static atomic_ulong printed; /* lines so far: who sees its own turn here may touch `state` */
static uint64_t state;       /* of the text */
static atomic_uint asleep;   /* harts that have done their last line */

static struct irqchip irqchip;
static struct device uart;
static struct device clock;
static uint64_t alarms, alarm_us;
static volatile uint64_t rung, spurious; /* interrupts of the clock: for an alarm, and for none */
static char heard[MOST_HEARD + 1];
static volatile uint64_t heard_length, heard_lines;

static volatile uint8_t *port(unsigned offset) { return (volatile uint8_t *)(uintptr_t)(uart.base + offset); }

/* Park and Miller's generator: every language can compute it in a double. */
static uint64_t next_number(void) { return state = state * 16807 % 2147483647; }

static char *put_number(char *at, uint64_t value, int digits)
{
    for (int i = digits - 1; i >= 0; i--, value /= 10)
        at[i] = '0' + value % 10;
    return at + digits;
}

static void write_out(const char *text, size_t length)
{
    if (way == DBCN) {
        console_write(text, length);
        return;
    }
    while (length > 0) {
        size_t piece = length < FIFO ? length : FIFO;
        while (!(*port(UART_LSR) & LSR_THRE))
            pause_hint();
        for (size_t i = 0; i < piece; i++)
            *port(UART_THR) = text[i];
        text += piece;
        length -= piece;
    }
}

static void print_line(uint64_t number)
{
    char line[LINE], *at = put_number(line, number, 6);
    for (int i = 0; i < NUMBERS; i++) {
        *at++ = ' ';
        at = put_number(at, next_number(), 10);
    }
    *at = '\n';
    write_out(line, sizeof line);
}

static void software(void) { csr_clear(sip, 1ul << IRQ_SOFTWARE); }

static void hear(char c)
{
    if (heard_lines > 0)
        return;
    if (c == '\r' || c == '\n')
        heard_lines++;
    else if (heard_length < MOST_HEARD)
        heard[heard_length++] = c;
}

static void read_port(void)
{
    while (*port(UART_LSR) & LSR_DATA)
        hear(*port(UART_RBR));
}

static void external(void)
{
    uint32_t source = irqchip_claim(&irqchip);
    if (source == uart.source) {
        read_port();
    } else if (alarms > 0 && source == clock.source) {
        clock_acknowledge(&clock);
        if (clock_is_set(&clock))
            spurious++;
        else if (++rung < alarms)
            clock_set_alarm(&clock, alarm_us);
    }
    if (source != 0)
        irqchip_complete(&irqchip, source);
}

/* Prints every line whose turn is this hart's. Nothing is polled between: the hart before rings. */
static void print_turns(uint64_t index)
{
    csr_set(sie, 1ul << IRQ_SOFTWARE);
    for (uint64_t mine = index; mine < lines; mine += worker_count) {
        while (atomic_load(&printed) != mine) {
            wait_for_interrupt();
            interrupts_on();
            interrupts_off();
        }
        print_line(mine);
        interrupts_on();
        interrupts_off();
        if (gap_us > 0)
            sleep_us(gap_us);
        atomic_store(&printed, mine + 1);
        long error = worker_count > 1 ? sbi_send_ipi(1, workers[(index + 1) % worker_count].id) : SBI_SUCCESS;
        if (error != SBI_SUCCESS)
            fail("IPI: error %ld", error);
    }
    csr_clear(sie, 1ul << IRQ_SOFTWARE);
}

static void secondary_main(void *worker)
{
    print_turns((struct worker *)worker - workers);
    atomic_fetch_add(&asleep, 1);
    /* The interrupt that woke it may still be pending: a hart that stops takes no more. */
    sbi_hart_stop();
    for (;;)
        wait_for_interrupt();
}

static void start_others(void)
{
    workers[0].id = machine.boot_hart;
    worker_count = 1;
    for (unsigned i = 0; i < machine.hart_count; i++) {
        if (machine.harts[i].id != machine.boot_hart)
            workers[worker_count++].id = machine.harts[i].id;
    }
    for (unsigned i = 1; i < worker_count; i++) {
        struct worker *worker = &workers[i];
        worker->start = (struct secondary){ worker->stack + STACK_WORDS, secondary_main, worker };
        start_hart(worker->id, &worker->start);
    }
}

static void listen_dbcn(void)
{
    static char c;
    struct sbi_result result;
    while ((result = sbi_call(SBI_DBCN, SBI_DBCN_READ, 1, (uintptr_t)&c, 0)).error == SBI_SUCCESS && result.value == 1)
        hear(c);
}

/* Waits for a line. */
static void listen(enum ears ears)
{
    if (ears == BY_INTERRUPT) {
        wait_for_count(&heard_lines, 1, patience_ms);
        return;
    }
    for (uint64_t end = read_time() + us_to_ticks(patience_ms * 1000); heard_lines == 0 && read_time() < end; sleep_us(LISTEN_US)) {
        if (ears == BY_POLLING)
            read_port();
        else
            listen_dbcn();
    }
}

static void prepare_interrupts(bool hears, enum ears ears)
{
    on_interrupt(IRQ_SOFTWARE, software);
    on_interrupt(IRQ_EXTERNAL, external);
    if (hears && ears == BY_INTERRUPT) {
        *port(UART_FCR) = FCR_ENABLE;
        *port(UART_IER) = IER_RECEIVED;
        irqchip_enable(&irqchip, uart.source, LEVEL_HIGH);
    }
    if (alarms > 0) {
        clock = device_find(CLOCK_GOLDFISH);
        irqchip_enable(&irqchip, clock.source, LEVEL_HIGH);
    }
    csr_set(sie, 1ul << IRQ_EXTERNAL);
    if (alarms > 0)
        clock_set_alarm(&clock, alarm_us);
}

bool guest_main(void)
{
    static const char *const ways[] = { "dbcn", "uart", NULL }, *const all_ears[] = { "interrupt", "polling", "dbcn", NULL };
    state = arg_number("seed", 1, 1, 2147483646);
    lines = (arg_number("bytes", 100000, 1, 50000000) + LINE - 1) / LINE;
    way = arg_choice("way", ways);
    gap_us = arg_number("gap_us", 0, 0, 1000000);
    bool hears = arg_number("hear", 0, 0, 1);
    enum ears ears = arg_choice("ears", all_ears);
    patience_ms = arg_number("patience_ms", 60000, 1, 10000000);
    alarms = arg_number("alarms", 0, 0, 1000000);
    alarm_us = arg_number("alarm_us", 20000, 100, 10000000);
    bool flash = arg_number("flash", 0, 0, 1);
    args_finish();
    irqchip = irqchip_find(machine.boot_hart);
    uart = device_find(UART_16550);
    prepare_interrupts(hears, ears);
    start_others();
    print_turns(0);

    bool all_rung = alarms == 0 || wait_for_count(&rung, alarms, patience_ms);
    if (hears)
        listen(ears);
    bool has_flash = !flash || flash_answers();
    uint64_t begin = read_time();
    while (atomic_load(&asleep) < worker_count - 1 && read_time() - begin < us_to_ticks(patience_ms * 1000))
        sleep_us(100);
    bool ok = all_rung && spurious == 0 && rung == alarms && has_flash && (!hears || heard_lines > 0) && atomic_load(&printed) == lines;
    print("@result {\"job\":\"talk\",\"harts\":%u,\"lines\":%lu,\"heard\":\"%s\",\"alarms\":%lu,\"spurious\":%lu,\"flash\":%s,\"ok\":%s}\n", worker_count,
          atomic_load(&printed), heard, rung, spurious, flash && has_flash ? "true" : "false", ok ? "true" : "false");
    return ok;
}
