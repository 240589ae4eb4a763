/* Does a device's interrupt follow what its driver tells the interrupt controller (AIA, with IMSICs)? The alarms of the Goldfish RTC of QEMU's `virt` go to one hart after
 * the other, and everything that has to do with where they go is written while the device asks and the last interrupt isn't served. No hart has its interrupts on: they
 * look into their files. */
#include <stdatomic.h>
#include "aplic.h"
#include "args.h"
#include "clock_device.h"
#include "console.h"
#include "csr.h"
#include "imsic.h"
#include "machine.h"
#include "start.h"
#include "timer.h"
#include "trap.h"

#define STACK_WORDS 256
#define MOST_HARTS  4
#define IDENTITIES  64

#define ARRIVES_US 5000
/* Longer than any way from a device to a file. */
#define QUIET_US 100

static struct irqchip irqchip;
static struct device device;
static uint64_t latest, stray, costs[2];
/* What has come, by hart and identity. */
static atomic_ulong arrived[MOST_HARTS][IDENTITIES];
static atomic_bool listens[MOST_HARTS];

struct place {
    unsigned hart;
    uint32_t identity;
};

/* By the hart itself. */
static void listen(uint64_t hart)
{
    uint32_t identity = imsic_claim();
    if (identity != 0)
        atomic_fetch_add(&arrived[hart][identity], 1);
}

static void enable_identities(void)
{
    imsic_enable(device.source);
    imsic_enable(device.source + 1);
}

static void hear(void *argument)
{
    uint64_t hart = (uint64_t)argument;
    enable_identities();
    atomic_store(&listens[hart], true);
    for (;;)
        listen(hart);
}

static volatile uint32_t *reg(uint64_t offset) { return aplic_register(&irqchip, offset); }

static void aim(struct place at) { *reg(APLIC_TARGET(device.source)) = at.hart << APLIC_TARGET_HART_SHIFT | at.identity; }

/* Each changes where interrupts go, or whether they do, and has the wire asked once more, as a driver does that has served one of a level (section 4.9.2). */
static void aim_elsewhere(struct place at) { aim(at); }

static void switch_off_and_on(struct place at)
{
    *reg(APLIC_CLRIENUM) = device.source;
    aim(at);
    *reg(APLIC_SETIENUM) = device.source;
}

static void configure_anew(struct place at)
{
    *reg(APLIC_SOURCECFG(device.source)) = 0;
    *reg(APLIC_SOURCECFG(device.source)) = APLIC_SOURCE_LEVEL_HIGH;
    aim(at);
    *reg(APLIC_SETIENUM) = device.source;
}

static void close_and_open(struct place at)
{
    *reg(APLIC_DOMAINCFG) = APLIC_DOMAINCFG_DM;
    aim(at);
    *reg(APLIC_DOMAINCFG) = APLIC_DOMAINCFG_DM | APLIC_DOMAINCFG_IE;
}

static void (*const changes[])(struct place) = { aim_elsewhere, switch_off_and_on, configure_anew, close_and_open };
#define CHANGES (sizeof changes / sizeof *changes)

/* How many have come anywhere but there. */
static uint64_t elsewhere(struct place at)
{
    uint64_t all = 0;
    for (unsigned hart = 0; hart < machine.hart_count; hart++) {
        for (unsigned identity = 0; identity < IDENTITIES; identity++)
            all += hart == at.hart && identity == at.identity ? 0 : atomic_load(&arrived[hart][identity]);
    }
    return all;
}

/* Waits until one has come there that hadn't come `before`. */
static bool comes(struct place at, uint64_t before)
{
    uint64_t begin = read_time();
    while (atomic_load(&arrived[at.hart][at.identity]) == before) {
        listen(irqchip.context);
        if (read_time() - begin > us_to_ticks(ARRIVES_US))
            return false;
    }
    uint64_t took = read_time() - begin;
    latest = took > latest ? took : latest;
    return true;
}

/* The device doesn't ask any more. One may come still that was on its way, which is served as well. */
static void serve(void)
{
    clock_acknowledge(&device);
    *reg(APLIC_SETIPNUM) = device.source;
    uint64_t end = read_time() + us_to_ticks(QUIET_US);
    while (read_time() < end)
        listen(irqchip.context);
    *reg(APLIC_SETIPNUM) = device.source;
}

/* One alarm, which comes there. */
static bool alarm(struct place at)
{
    uint64_t before = atomic_load(&arrived[at.hart][at.identity]);
    clock_set_alarm(&device, 10);
    return comes(at, before);
}

/* Two alarms, of which the second may come straight from the board's controller; before that one is served, interrupts are to go `to` another place. False if one is lost. */
static bool turn(struct place from, struct place to, void (*change)(struct place))
{
    uint64_t others = elsewhere(from);
    if (!alarm(from))
        return false;
    serve();
    if (!alarm(from))
        return false;
    stray += elsewhere(from) - others;
    others = elsewhere(to);
    uint64_t before = atomic_load(&arrived[to.hart][to.identity]);
    change(to);
    /* The wire is high. */
    *reg(APLIC_SETIPNUM) = device.source;
    if (!comes(to, before))
        return false;
    serve();
    stray += elsewhere(to) - others;
    return true;
}

/* Instructions of a write to domaincfg that switches all off, where the source comes straight to the file, and where it doesn't. */
static void measure(void)
{
    for (unsigned i = 0; i < 2; i++) {
        uint64_t before = csr_read(instret);
        *reg(APLIC_DOMAINCFG) = APLIC_DOMAINCFG_DM;
        costs[i] = csr_read(instret) - before;
    }
    *reg(APLIC_DOMAINCFG) = APLIC_DOMAINCFG_DM | APLIC_DOMAINCFG_IE;
}

static void start_others(void)
{
    static struct secondary secondaries[MOST_HARTS];
    static uint64_t stacks[MOST_HARTS][STACK_WORDS] __attribute__((aligned(16)));
    for (unsigned i = 0; i < machine.hart_count; i++) {
        uint64_t id = machine.harts[i].id;
        if (id == machine.boot_hart)
            continue;
        uint64_t hart = irqchip_find(id).context;
        secondaries[i] = (struct secondary){ stacks[i] + STACK_WORDS, hear, (void *)hart };
        start_hart(id, &secondaries[i]);
        while (!atomic_load(&listens[hart]))
            pause_hint();
    }
}

bool guest_main(void)
{
    uint64_t n = arg_number("n", 32, 1, 100000);
    args_finish();
    device = device_find(CLOCK_GOLDFISH);
    irqchip = irqchip_find(machine.boot_hart);
    if (irqchip.driver != &imsic_driver || machine.hart_count > MOST_HARTS)
        fail("this probe needs interrupt files of at most %u harts", MOST_HARTS);
    irqchip_enable(&irqchip, device.source, LEVEL_HIGH);
    enable_identities();
    start_others();
    struct place at = { irqchip.context, device.source };
    uint64_t done = 0;
    while (done < n) {
        struct place next = { done / 2 % machine.hart_count, device.source + done % 2 };
        if (!turn(at, next, changes[done / CHANGES % CHANGES]))
            break;
        at = next;
        done++;
    }
    bool ok = done == n && alarm(at);
    serve();
    measure();
    ok = ok && stray == 0;
    print("@result {\"job\":\"recall\",\"turns\":%lu,\"stray\":%lu,\"latest_ns\":%lu,\"recall_instructions\":%lu,\"write_instructions\":%lu,\"ok\":%s}\n", done, stray,
          ticks_to_ns(latest), costs[0], costs[1], ok ? "true" : "false");
    return ok;
}
