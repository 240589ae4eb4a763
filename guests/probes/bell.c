/* Channels to other guests. `role`: `ping` sends numbers through its first channel, `burst` at a time, and waits until all have come back; the first `uncounted` rounds aren't among its times, in which a pause of the other end would be (channel_pause.h: `echo` makes none). `echo` sends back what comes,
 * and is over when it has had `n` (both look at the memory with `polls`, and don't ring); `flood` sends one number, rings for `us` as fast as it can, and does what else there is to do with the registers; `peek` loads from where a channel's
 * memory is in other guests, and `fetch` executes what is in its own, which both must end in an access fault. With `dies` it reboots after so many numbers in its first life.
 * `listen` hears the bells of all its channels for `us`, and tells how many, of the one with the fewest, and how near two were. With `deaf_us` its handler masks the bell, and unmasks it so
 * long after it has looked. With `alarm_us` it owns the board's clock, asks for an alarm that long after each, and tells how late the latest was. */
#include "args.h"
#include "channel.h"
#include "channel_queue.h"
#include "clock_device.h"
#include "console.h"
#include "csr.h"
#include "histogram.h"
#include "machine.h"
#include "samples.h"
#include "sbi.h"
#include "start.h"
#include "timer.h"
#include "trap.h"
#include "xorshift.h"

#define ANSWER_MS 5000

/* Where a guest's first channel has its memory, and its registers. */
#define MEMORY    0x50000000ul
#define REGISTERS 0x40000000ul
#define CONFIG    0x30000000ul

static struct channel channel;
static struct irqchip irqchip;
static volatile uint64_t bells;
static volatile uint64_t faults;
/* `ping` and `echo` look at the memory instead of ringing. */
static uint64_t polls;
static struct histogram rounds;
static struct samples samples;

static void external(void)
{
    uint32_t source = irqchip_claim(&irqchip);
    bells += source == channel.source && channel_heard(&channel);
    irqchip_complete(&irqchip, source);
}

/* The access faults of `peek` and `fetch`: goes on behind the instruction, or where the call came from. */
void handle_exception(struct trap_frame *frame, uint64_t scause)
{
    enum { FETCH_FAULT = 1, LOAD_FAULT = 5, STORE_FAULT = 7 };
    if (scause == FETCH_FAULT)
        frame->sepc = frame->x[1];
    else if (scause == LOAD_FAULT || scause == STORE_FAULT)
        frame->sepc += 4;
    else
        report_trap(frame, scause);
    faults++;
}

/* What `listen` hears. */
#define MOST_CHANNELS 4
static struct {
    struct channel channels[MOST_CHANNELS];
    uint64_t heard[MOST_CHANNELS];
    unsigned count;
    uint64_t deaf;      /* ticks */
    uint64_t last, gap; /* when a bell interrupted last, and how near two were, in ticks */
    struct device clock;
    uint64_t alarm_us, set, alarms, latest; /* when the alarm was set; how late one was at most, in ticks */
} ears = { .gap = UINT64_MAX };

static void listen_to_bell(unsigned index)
{
    enum { MASK };
    const struct channel *from = &ears.channels[index];
    uint64_t now = read_time();
    if (ears.deaf)
        from->registers[MASK] = 0;
    if (channel_heard(from)) {
        ears.gap = bells && now - ears.last < ears.gap ? now - ears.last : ears.gap;
        ears.last = now;
        ears.heard[index]++;
        bells++;
    }
    if (ears.deaf) {
        while (read_time() - now < ears.deaf)
            ;
        from->registers[MASK] = 1;
    }
}

static void set_alarm(void)
{
    ears.set = read_time();
    clock_set_alarm(&ears.clock, ears.alarm_us);
}

static void hear_alarm(void)
{
    uint64_t late = read_time() - ears.set - us_to_ticks(ears.alarm_us);
    ears.latest = late > ears.latest ? late : ears.latest;
    ears.alarms++;
    clock_acknowledge(&ears.clock);
    set_alarm();
}

static void listening(void)
{
    uint32_t source = irqchip_claim(&irqchip);
    for (unsigned i = 0; i < ears.count; i++) {
        if (source == ears.channels[i].source)
            listen_to_bell(i);
    }
    if (ears.alarm_us && source == ears.clock.source)
        hear_alarm();
    irqchip_complete(&irqchip, source);
}

static void find(void)
{
    if (!channel_find(&channel, 0))
        fail("this guest has no channel");
    irqchip = irqchip_find(machine.boot_hart);
    on_interrupt(IRQ_EXTERNAL, external);
    csr_write(sie, 1ul << IRQ_EXTERNAL);
    channel_listen(&channel, &irqchip);
}

static bool ping(uint64_t n, uint64_t burst)
{
    struct channel_queue *out = channel_queue_of(channel.memory, channel.position);
    struct channel_queue *in = channel_queue_of(channel.memory, channel.position ^ 1);
    uint64_t sent = 0, back = 0, wrong = 0, item;
    bool answered = true;
    while (back < n && answered) {
        uint64_t begin = read_time();
        for (uint64_t i = 0; i < burst && sent < n && channel_put(out, sent + 1); i++)
            sent++;
        if (!polls)
            channel_ring(&channel);
        while (back < sent && answered) {
            uint64_t seen = bells;
            while (channel_take(in, &item))
                wrong += item != ++back;
            if (polls)
                answered = read_time() - begin < us_to_ticks(ANSWER_MS * 1000);
            else
                answered = back == sent || wait_for_count(&bells, seen + 1, ANSWER_MS);
        }
        if (sample_counts(&samples))
            histogram_add(&rounds, read_time() - begin);
    }
    bool ok = back == n && wrong == 0;
    print("@result {\"job\":\"ping\",\"sent\":%lu,\"back\":%lu,\"wrong\":%lu,\"lost\":%lu,\"bells\":%lu,\"round_ns\":", sent, back, wrong, sent - back, bells);
    histogram_print_summary(&rounds);
    print(",\"ok\":%s}\n", ok ? "true" : "false");
    histogram_print_buckets(&rounds, "ping", "round_ns");
    return ok;
}

static bool echo(uint64_t n, uint64_t dies)
{
    struct channel_queue *out = channel_queue_of(channel.memory, channel.position);
    struct channel_queue *in = channel_queue_of(channel.memory, channel.position ^ 1);
    uint64_t item, first = 0, last = 0, wrong = 0;
    do {
        /* The other one may have rung before this one listened. */
        uint64_t seen = bells, answers = 0;
        while (channel_take(in, &item)) {
            first = first ? first : item;
            wrong += last && item != last + 1;
            last = item;
            while (!channel_put(out, item))
                pause_hint();
            answers++;
            if (dies && first == 1 && item == dies) {
                channel_ring(&channel);
                sbi_call(SBI_SRST, SBI_SRST_RESET, SBI_RESET_COLD_REBOOT, SBI_REASON_NONE, 0);
            }
        }
        if (polls)
            continue;
        if (answers)
            channel_ring(&channel);
        else if (bells == seen)
            wait_for_count(&bells, seen + 1, ANSWER_MS);
    } while (last != n);
    print("@result {\"job\":\"echo\",\"first\":%lu,\"last\":%lu,\"wrong\":%lu,\"bells\":%lu,\"ok\":%s}\n", first, last, wrong, bells,
          wrong == 0 ? "true" : "false");
    return wrong == 0;
}

/* Sends one number, and then rings, and now and then writes anything to any register, its own or of the bus, or reads one. */
static bool flood(uint64_t us)
{
    uint64_t end = read_time() + us_to_ticks(us), random = 88172645463325252ul, rung = 0;
    channel_put(channel_queue_of(channel.memory, channel.position), 1);
    while (read_time() < end) {
        for (int i = 0; i < 64; i++, rung++)
            channel_ring(&channel);
        xorshift(&random);
        uint64_t base = random & 64 ? CONFIG : (uintptr_t)channel.registers;
        volatile uint32_t *any = (volatile uint32_t *)(uintptr_t)(base + (random >> 8 & 0x7c));
        if (random & 128)
            *any = (uint32_t)(random >> 32);
        else
            rung += *any & 0;
    }
    print("@result {\"job\":\"flood\",\"rung\":%lu,\"ok\":true}\n", rung);
    return true;
}

/* Both ends of each thing that others have and this guest hasn't. */
static bool peek(void)
{
    static const uint64_t places[] = { MEMORY, MEMORY + 0xff8, REGISTERS, REGISTERS + 0x3ff8, CONFIG, CONFIG + 0xffff8, 0x58000000ul };
    uint64_t count = sizeof places / sizeof *places;
    for (uint64_t i = 0; i < count; i++) {
        __asm__ volatile(".option push\n.option norvc\nld t0, (%0)\nsd t0, (%0)\n.option pop" :: "r"(places[i]) : "t0", "memory");
    }
    bool ok = faults == 2 * count;
    print("@result {\"job\":\"peek\",\"places\":%lu,\"faults\":%lu,\"ok\":%s}\n", count, faults, ok ? "true" : "false");
    return ok;
}

static bool fetch(void)
{
    if (!channel_find(&channel, 0))
        fail("this guest has no channel");
    *(volatile uint32_t *)channel.memory = 0x00008067; /* ret */
    __asm__ volatile("fence.i" ::: "memory");
    ((void (*)(void))(uintptr_t)channel.memory)();
    print("@result {\"job\":\"fetch\",\"faults\":%lu,\"ok\":%s}\n", faults, faults == 1 ? "true" : "false");
    return faults == 1;
}

static bool listen(uint64_t us)
{
    irqchip = irqchip_find(machine.boot_hart);
    on_interrupt(IRQ_EXTERNAL, listening);
    csr_write(sie, 1ul << IRQ_EXTERNAL);
    while (ears.count < MOST_CHANNELS && channel_find(&ears.channels[ears.count], ears.count))
        channel_listen(&ears.channels[ears.count++], &irqchip);
    if (ears.alarm_us) {
        ears.clock = device_find(CLOCK_GOLDFISH);
        irqchip_enable(&irqchip, ears.clock.source, LEVEL_HIGH);
        set_alarm();
    }
    uint64_t begin = read_time();
    sleep_us(us);
    us = ticks_to_ns(read_time() - begin) / 1000;
    uint64_t fewest = UINT64_MAX;
    for (unsigned i = 0; i < ears.count; i++)
        fewest = ears.heard[i] < fewest ? ears.heard[i] : fewest;
    print("@result {\"job\":\"listen\",\"us\":%lu,\"bells\":%lu,\"fewest\":%lu,\"nearest_ns\":%lu,\"alarms\":%lu,\"latest_ns\":%lu,\"ok\":true}\n", us, bells, fewest,
          bells > 1 ? ticks_to_ns(ears.gap) : 0, ears.alarms, ticks_to_ns(ears.latest));
    return true;
}

bool guest_main(void)
{
    static const char *const roles[] = { "ping", "echo", "flood", "peek", "fetch", "listen", NULL };
    enum { PING, ECHO, FLOOD, PEEK, FETCH, LISTEN };
    unsigned role = arg_choice("role", roles);
    uint64_t n = arg_number("n", 1000, 1, 1000000000), burst = arg_number("burst", 1, 1, CHANNEL_QUEUE_LENGTH);
    uint64_t us = arg_number("us", 100000, 1, 1000000000), dies = arg_number("dies", 0, 0, 1000000000);
    polls = arg_number("polls", 0, 0, 1);
    samples.uncounted = arg_number("uncounted", 0, 0, 1000000000);
    ears.deaf = us_to_ticks(arg_number("deaf_us", 0, 0, 1000));
    ears.alarm_us = arg_number("alarm_us", 0, 0, 1000000);
    args_finish();
    if (samples.uncounted && (role != PING || !samples_leave_some(samples.uncounted, (n + burst - 1) / burst)))
        fail("bootargs: uncounted=%lu: it is of the rounds of role=ping, and one has to be left that counts", samples.uncounted);
    if (role == LISTEN)
        return listen(us);
    if (role == PEEK)
        return peek();
    if (role == FETCH)
        return fetch();
    find();
    return role == PING ? ping(n, burst) : role == ECHO ? echo(n, dies) : flood(us);
}
