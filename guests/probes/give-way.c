/* Does a guest that gives its core away, by the SBI or by a load, come back with the next interrupt and no sooner, as from WFI? */
#include "ainori_sbi.h"
#include "args.h"
#include "console.h"
#include "csr.h"
#include "machine.h"
#include "sbi.h"
#include "start.h"
#include "timer.h"
#include "trap.h"
#include "trap_frame.h"

#define GIVE_WAY 0x4000000ul
#define CAUSE_USER_CALL 8
#define LATE_US 1000 /* whoever isn't back by then was forgotten */

static unsigned checks, failures;
static uint64_t length; /* ticks of `time` that it gives the core away */
static volatile uint64_t interrupts, interrupted_at;

static void check(bool holds, const char *what)
{
    checks++;
    if (!holds) {
        print("failed: %s\n", what);
        failures++;
    }
}

/* From user mode: back to the supervisor, behind the call. */
void handle_exception(struct trap_frame *frame, uint64_t scause)
{
    if (scause != CAUSE_USER_CALL)
        report_trap(frame, scause);
    frame->sstatus |= SSTATUS_SPP;
    frame->sepc += 4;
}

static void timer(void)
{
    csr_write(CSR_STIMECMP, NEVER);
    interrupted_at = csr_read(sepc);
    interrupts++;
}

static void software(void)
{
    csr_clear(sip, 1ul << IRQ_SOFTWARE);
    interrupts++;
}

/* The ways: each returns what it found in place of what was in a register. */
static uint64_t by_call(void) { return sbi_call(AINORI_EID, AINORI_GIVE_WAY, 0, 0, 0).error; }

static uint64_t behind; /* the address behind the load */

static uint64_t by_load(void)
{
    uint64_t value = 1;
    __asm__ volatile(".option push\n .option norvc\n lla %1, 1f\n lw %0, 0(%2)\n1: .option pop\n" : "+r"(value), "=&r"(behind) : "r"(GIVE_WAY) : "memory");
    return value;
}

/* The same by an instruction of two bytes. */
static uint64_t by_short_load(void)
{
    register uint64_t value __asm__("a4") = 1;
    register uint64_t address __asm__("a5") = GIVE_WAY;
    __asm__ volatile(".option push\n .option rvc\n lla %1, 1f\n c.lw %0, 0(%2)\n1: .option pop\n" : "+r"(value), "=&r"(behind) : "r"(address) : "memory");
    return value;
}

/* And as a program does it. */
static uint64_t by_load_of_user(void)
{
    uint64_t value = 1;
    __asm__ volatile(".option push\n .option norvc\n lla %1, 2f\n csrc sstatus, %3\n lla t0, 1f\n csrw sepc, t0\n sret\n"
                     "1: lw %0, 0(%2)\n2: ecall\n .option pop\n"
                     : "+r"(value), "=&r"(behind) : "r"(GIVE_WAY), "r"(SSTATUS_SPP) : "t0", "memory");
    return value;
}

static const struct {
    const char *name;
    uint64_t (*give_way)(void);
    bool loads, is_user;
} ways[] = {
    { "call", by_call, false, false },
    { "load", by_load, true, false },
    { "short load", by_short_load, true, false },
    { "load in user mode", by_load_of_user, true, true },
};

static void until_timer(unsigned way, bool takes_it)
{
    uint64_t before = interrupts, deadline = read_time() + length;
    csr_write(sie, 1ul << IRQ_TIMER);
    csr_write(CSR_STIMECMP, deadline);
    if (takes_it)
        interrupts_on();
    uint64_t answer = ways[way].give_way(), now = read_time();
    interrupts_off();
    print("%s, interrupts %s: back %lu ns behind the timer\n", ways[way].name, takes_it ? "on" : "off", ticks_to_ns(now - deadline));
    check(answer == 0, "it finds 0");
    check(now >= deadline, "it comes back no sooner than its interrupt");
    check(now < deadline + us_to_ticks(LATE_US), "it comes back with its interrupt");
    check(interrupts - before == (takes_it || ways[way].is_user), "its handler is called once, if interrupts are on");
    if (ways[way].loads && interrupts != before)
        check(interrupted_at == behind, "the load is done before the handler is called");
    csr_write(CSR_STIMECMP, NEVER);
}

static void not_at_all(unsigned way)
{
    csr_write(sie, 1ul << IRQ_SOFTWARE);
    csr_set(sip, 1ul << IRQ_SOFTWARE);
    csr_write(CSR_STIMECMP, NEVER);
    uint64_t begin = read_time();
    uint64_t answer = ways[way].give_way();
    check(answer == 0 && read_time() - begin < us_to_ticks(LATE_US), "with an interrupt pending it comes back at once");
    csr_clear(sip, 1ul << IRQ_SOFTWARE);
}

/* All else of the page reads as zero, at once. */
static void beside_the_word(void)
{
    uint64_t sum = 0, begin = read_time();
    csr_write(sie, 0);
    for (uintptr_t at = GIVE_WAY; at < GIVE_WAY + 4096; at += 64) {
        *(volatile uint64_t *)at = UINT64_MAX;
        sum += *(volatile uint64_t *)at + *(volatile uint32_t *)(at + 4) + *(volatile uint16_t *)at + *(volatile uint8_t *)(at + 1);
    }
    check(sum == 0 && read_time() - begin < us_to_ticks(100 * LATE_US), "the rest of the page is zero");
}

static struct secondary other;
static uint64_t stack[512] __attribute__((aligned(16)));

static __attribute__((noreturn)) void wakes(void *argument)
{
    uint64_t end = read_time() + length;
    while (read_time() < end)
        ;
    sbi_send_ipi(1, (uintptr_t)argument);
    csr_write(sie, 0);
    for (;;)
        sbi_hart_stop();
}

/* By another hart's interrupt. */
static void until_ipi(unsigned way, uint64_t hart)
{
    other = (struct secondary){ &stack[sizeof stack / sizeof *stack], wakes, (void *)(uintptr_t)machine.boot_hart };
    while (sbi_hart_status(hart).value != SBI_HART_STOPPED)
        ;
    uint64_t begin = read_time(), before = interrupts;
    start_hart(hart, &other);
    csr_write(sie, 1ul << IRQ_SOFTWARE);
    interrupts_on();
    ways[way].give_way();
    interrupts_off();
    check(interrupts == before + 1 && read_time() - begin >= length, "another hart's interrupt ends it");
}

bool guest_main(void)
{
    uint64_t rounds = arg_number("n", 3, 1, 1000000);
    length = us_to_ticks(arg_number("us", 3000, 1, 1000000));
    args_finish();
    if (!sbi_probe(AINORI_EID))
        fail("this SBI hasn't got Ainori's extension");
    on_interrupt(IRQ_TIMER, timer);
    on_interrupt(IRQ_SOFTWARE, software);
    beside_the_word();
    for (uint64_t i = 0; i < rounds; i++) {
        for (unsigned way = 0; way < sizeof ways / sizeof *ways; way++) {
            until_timer(way, false);
            until_timer(way, true);
            if (!ways[way].is_user)
                not_at_all(way);
            for (unsigned n = 0; n < machine.hart_count; n++)
                if (machine.harts[n].id != machine.boot_hart)
                    until_ipi(way, machine.harts[n].id);
        }
    }
    print("@result {\"job\":\"give-way\",\"checks\":%u,\"failures\":%u,\"ok\":%s}\n", checks, failures, failures ? "false" : "true");
    return failures == 0;
}
