/* Is an interrupt that was held back, as a more urgent guest had the hart, taken once? All harts send interrupts of all kinds that there are to each other and to
 * themselves, above all to those that don't run: interrupts between harts, messages to their interrupt files (IMSIC), the serial port's, alarms of the board's clock if
 * the guest owns that, timers; and the guests of `role=above`, which take the harts, ring the bells of their channels. Each source waits for its last one to be taken
 * (handshake.h), until `n` were held back, or taken with `any`. */
#include "args.h"
#include "channel.h"
#include "clock_device.h"
#include "console.h"
#include "csr.h"
#include "handshake.h"
#include "imsic.h"
#include "machine.h"
#include "sbi.h"
#include "start.h"
#include "timer.h"
#include "trap.h"
#include "xorshift.h"

#define STACK_WORDS 256
#define IDENTITIES  64  /* of sources and messages: one more than the highest */
#define MOST_VCPUS  16
#define CHANNELS    4

/* A hart that nothing was seen of for so long doesn't run, and what it then takes so much later was held back: longer than any trap that it is in for its own sake, and
 * than its sleep needs to end. Of an interrupt that took longer to send nobody knows when it was sent, as the sender may have been held back itself. */
#define SILENCE_US 5
#define HELD_US    15
#define PROMPT_US  10

/* How long it goes on when all have been taken, to see whether one comes twice. */
#define SETTLE_MS 5

/* Registers of the serial port. */
#define UART_IER 1
#define UART_IIR 2
#define UART_TRANSMITTER_EMPTY 2 /* as a bit of IER, and as what IIR says */

enum kind { IPI, TIMER, MESSAGE, BELL, CLOCK, SERIAL, KINDS };
static const char *const kind_names[KINDS] = { "ipis", "timers", "messages", "bells", "alarms", "serial" };

struct source {
    enum kind kind;
    uint32_t id;              /* at the interrupt controller */
    unsigned from, to;        /* workers; a bell's `from` only watches over it */
    struct handshake own;
    struct handshake *shared; /* `own`, or the channel's */
    /* Written by who is interrupted, before it tells that it has taken one: was it held back, and for how many ticks had it run
     * on since that was sent, or since it has run again, without another one to take? */
    volatile bool was_held;
    volatile int64_t ran_on;
    /* Written by who sends: was it sent when it says, or was the sender held back in between; and up to which one has it looked at the verdicts? */
    bool was_prompt;
    uint64_t judged;
};

struct worker {
    struct secondary start;
    struct irqchip irqchip;
    volatile uint32_t *file; /* where messages for it are stored; NULL: it hasn't one */
    uint64_t id, random;
    volatile uint64_t seen;          /* when it last ran, as far as it has looked */
    uint64_t free;                   /* when it last had no interrupt to take */
    uint64_t gap_begin, gap_end;     /* the last time that it didn't */
    bool may_look_in_vain;           /* an APLIC's source of the board is taken to ask until its hart looks once more */
    uint64_t twice, spurious;
    /* Of what it has sent: how many were taken, and held back; and the longest that the other hart ran on after one had been sent, in ticks. */
    volatile uint64_t taken[KINDS], held[KINDS];
    int64_t latest[KINDS];
    struct source *software, *timer, *external[IDENTITIES];
    struct source *sends[2 * IDENTITIES];
    unsigned send_count, next;
    uint64_t stack[STACK_WORDS] __attribute__((aligned(16)));
};

static struct worker workers[MOST_VCPUS];
static unsigned worker_count, ready;
static struct source sources[MOST_VCPUS * (IDENTITIES + 2) + CHANNELS + 2];
static unsigned source_count;
static struct channel channels[CHANNELS];
static struct device the_clock;
static struct device uart;
static bool has_clock;
static enum trigger serial_trigger;
static uint64_t patience, silence, held_for, prompt;
static volatile bool stopping;

static struct worker *self(void)
{
    struct worker *worker;
    __asm__ volatile("mv %0, tp" : "=r"(worker));
    return worker;
}

static volatile uint8_t *uart_register(unsigned offset) { return (volatile uint8_t *)(uintptr_t)(uart.base + offset); }

/* So many were taken, or of these held back. */
static uint64_t so_far(bool any)
{
    uint64_t count = 0;
    for (unsigned i = 0; i < worker_count; i++) {
        for (unsigned kind = 0; kind < KINDS; kind++)
            count += any ? workers[i].taken[kind] : workers[i].held[kind];
    }
    return count;
}

static bool report(const char *why, uint64_t lost)
{
    uint64_t sent = 0, taken = 0, twice = 0, spurious = 0;
    for (unsigned i = 0; i < source_count; i++) {
        sent += sources[i].shared->sent;
        taken += sources[i].shared->taken;
    }
    for (unsigned i = 0; i < worker_count; i++) {
        twice += workers[i].twice;
        spurious += workers[i].spurious;
    }
    bool ok = !why && sent == taken && twice == 0 && spurious == 0;
    print("@result {\"job\":\"held\",\"sent\":%lu,\"taken\":%lu,\"held\":%lu,\"lost\":%lu,\"twice\":%lu,\"spurious\":%lu", sent, taken, so_far(false),
          lost, twice, spurious);
    for (unsigned kind = 0; kind < KINDS; kind++) {
        uint64_t all = 0, held = 0, latest = 0;
        for (unsigned i = 0; i < worker_count; i++) {
            all += workers[i].taken[kind];
            held += workers[i].held[kind];
            latest = (uint64_t)workers[i].latest[kind] > latest ? (uint64_t)workers[i].latest[kind] : latest;
        }
        print(",\"%s\":{\"taken\":%lu,\"held\":%lu,\"latest_ns\":%lu}", kind_names[kind], all, held, ticks_to_ns(latest));
    }
    print(",\"ok\":%s}\n", ok ? "true" : "false");
    return ok;
}

/* Only the first hart that misses something speaks. */
static __attribute__((noreturn)) void lost(const struct source *source)
{
    static bool speaks;
    interrupts_off();
    while (__atomic_test_and_set(&speaks, __ATOMIC_ACQ_REL))
        wait_for_interrupt();
    report("lost", 1);
    fail("number %lu of the %s, source %u, from hart %lu to %lu was lost: not taken %lu us after it was sent", source->shared->sent,
         kind_names[source->kind], source->id, workers[source->from].id, workers[source->to].id,
         ticks_to_ns(read_time() - source->shared->sent_at) / 1000);
}

/* This hart runs. With its interrupts off. */
static void see(struct worker *me)
{
    uint64_t now = read_time();
    if (now - me->seen > held_for) {
        me->gap_begin = me->seen;
        me->gap_end = now;
    }
    me->seen = now;
}

static void take(struct worker *me, struct source *source)
{
    uint64_t sent_at = source->shared->sent_at;
    if (!handshake_is_due(source->shared)) {
        me->twice++;
        return;
    }
    source->was_held = sent_at >= me->gap_begin + silence && sent_at + held_for <= me->gap_end;
    /* What it didn't run is no delay of the interrupt. */
    source->ran_on = (int64_t)(me->free - (sent_at > me->gap_end ? sent_at : me->gap_end));
    handshake_take(source->shared);
}

/* The last one that this hart has sent has been taken. One that was announced some time before it was sent says nothing. */
static void judge(struct worker *me, struct source *source)
{
    if (source->judged == source->shared->sent)
        return;
    source->judged = source->shared->sent;
    me->taken[source->kind]++;
    if (!source->was_prompt)
        return;
    me->held[source->kind] += source->was_held;
    if (source->ran_on > me->latest[source->kind])
        me->latest[source->kind] = source->ran_on;
}

static void software(void)
{
    struct worker *me = self();
    csr_clear(sip, 1ul << IRQ_SOFTWARE);
    see(me);
    take(me, me->software);
}

static void timer(void)
{
    struct worker *me = self();
    timer_set(NEVER);
    see(me);
    me->spurious += (int64_t)(me->seen - me->timer->shared->sent_at) < 0;
    take(me, me->timer);
}

/* Does the device still ask? It doesn't any more. */
static bool serve(struct source *source)
{
    switch (source->kind) {
    case BELL:
        return channel_heard(&channels[source->id - channels[0].source]);
    case CLOCK:
        clock_acknowledge(&the_clock);
        self()->may_look_in_vain = self()->irqchip.driver == &aplic_driver;
        return true;
    case SERIAL: {
        bool asks = (*uart_register(UART_IIR) & 0xf) == UART_TRANSMITTER_EMPTY;
        *uart_register(UART_IER) = 0;
        return asks;
    }
    default:
        return true;
    }
}

static void external(void)
{
    struct worker *me = self();
    see(me);
    uint32_t id = irqchip_claim(&me->irqchip);
    struct source *source = id < IDENTITIES ? me->external[id] : NULL;
    if (!source) {
        me->spurious += !me->may_look_in_vain;
        me->may_look_in_vain = false;
        return;
    }
    me->spurious += !serve(source);
    /* Before the next one can be sent: a wire that rises before its driver asks for it may be told of for both reasons, at two times. */
    if (source->kind != MESSAGE)
        irqchip_complete(&me->irqchip, id);
    take(me, source);
}

static void send(struct worker *me, struct source *source)
{
    uint64_t now = read_time(), us = 0;
    if (source->kind == TIMER || source->kind == CLOCK)
        us = 10 + xorshift(&me->random) % (source->kind == TIMER ? 200 : 20);
    handshake_send(source->shared, now + us_to_ticks(us));
    source->was_prompt = false;
    switch (source->kind) {
    case IPI:
        sbi_send_ipi(1, workers[source->to].id);
        break;
    case TIMER:
        timer_set(source->shared->sent_at);
        break;
    case MESSAGE:
        *workers[source->to].file = source->id;
        break;
    case CLOCK:
        clock_set_alarm(&the_clock, us);
        break;
    case SERIAL:
        *uart_register(UART_IER) = UART_TRANSMITTER_EMPTY;
        break;
    default:
        break;
    }
    source->was_prompt = read_time() - now < prompt || source->kind == TIMER;
}

/* One of the sources in turn. Of the interrupts for harts that seem to run few are sent: most would not be held back. */
static void turn(struct worker *me)
{
    uint64_t free = read_time();
    interrupts_off();
    me->free = free;
    see(me);
    interrupts_on();
    struct source *source = me->sends[me->next++ % me->send_count];
    uint64_t now = read_time();
    if (handshake_is_due(source->shared)) {
        if ((int64_t)(now - source->shared->sent_at) > (int64_t)patience)
            lost(source);
        return;
    }
    judge(me, source);
    bool runs = source->to != source->from && now - workers[source->to].seen < held_for;
    if (!stopping && source->kind != BELL && !(runs && xorshift(&me->random) % 16 != 0))
        send(me, source);
    /* Its timer wakes it, if nothing else does. */
    if (!stopping && handshake_is_due(me->timer->shared) && xorshift(&me->random) % 256 == 0)
        wait_for_interrupt();
}

/* With the hart's own registers. */
static void listen(struct worker *me)
{
    for (uint32_t id = 0; id < IDENTITIES; id++) {
        struct source *source = me->external[id];
        if (!source)
            continue;
        if (source->kind == MESSAGE)
            imsic_enable(id);
        else if (source->kind == BELL)
            channel_listen(&channels[id - channels[0].source], &me->irqchip);
        else
            irqchip_enable(&me->irqchip, id, source->kind == SERIAL ? serial_trigger : LEVEL_HIGH);
    }
    me->seen = read_time();
    csr_write(sie, 1ul << IRQ_SOFTWARE | 1ul << IRQ_TIMER | 1ul << IRQ_EXTERNAL);
    __atomic_add_fetch(&ready, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(&ready, __ATOMIC_ACQUIRE) < worker_count)
        pause_hint();
    for (unsigned i = 0; i < source_count; i++) {
        if (sources[i].kind == BELL && &workers[sources[i].to] == me)
            __atomic_store_n(&sources[i].shared->open, 1, __ATOMIC_RELEASE);
    }
}

static __attribute__((noreturn)) void work(void *argument)
{
    struct worker *me = argument;
    listen(me);
    for (;;)
        turn(me);
}

static struct source *add(enum kind kind, uint32_t id, unsigned from, unsigned to)
{
    struct source *source = &sources[source_count++];
    *source = (struct source){ .kind = kind, .id = id, .from = from % worker_count, .to = to % worker_count };
    source->shared = &source->own;
    struct worker *sender = &workers[source->from], *hearer = &workers[source->to];
    sender->sends[sender->send_count++] = source;
    if (kind == IPI)
        hearer->software = source;
    else if (kind == TIMER)
        hearer->timer = source;
    else if (id < IDENTITIES && !hearer->external[id])
        hearer->external[id] = source;
    else
        fail("source %u is there twice, or is none of those below %u", id, IDENTITIES);
    return source;
}

/* Who rings is more urgent than all harts here, and always prompt. */
static void add_bell(unsigned channel)
{
    struct source *source = add(BELL, channels[channel].source, channel, channel);
    source->shared = (struct handshake *)(uintptr_t)channels[channel].memory;
    source->was_prompt = true;
}

static void add_sources(uint64_t messages)
{
    uart = device_find(UART_16550);
    *uart_register(UART_IER) = 0;
    add(SERIAL, uart.source, 1, 0);
    has_clock = device_is_there(CLOCK_GOLDFISH);
    if (has_clock) {
        the_clock = device_find(CLOCK_GOLDFISH);
        add(CLOCK, the_clock.source, 2, 1);
    }
    for (unsigned i = 0; i < CHANNELS && channel_find(&channels[i], i); i++)
        add_bell(i);
    for (unsigned to = 0; to < worker_count; to++) {
        struct worker *worker = &workers[to];
        add(TIMER, 0, to, to);
        add(IPI, 0, to + worker_count - 1, to);
        worker->file = imsic_file(machine.harts[to].interrupt_controller);
        uint64_t left = worker->file ? messages : 0;
        for (uint32_t id = 1; id < IDENTITIES && left != 0; id++) {
            if (worker->external[id])
                continue;
            /* Who of the others sends it. */
            add(MESSAGE, id, worker_count > 1 ? to + 1 + id % (worker_count - 1) : to, to);
            left--;
        }
    }
}

/* Is everything taken that was sent? */
static bool all_taken(void)
{
    for (unsigned i = 0; i < source_count; i++) {
        if (handshake_is_due(sources[i].shared))
            return false;
    }
    return true;
}

static bool below(uint64_t n, bool any, uint64_t ms, uint64_t messages)
{
    worker_count = machine.hart_count;
    if (worker_count > MOST_VCPUS)
        fail("this program is for up to %u harts", MOST_VCPUS);
    for (unsigned i = 0; i < worker_count; i++) {
        workers[i].id = machine.harts[i].id;
        workers[i].random = 88172645463325252ul + i;
        workers[i].irqchip = irqchip_find(workers[i].id);
    }
    if (workers[0].id != machine.boot_hart)
        fail("the boot hart %lu isn't the first", machine.boot_hart);
    add_sources(messages);
    on_interrupt(IRQ_SOFTWARE, software);
    on_interrupt(IRQ_TIMER, timer);
    on_interrupt(IRQ_EXTERNAL, external);
    for (unsigned i = 1; i < worker_count; i++) {
        workers[i].start = (struct secondary){ workers[i].stack + STACK_WORDS, work, &workers[i] };
        start_hart(workers[i].id, &workers[i].start);
    }
    struct worker *me = &workers[0];
    __asm__ volatile("mv tp, %0" :: "r"(me));
    listen(me);
    uint64_t end = read_time() + us_to_ticks(ms * 1000);
    while (so_far(any) < n && read_time() < end) {
        for (int i = 0; i < 256; i++)
            turn(me);
    }
    bool enough = so_far(any) >= n;
    stopping = true;
    for (unsigned i = 0; i < source_count; i++)
        __atomic_store_n(&sources[i].shared->open, 0, __ATOMIC_RELEASE);
    for (uint64_t settled = read_time(); read_time() - settled < us_to_ticks(SETTLE_MS * 1000);) {
        turn(me);
        if (!all_taken())
            settled = read_time();
    }
    interrupts_off();
    return report(enough ? NULL : "too few", 0) && enough;
}

/* Takes its hart again and again, and meanwhile rings. */
static __attribute__((noreturn)) void above(uint64_t us, uint64_t pause_us, uint64_t seed)
{
    struct channel channel;
    bool has_channel = channel_find(&channel, 0);
    struct handshake *handshake = has_channel ? (struct handshake *)(uintptr_t)channel.memory : NULL;
    uint64_t random = 88172645463325252ul * (2 * seed + 1);
    for (;;) {
        uint64_t begin = read_time(), end = begin + us_to_ticks(2 * HELD_US + xorshift(&random) % us);
        while (read_time() < begin + us_to_ticks(HELD_US))
            ;
        if (has_channel && __atomic_load_n(&handshake->open, __ATOMIC_ACQUIRE) && !handshake_is_due(handshake)) {
            handshake_send(handshake, read_time());
            channel_ring(&channel);
        }
        while (read_time() < end)
            ;
        sleep_us(10 + xorshift(&random) % pause_us);
    }
}

bool guest_main(void)
{
    static const char *const roles[] = { "below", "above", NULL };
    unsigned role = arg_choice("role", roles);
    uint64_t n = arg_number("n", 1000, 1, 1000000000), ms = arg_number("ms", 60000, 1, 100000000);
    uint64_t messages = arg_number("messages", IDENTITIES, 0, IDENTITIES), edges = arg_number("edges", 0, 0, 1);
    bool any = arg_number("any", 0, 0, 1);
    uint64_t us = arg_number("us", 60, 1, 1000000), pause_us = arg_number("pause_us", 60, 1, 1000000);
    uint64_t seed = arg_number("seed", 1, 1, UINT32_MAX), patience_ms = arg_number("patience_ms", 1000, 1, 1000000);
    args_finish();
    serial_trigger = edges ? EDGE_RISING : LEVEL_HIGH;
    patience = us_to_ticks(patience_ms * 1000);
    silence = us_to_ticks(SILENCE_US);
    held_for = us_to_ticks(HELD_US);
    prompt = us_to_ticks(PROMPT_US);
    if (role == 1)
        above(us, pause_us, seed);
    return below(n, any, ms, messages);
}
