/* What things cost, in instructions of all that runs on the hart: the guest itself, a hypervisor, the firmware. Only under QEMU's -icount, and
 * with one hart, does `instret` count instructions; otherwise it is a clock of the host. IPIs between two harts are measured by `time`, so they
 * mean something in lockstep. */
#include "args.h"
#include "console.h"
#include "csr.h"
#include "machine.h"
#include "plic.h"
#include "samples.h"
#include "sbi.h"
#include "start.h"
#include "timer.h"
#include "trap.h"

void cost_entry(void);

static volatile uint64_t instret_at_entry; /* cost_entry.S writes it */
static volatile uint64_t interrupts;

struct cost {
    uint64_t count, sum, min, max;
};

static void add(struct cost *cost, uint64_t value)
{
    if (cost->count == 0 || value < cost->min)
        cost->min = value;
    if (value > cost->max)
        cost->max = value;
    cost->count++;
    cost->sum += value;
}

static void print_cost(const char *name, const struct cost *cost)
{
    uint64_t tenths = cost->count ? cost->sum * 10 / cost->count : 0;
    print(",\"%s\":{\"min\":%lu,\"mean\":%lu.%lu,\"max\":%lu}", name, cost->min, tenths / 10, tenths % 10, cost->max);
}

/* What the two readings of the counter add by themselves. */
static uint64_t reading_cost(void)
{
    uint64_t before = csr_read(instret);
    return csr_read(instret) - before;
}

/* An SBI call that does next to nothing: the way there and back. */
static uint64_t sbi_base_call(void)
{
    uint64_t before = csr_read(instret);
    sbi_call(SBI_BASE, SBI_BASE_SPEC_VERSION, 0, 0, 0);
    return csr_read(instret) - before - reading_cost();
}

/* A register of the interrupt controller whose reading has no effect: the threshold of a PLIC, or the first one of an APLIC. */
static volatile uint32_t *controller_register(const struct irqchip *irqchip)
{
    return irqchip->driver == &plic_driver ? plic_threshold(irqchip) : (volatile uint32_t *)(uintptr_t)irqchip->base;
}

/* One load from it: of hardware, or emulated. */
static uint64_t controller_read(volatile uint32_t *controller)
{
    uint64_t before = csr_read(instret);
    (void)*controller;
    return csr_read(instret) - before - reading_cost();
}

/* The hart's timer, by a call. */
static uint64_t set_timer(void)
{
    uint64_t before = csr_read(instret);
    sbi_call(SBI_TIME, SBI_TIME_SET, NEVER, 0, 0);
    return csr_read(instret) - before - reading_cost();
}

static void software(void)
{
    csr_clear(sip, 1ul << IRQ_SOFTWARE);
    interrupts++;
}

/* From the call to the first instruction of the handler. */
static uint64_t ipi_to_self(void)
{
    uint64_t seen = interrupts;
    interrupts_on();
    uint64_t before = csr_read(instret);
    sbi_send_ipi(1, machine.boot_hart);
    while (interrupts == seen)
        ;
    interrupts_off();
    return instret_at_entry - before;
}

static void timer(void)
{
    csr_write(CSR_STIMECMP, NEVER);
    interrupts++;
}

/* From the instruction before WFI to the handler's first: a sleeping hart executes nothing, so that is going to sleep and waking up. */
static uint64_t timer_with_wfi(void)
{
    uint64_t seen = interrupts, before;
    csr_write(CSR_STIMECMP, read_time() + us_to_ticks(200));
    interrupts_on();
    do {
        before = csr_read(instret);
        wait_for_interrupt();
    } while (interrupts == seen); /* WFI may end without a reason */
    interrupts_off();
    return instret_at_entry - before;
}

/* Two harts: one sends an IPI, the other one answers it. Both stay awake, or the other one sleeps before every
 * second ping; these come at irregular times, and the others at once behind them. */
static struct secondary partner;
static uint64_t partner_stack[512] __attribute__((aligned(16)));
static uint64_t ids[2], pings;
static struct samples samples;
static bool ping_sleeps;

static void send_and_wait(uint64_t to, uint64_t answers)
{
    sbi_send_ipi(1, to);
    while (interrupts < answers)
        ;
}

static void answer(void *unused)
{
    (void)unused;
    csr_write(sie, 1ul << IRQ_SOFTWARE);
    interrupts_on();
    for (uint64_t i = 0; i < pings; i++) {
        while (interrupts < 2 * i + 1) {
            if (!ping_sleeps || i % 2 != 0)
                continue;
            interrupts_off();
            if (interrupts < 2 * i + 1)
                wait_for_interrupt();
            interrupts_on();
        }
        sbi_send_ipi(1, ids[0]);
    }
    for (;;)
        wait_for_interrupt();
}

/* In nanoseconds of `time`, whose ticks are coarse: the mean is what counts. */
static struct cost round_trips(void)
{
    struct cost cost = { 0 };
    if (machine.hart_count < 2)
        fail("pings need a second hart");
    ids[0] = machine.boot_hart;
    ids[1] = machine.harts[machine.harts[0].id == machine.boot_hart].id;
    partner = (struct secondary){ partner_stack + 512, answer, (void *)&instret_at_entry };
    interrupts = 0;
    start_hart(ids[1], &partner);
    sleep_us(1000);
    interrupts_on();
    for (uint64_t i = 0; i < pings; i++) {
        for (uint64_t pause = ping_sleeps && i % 2 == 0 ? us_to_ticks(110) + i % 97 : 0, end = read_time() + pause; read_time() < end;)
            ;
        uint64_t before = read_time();
        send_and_wait(ids[1], 2 * i + 2);
        uint64_t took = read_time() - before;
        if (sample_counts(&samples))
            add(&cost, ticks_to_ns(took));
    }
    interrupts_off();
    return cost;
}

bool guest_main(void)
{
    machine_needs("sstc", "the timer's cost is measured with it");
    uint64_t n = arg_number("n", 1000, 0, 1000000);
    pings = arg_number("pings", 0, 0, 1000000);
    ping_sleeps = arg_number("ping_sleeps", 0, 0, 1);
    samples.uncounted = arg_number("uncounted", 0, 0, 1000000);
    args_finish();
    if (samples.uncounted && !samples_leave_some(samples.uncounted, pings))
        fail("bootargs: uncounted=%lu: it is of the pings, and one has to be left that counts", samples.uncounted);
    struct irqchip irqchip = irqchip_find(machine.boot_hart);
    volatile uint32_t *controller = controller_register(&irqchip);
    struct cost base_call = { 0 }, call = { 0 }, read = { 0 }, ipi = { 0 }, wake = { 0 };

    csr_write(CSR_STIMECMP, NEVER);
    on_interrupt(IRQ_SOFTWARE, software);
    on_interrupt(IRQ_TIMER, timer);
    csr_write(sie, 1ul << IRQ_SOFTWARE | 1ul << IRQ_TIMER);
    __asm__ volatile("mv tp, %0" :: "r"(&instret_at_entry));
    csr_write(stvec, cost_entry);
    for (uint64_t i = 0; i < n; i++) {
        add(&base_call, sbi_base_call());
        add(&call, set_timer());
        add(&read, controller_read(controller));
        add(&ipi, ipi_to_self());
        add(&wake, timer_with_wfi());
    }

    print("@result {\"job\":\"cost\",\"unit\":\"instructions\",\"samples\":%lu", n);
    if (n != 0) {
        print_cost("sbi_base_call", &base_call);
        print_cost("set_timer", &call);
        print_cost(irqchip.driver == &plic_driver ? "plic_read" : "aplic_read", &read);
        print_cost("ipi_to_self", &ipi);
        print_cost("timer_with_wfi", &wake);
    }
    if (pings != 0) {
        struct cost trips = round_trips();
        print_cost("ipi_round_trip_ns", &trips);
    }
    print(",\"ok\":true}\n");
    return true;
}
