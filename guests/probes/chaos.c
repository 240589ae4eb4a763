/* All harts do, at random, whatever they can to each other and to the hypervisor, end the guest now and then (it is to be started again), and go
 * through user mode. Never ends by itself: for a guest in the background with restart = "always". With a `phase` they lie in wait: each sleeps until
 * shortly before or after a neighbour's periodic deadline, does one thing, and sleeps again. */
#include <stdatomic.h>
#include "ainori_sbi.h"
#include "args.h"
#include "chaos_irqchip.h"
#include "console.h"
#include "csr.h"
#include "machine.h"
#include "sbi.h"
#include "start.h"
#include "timer.h"
#include "trap.h"
#include "xorshift.h"

#define STACK_WORDS 512
#define UART        0x10000000ul
#define GIVE_WAY    0x4000000ul
#define CHANNEL_REGISTERS 0x40000000ul
#define CHANNEL_BELLS     0x40004000ul
#define CHANNEL_PAGE      0x1000ul
#define CAUSE_USER_CALL 8
#define ALL_IRQS    (1ul << IRQ_SOFTWARE | 1ul << IRQ_TIMER | 1ul << IRQ_EXTERNAL)

static struct secondary secondaries[MAX_HARTS];
static uint64_t stacks[MAX_HARTS][STACK_WORDS] __attribute__((aligned(16)));
static uint64_t seed, ends_in, only, source, channels;
static bool extensions, has_vectors; /* the registers of floating point and vectors are in use all the time */
static uint64_t phase, period, before, after; /* the neighbour's, and around it, in ticks; no period: they don't wait */
static volatile uint64_t sink;
static const struct irqchip_chaos *irqchip;

static uint64_t hart_bits(void) { return machine.hart_count >= 64 ? UINT64_MAX : (1ul << machine.hart_count) - 1; }

void handle_exception(struct trap_frame *frame, uint64_t scause)
{
    if (scause == CAUSE_USER_CALL)
        frame->sstatus |= SSTATUS_SPP;
    if (scause == 1) { /* a jump to nowhere: its return address */
        frame->sepc = frame->x[1];
        return;
    }
    frame->sepc += 4;
}

static void software(void) { csr_clear(sip, 1ul << IRQ_SOFTWARE); }
static void timer(void) { csr_write(CSR_STIMECMP, NEVER); }
static void external(void)
{
    if (!irqchip->serve(sink))
        csr_clear(sie, 1ul << IRQ_EXTERNAL);
}

/* To user mode for `n` rounds, and back by a call. */
static void visit_user(uint64_t n)
{
    __asm__ volatile("csrc sstatus, %[spp]\n la t0, 1f\n csrw sepc, t0\n sret\n"
                     ".balign 4\n1: addi %[n], %[n], -1\n bgtz %[n], 1b\n .option push\n .option norvc\n ecall\n .option pop\n"
                     : [n] "+r"(n) : [spp] "r"(SSTATUS_SPP) : "t0", "memory");
}

/* Rings for the other end, by the register or, if it is there, the bell's page, or changes what one hears of its own bell. */
static void use_channel(uint64_t r, uint64_t b)
{
    uint64_t page = r % channels * CHANNEL_PAGE;
    volatile uint32_t *registers = (volatile uint32_t *)(CHANNEL_REGISTERS + page);
    switch (b % 8) {
    case 0: registers[0] = b >> 8 & 1; break; /* Interrupt Mask */
    case 1: sink += registers[1]; break; /* Interrupt Status */
    case 2: sink += registers[b >> 8 & 0x3ff]; break;
    case 3: case 4: registers[3] = (b & 256 ? 0 : 1) << 16 | b >> 48; break; /* Doorbell */
    default: for (uint64_t i = b >> 8 & 15; i; i--) *(volatile uint32_t *)(CHANNEL_BELLS + page) = b & 1 << 16 ? 1 : b >> 20; break;
    }
}

static void chaos(uint64_t *state)
{
    static const char text[64] = "chaos without an end of line, and more of it, and yet more ....";
    uint64_t r = xorshift(state), b = xorshift(state), all = hart_bits();
    uint64_t mask = b & all;
    unsigned kind = r % 24;
    if (only && !(only >> kind & 1)) return;
    r >>= 8;
    switch (kind) {
    case 0: sbi_send_ipi(r & 1 ? mask : b, r & 2 ? 0 : UINT64_MAX); break;
    case 1: sbi_call5(SBI_RFENCE, r % 3, mask, r & 8 ? 0 : UINT64_MAX, r & 16 ? 0x80000000 : b, r & 32 ? 4096 * (b % 12) : b, b >> 7 & 0xffff); break;
    case 2: case 3: case 4: {
        uint64_t i = b % machine.hart_count;
        sbi_hart_start(i, (uint64_t)(uintptr_t)secondary_start, (uint64_t)(uintptr_t)&secondaries[i]);
        break;
    }
    case 5: if (r % 4 == 0) sbi_hart_stop(); break;
    case 6: case 7:
        csr_write(CSR_STIMECMP, read_time() + r % 600);
        csr_write(sie, 1ul << IRQ_TIMER | (r & 1 ? 1ul << IRQ_SOFTWARE : 0));
        if (r & 0x10000) wait_for_interrupt();
        else if (r & 0x20000) sbi_call(SBI_HSM, 3, 0, 0, 0);
        else if (r & 0x40000) sbi_call(AINORI_EID, AINORI_GIVE_WAY, 0, 0, 0);
        else sink += *(volatile uint32_t *)GIVE_WAY;
        break;
    case 8: irqchip->configure(r, b); break;
    case 9: irqchip->enable(r, b); break;
    case 10: irqchip->deliver(r, b); break;
    case 11: if (channels && b & 1) { use_channel(r, b >> 1); break; } *(volatile uint8_t *)(UART + r % 8) = r % 8 ? b : 'a' + b % 26; break;
    case 12: sbi_call(SBI_DBCN, 0, b % 64, (uint64_t)(uintptr_t)text, 0); break;
    case 13: { uint64_t at[] = { 0x18000000, 0, 0x80000000 + (8ul << 20) * 64, UINT64_MAX & ~7ul, 0x10009000 }; sink += *(volatile uint64_t *)at[r % 5]; break; }
    case 14: { static const uint64_t at[] = { 0, 1, UINT64_MAX, UINT64_MAX - 1, 1ul << 63 }; csr_write(CSR_STIMECMP, r % 6 < 5 ? at[r % 6] : read_time() + r % 100); csr_write(sie, r >> 8 & 0x222); break; }
    case 15: sbi_call(AINORI_EID, r % 5 == AINORI_GIVE_WAY ? 5 : r % 5, b, 0, 0); break; /* not without a timer: it is among the naps */
    case 16: csr_set(sstatus, SSTATUS_FS_INITIAL); __asm__ volatile("fmv.d.x fs5, %0\n fadd.d fs6, fs5, fs5" :: "r"(b)); if (r & 1) csr_clear(sstatus, SSTATUS_FS); break;
    case 17: __asm__ volatile(".word 0xffffffff"); break;
    case 18: csr_set(sstatus, SSTATUS_SIE); if (r & 1) csr_clear(sstatus, SSTATUS_SIE); break;
    case 19: visit_user(r % 3000); break;
    case 20: for (uint64_t i = r % 2000; i; i--) sink += i; break;
    case 21: __asm__ volatile(".word 0x00d00073"); break; /* WRS.NTO */
    case 22: __asm__ volatile("la ra, 1f\n jr %0\n .balign 4\n1:" :: "r"(r & 1 ? 0x18000000ul : UART) : "ra", "memory"); break;
    case 23:
        if (ends_in && r % ends_in == 0)
            switch (b % 8) {
            case 0: sbi_call(SBI_SRST, 0, 1, 0, 0); break;
            case 1: sbi_call(SBI_SRST, 0, 2, 0, 0); break;
            case 2: sbi_call(SBI_SRST, 0, 0, 0, 0); break;
            case 3: sbi_call(SBI_SRST, 0, 0, 1, 0); break;
            case 4: csr_write(stvec, 0); __asm__ volatile(".word 0xffffffff"); break;
            case 5: *(volatile uint32_t *)0x100000 = 0x7777; break;
            case 6: csr_write(stvec, 0x18000000); __asm__ volatile(".word 0xffffffff"); break;
            case 7: sbi_call(SBI_LEGACY_SHUTDOWN, 0, 0, 0, 0); break;
            }
        break;
    }
}

/* One source that all harts listen to: its line up and down, served by whoever comes, and changed. */
static void fight_for_source(uint64_t *state)
{
    uint64_t r = xorshift(state);
    if (r % 8 == 0) {
        *(volatile uint8_t *)(UART + 1) = 0;
        *(volatile uint8_t *)(UART + 1) = 2;
    } else {
        irqchip->fight(r);
    }
}

/* Many sources are switched on or off for a hart, which may just have been asked to start. */
static void enable_for_starting(uint64_t *state)
{
    uint64_t r = xorshift(state), i = (r >> 8) % machine.hart_count;
    if (r % 16 == 0)
        sbi_hart_stop();
    sbi_hart_start(i, (uint64_t)(uintptr_t)secondary_start, (uint64_t)(uintptr_t)&secondaries[i]);
    static uint32_t turns;
    irqchip->switch_all(i, turns++ & 1 ? 0 : UINT32_MAX);
}

static void lie_in_wait(uint64_t *state)
{
    uint64_t now = read_time(), deadline = now - (now - phase) % period + period;
    uint64_t until = deadline - before + xorshift(state) % (before + after);
    if (until < now) until += period;
    csr_write(sie, ALL_IRQS);
    interrupts_off();
    while (read_time() < until) {
        csr_write(CSR_STIMECMP, until);
        wait_for_interrupt();
        interrupts_on(); /* what has woken it is taken here */
        interrupts_off();
    }
    csr_write(CSR_STIMECMP, NEVER);
    interrupts_on();
}

static void use_extensions(void)
{
    csr_set(sstatus, SSTATUS_FS_INITIAL);
    __asm__ volatile("fadd.d fs6, fs5, fs5");
    if (has_vectors) {
        csr_set(sstatus, SSTATUS_VS_INITIAL);
        __asm__ volatile(".insn 0x0d007057" ::: "memory"); /* vsetvli zero, zero, e32, m1, ta, ma */
    }
}

static __attribute__((noreturn)) void forever(void *argument)
{
    uint64_t state = seed ^ (uint64_t)(uintptr_t)argument * 0x9e3779b97f4a7c15ul ^ read_time();
    if (!state) state = 1;
    csr_write(sie, ALL_IRQS);
    irqchip->open();
    for (;;) {
        if (extensions) use_extensions();
        if (period) lie_in_wait(&state);
        (source == 2 ? enable_for_starting : source ? fight_for_source : chaos)(&state);
    }
}

bool guest_main(void)
{
    seed = arg_number("seed", 1, 0, UINT64_MAX);
    ends_in = arg_number("ends_in", 200, 0, UINT64_MAX);
    only = arg_number("only", 0, 0, UINT64_MAX);
    source = arg_number("source", 0, 0, 2);
    channels = arg_number("channels", 0, 0, 4);
    phase = arg_number("phase", NEVER, 0, NEVER);
    period = phase == NEVER ? 0 : us_to_ticks(arg_number("period_us", 1000, 100, UINT32_MAX));
    before = us_to_ticks(arg_number("before_us", 15, 1, 100000));
    after = us_to_ticks(arg_number("after_us", 4, 0, 100000));
    extensions = arg_number("extensions", 0, 0, 1);
    has_vectors = machine_has("v");
    args_finish();
    irqchip = chaos_irqchip();
    if (source)
        irqchip->listen();
    on_interrupt(IRQ_SOFTWARE, software);
    on_interrupt(IRQ_TIMER, timer);
    on_interrupt(IRQ_EXTERNAL, external);
    for (unsigned i = 0; i < machine.hart_count; i++) {
        secondaries[i] = (struct secondary){ &stacks[i][STACK_WORDS], forever, &stacks[i][0] };
        if (i) sbi_hart_start(i, (uint64_t)(uintptr_t)secondary_start, (uint64_t)(uintptr_t)&secondaries[i]);
    }
    __asm__ volatile("mv sp, %0\n mv a0, %1\n jr %2" :: "r"(&stacks[0][STACK_WORDS]), "r"(&stacks[0][0]), "r"(forever));
    return false;
}
