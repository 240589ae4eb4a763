/* Is the SBI that a guest sees the one of the specification (version 2.0)? */
#include "sbi.h"
#include "args.h"
#include "console.h"
#include "csr.h"
#include "machine.h"
#include "start.h"
#include "timer.h"
#include "trap.h"

#define SPEC_2_0 (2l << 24)
#define NO_EXTENSION 0x09999999 /* in the vendor range, of nobody */
#define NO_FUNCTION  100
#define NO_HART      0x7fff
#define NO_ADDRESS   (1ul << 60) /* further than any physical address reaches */
#define ARRIVES_MS   1000

#define HSM_SUSPEND 3
#define ECALL 0x00000073u
#define LOAD_ACCESS_FAULT 5
#define LOAD_PAGE_FAULT 13
#define GIB (1ul << 30)
#define SATP_SV39 (8ul << 60)
#define PTE_ALL 0xcful /* valid, readable, writable, executable, accessed, dirty */

static unsigned checks, failures;
static volatile uint64_t software_interrupts;

static void check(bool holds, const char *what)
{
    checks++;
    if (!holds) {
        print("failed: %s\n", what);
        failures++;
    }
}

static void check_error(struct sbi_result result, long wanted, const char *what)
{
    check(result.error == wanted, what);
    if (result.error != wanted)
        print("  the error is %ld, should be %ld\n", result.error, wanted);
}

/* The last exception, of a call that must make one. */
static struct {
    uint64_t cause, value, instruction;
} fault;

void handle_exception(struct trap_frame *frame, uint64_t scause)
{
    if (scause != LOAD_ACCESS_FAULT && scause != LOAD_PAGE_FAULT)
        report_trap(frame, scause);
    fault.cause = scause;
    fault.value = csr_read(stval);
    fault.instruction = *(const uint32_t *)(uintptr_t)frame->sepc;
    frame->sepc += 4;
}

static void software(void)
{
    csr_clear(sip, 1ul << IRQ_SOFTWARE);
    software_interrupts++;
}

static void check_base(void)
{
    static const struct {
        long id;
        const char *what;
    } needed[] = {
        { SBI_BASE, "BASE is there" }, { SBI_TIME, "TIME is there" }, { SBI_IPI, "IPI is there" }, { SBI_RFENCE, "RFENCE is there" },
        { SBI_HSM, "HSM is there" },   { SBI_SRST, "SRST is there" }, { SBI_DBCN, "DBCN is there" },
    };
    struct sbi_result version = sbi_call(SBI_BASE, SBI_BASE_SPEC_VERSION, 0, 0, 0);
    check(version.error == SBI_SUCCESS && version.value >= SPEC_2_0, "the specification's version is at least 2.0");
    for (long function = 1; function <= 6; function++)
        check_error(sbi_call(SBI_BASE, function, SBI_BASE, 0, 0), SBI_SUCCESS, "each function of BASE is there");
    for (unsigned i = 0; i < sizeof needed / sizeof *needed; i++)
        check(sbi_probe(needed[i].id), needed[i].what);
    struct sbi_result nobody = sbi_call(SBI_BASE, SBI_BASE_PROBE, NO_EXTENSION, 0, 0);
    check(nobody.error == SBI_SUCCESS && nobody.value == 0, "the probe of an unknown extension succeeds with 0");
    check_error(sbi_call(NO_EXTENSION, 0, 0, 0, 0), SBI_ERR_NOT_SUPPORTED, "an unknown extension is not supported");
    static const long ids[] = { SBI_BASE, SBI_TIME, SBI_IPI, SBI_RFENCE, SBI_HSM, SBI_SRST, SBI_DBCN };
    for (unsigned i = 0; i < sizeof ids / sizeof *ids; i++)
        check_error(sbi_call(ids[i], NO_FUNCTION, 0, 0, 0), SBI_ERR_NOT_SUPPORTED, "an unknown function is not supported");
}

/* Chapter 3 of the specification: a call keeps all registers but a0 and a1. */
static void check_registers(void)
{
    uint64_t changed;
    __asm__ volatile("li a7, %1\n li a6, %2\n li a2, 102\n li a3, 103\n li a4, 104\n li a5, 105\n"
                     "li t0, 200\n li t1, 201\n li t2, 202\n li t3, 203\n li t4, 204\n li t5, 205\n li t6, 206\n"
                     "ecall\n"
                     "addi a2, a2, -102\n addi a3, a3, -103\n addi a4, a4, -104\n addi a5, a5, -105\n"
                     "addi t0, t0, -200\n addi t1, t1, -201\n addi t2, t2, -202\n addi t3, t3, -203\n addi t4, t4, -204\n"
                     "addi t5, t5, -205\n addi t6, t6, -206\n addi a7, a7, -%1\n addi a6, a6, -%2\n"
                     "or %0, a2, a3\n or %0, %0, a4\n or %0, %0, a5\n or %0, %0, a6\n or %0, %0, a7\n or %0, %0, t0\n"
                     "or %0, %0, t1\n or %0, %0, t2\n or %0, %0, t3\n or %0, %0, t4\n or %0, %0, t5\n or %0, %0, t6\n"
                     : "=&r"(changed)
                     : "i"(SBI_BASE), "i"(SBI_BASE_SPEC_VERSION)
                     : "a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7", "t0", "t1", "t2", "t3", "t4", "t5", "t6", "memory");
    check(changed == 0, "a call keeps all registers but a0 and a1");
}

/* The timer's interrupt comes not before its deadline, and goes when a later one is set. `through_sbi`: or by stimecmp. */
static void check_timer(bool through_sbi)
{
    uint64_t deadline = read_time() + us_to_ticks(2000), end = deadline + us_to_ticks(ARRIVES_MS * 1000);
    if (through_sbi)
        check_error(sbi_call(SBI_TIME, SBI_TIME_SET, deadline, 0, 0), SBI_SUCCESS, "set_timer succeeds");
    else
        csr_write(CSR_STIMECMP, deadline);
    while (!(csr_read(sip) & 1ul << IRQ_TIMER) && read_time() < end)
        ;
    uint64_t now = read_time();
    check(now >= deadline, "no timer interrupt comes before its deadline");
    check(now < end, "a timer interrupt comes");
    if (through_sbi)
        sbi_call(SBI_TIME, SBI_TIME_SET, NEVER, 0, 0);
    else
        csr_write(CSR_STIMECMP, NEVER);
    check(!(csr_read(sip) & 1ul << IRQ_TIMER), "a later deadline takes a timer interrupt back");
}

static void check_ipi(bool strict)
{
    check_error(sbi_call(SBI_IPI, SBI_IPI_SEND, 1, machine.boot_hart, 0), SBI_SUCCESS, "an IPI to oneself is accepted");
    check(wait_for_count(&software_interrupts, 1, ARRIVES_MS), "an IPI to oneself arrives");
    check_error(sbi_call(SBI_IPI, SBI_IPI_SEND, 0, 0, 0), SBI_SUCCESS, "an IPI to nobody is accepted");
    sleep_us(1000);
    check(software_interrupts == 1, "an IPI to nobody doesn't arrive");
    if (strict)
        check_error(sbi_call(SBI_IPI, SBI_IPI_SEND, 1, NO_HART, 0), SBI_ERR_INVALID_PARAM, "an IPI to a hart that isn't there is refused");
}

static void check_rfence(bool strict)
{
    uint64_t self = machine.boot_hart, page = machine.memory_base, all = UINT64_MAX;
    check(sbi_remote_fence_i(1, self) == SBI_SUCCESS, "remote_fence_i is accepted");
    check(sbi_remote_fence_i(0, all) == SBI_SUCCESS, "a fence for all harts (base -1) is accepted");
    check(sbi_remote_sfence_vma(1, self, page, 4096) == SBI_SUCCESS, "remote_sfence_vma of a page is accepted");
    check(sbi_remote_sfence_vma(1, self, 0, all) == SBI_SUCCESS, "remote_sfence_vma of all is accepted");
    check(sbi_call5(SBI_RFENCE, SBI_RFENCE_VMA_ASID, 1, self, page, 4096, 1).error == SBI_SUCCESS,
          "remote_sfence_vma_asid is accepted");
    if (strict)
        check(sbi_remote_fence_i(1, NO_HART) == SBI_ERR_INVALID_PARAM, "a fence for a hart that isn't there is refused");
}

static void check_hsm(bool strict)
{
    uint64_t start = (uintptr_t)secondary_start;
    struct sbi_result self = sbi_hart_status(machine.boot_hart);
    check(self.error == SBI_SUCCESS && self.value == SBI_HART_STARTED, "this hart is started");
    check_error(sbi_hart_status(NO_HART), SBI_ERR_INVALID_PARAM, "a hart that isn't there has no status");
    check(sbi_hart_start(NO_HART, start, 0) == SBI_ERR_INVALID_PARAM, "a hart that isn't there can't be started");
    check(sbi_hart_start(machine.boot_hart, start, 0) == SBI_ERR_ALREADY_AVAILABLE, "a started hart can't be started");
    for (unsigned i = 0; i < machine.hart_count; i++) {
        uint64_t id = machine.harts[i].id;
        if (id == machine.boot_hart)
            continue;
        struct sbi_result other = sbi_hart_status(id);
        check(other.error == SBI_SUCCESS && other.value == SBI_HART_STOPPED, "every other hart is stopped");
        if (strict)
            check(sbi_hart_start(id, NO_ADDRESS, 0) == SBI_ERR_INVALID_ADDRESS, "a hart can't be started at an invalid address");
    }
}

/* Reserved types, and those of a platform that has none (which OpenSBI doesn't support). */
static void check_suspend(bool strict)
{
    static const uint64_t types[] = { 1, 5, 0x0fffffff, 0x80000001, 0x10000000, 0x90000000 };
    for (unsigned i = 0; i < (strict ? 6 : 4); i++)
        check_error(sbi_call(SBI_HSM, HSM_SUSPEND, types[i], (uintptr_t)secondary_start, 0), SBI_ERR_INVALID_PARAM,
                    "a type of suspension that isn't there is refused");
}

/* Legacy calls answer in a0 alone, and don't look at a6. */
static long legacy(long id, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3)
{
    struct sbi_result result = sbi_call5(id, NO_FUNCTION, a0, a1, a2, a3, 0);
    check(result.value == (long)a1, "a legacy call keeps a1");
    return result.error;
}

static void check_legacy_ipi(const uint64_t *mask, const char *what)
{
    uint64_t before = software_interrupts;
    check(legacy(SBI_LEGACY_SEND_IPI, (uintptr_t)mask, 11, 12, 13) == 0, "a legacy IPI is accepted");
    check(wait_for_count(&software_interrupts, before + 1, ARRIVES_MS), what);
}

/* A hart mask that the caller itself couldn't load: it gets that fault, at its call, and nobody gets an IPI. */
static void check_legacy_fault(long id, uint64_t mask, uint64_t cause)
{
    uint64_t before = software_interrupts;
    fault.cause = 0;
    check(legacy(id, mask, 11, 12, 13) == (long)mask, "a legacy call without a hart mask answers nothing");
    check(fault.cause == cause && fault.value == mask && fault.instruction == ECALL, "a hart mask that can't be loaded is the caller's fault");
    if (fault.cause != cause)
        print("  scause is %lu, should be %lu\n", fault.cause, cause);
    sleep_us(1000);
    check(software_interrupts == before, "nobody is sent an IPI then");
}

/* A hart mask is where the caller's own translation has it. */
static void check_legacy_translation(const uint64_t *mask)
{
    static uint64_t root[512] __attribute__((aligned(4096)));
    uint64_t of_memory = machine.memory_base / GIB, alias = of_memory + 1, nothing = of_memory + 2;
    for (uint64_t gib = 0; gib <= of_memory; gib++)
        root[gib] = gib * GIB >> 12 << 10 | PTE_ALL;
    root[alias] = root[of_memory];
    csr_write(satp, SATP_SV39 | (uintptr_t)root >> 12);
    __asm__ volatile("sfence.vma" ::: "memory");
    check_legacy_ipi((const uint64_t *)((uintptr_t)mask + GIB), "a hart mask is read through the caller's translation");
    check_legacy_fault(SBI_LEGACY_SEND_IPI, nothing * GIB, LOAD_PAGE_FAULT);
    check_legacy_fault(SBI_LEGACY_VMA, nothing * GIB + 8, LOAD_PAGE_FAULT);
    csr_write(satp, 0);
    __asm__ volatile("sfence.vma" ::: "memory");
}

static void check_legacy(bool strict)
{
    static const char text[] = "written by legacy calls\n";
    static uint64_t self, none = 0, all = UINT64_MAX;
    self = 1ul << machine.boot_hart;
    for (long id = SBI_LEGACY_SET_TIMER; id <= SBI_LEGACY_SHUTDOWN; id++)
        check(sbi_probe(id), "each legacy call is there");
    check_error(sbi_call(SBI_LEGACY_SHUTDOWN + 1, 0, 0, 0, 0), SBI_ERR_NOT_SUPPORTED, "the number behind them is nobody's");

    for (const char *c = text; *c; c++)
        check(legacy(SBI_LEGACY_PUTCHAR, *c, 11, 12, 13) == 0, "a character is written");
    check(legacy(SBI_LEGACY_GETCHAR, 10, 11, 12, 13) == -1, "where nothing was typed, -1 is read");

    uint64_t deadline = read_time() + us_to_ticks(2000), end = deadline + us_to_ticks(ARRIVES_MS * 1000);
    check(legacy(SBI_LEGACY_SET_TIMER, deadline, 11, 12, 13) == 0, "a legacy timer is accepted");
    while (!(csr_read(sip) & 1ul << IRQ_TIMER) && read_time() < end)
        ;
    check(read_time() >= deadline && read_time() < end, "its interrupt comes, and not before its deadline");
    legacy(SBI_LEGACY_SET_TIMER, NEVER, 11, 12, 13);
    check(!(csr_read(sip) & 1ul << IRQ_TIMER), "a later deadline takes it back");

    check_legacy_ipi(&self, "a legacy IPI arrives");
    check_legacy_ipi(NULL, "one to all harts (no mask) arrives");
    check_legacy_ipi(&all, "harts that aren't there do no harm");
    check_legacy_translation(&self);
    check_legacy_fault(SBI_LEGACY_SEND_IPI, machine.memory_base + machine.memory_size, LOAD_ACCESS_FAULT);
    legacy(SBI_LEGACY_SEND_IPI, (uintptr_t)&none, 11, 12, 13);
    sleep_us(1000);
    uint64_t before = software_interrupts;
    csr_clear(sie, 1ul << IRQ_SOFTWARE);
    legacy(SBI_LEGACY_SEND_IPI, (uintptr_t)&self, 11, 12, 13);
    long pending = legacy(SBI_LEGACY_CLEAR_IPI, 10, 11, 12, 13);
    check(strict ? pending > 0 : pending >= 0, "an IPI that is cleared was there");
    check(legacy(SBI_LEGACY_CLEAR_IPI, 10, 11, 12, 13) == 0, "none is there then");
    csr_set(sie, 1ul << IRQ_SOFTWARE);
    sleep_us(1000);
    check(software_interrupts == before, "an IPI that was cleared doesn't arrive, nor does one to nobody");

    uint64_t page = machine.memory_base;
    check(legacy(SBI_LEGACY_FENCE_I, (uintptr_t)&self, 11, 12, 13) == 0, "legacy remote_fence_i is accepted");
    check(legacy(SBI_LEGACY_FENCE_I, 0, 11, 12, 13) == 0, "for all harts too");
    check(legacy(SBI_LEGACY_VMA, (uintptr_t)&self, page, 4096, 13) == 0, "legacy remote_sfence_vma is accepted");
    check(legacy(SBI_LEGACY_VMA, (uintptr_t)&all, 0, UINT64_MAX, 13) == 0, "of all too");
    check(legacy(SBI_LEGACY_VMA_ASID, (uintptr_t)&self, page, 4096, 1) == 0, "legacy remote_sfence_vma_asid is accepted");
}

static void check_srst(void)
{
    check_error(sbi_call(SBI_SRST, SBI_SRST_RESET, 3, SBI_REASON_NONE, 0), SBI_ERR_INVALID_PARAM, "a reserved reset type is refused");
    check_error(sbi_call(SBI_SRST, SBI_SRST_RESET, SBI_RESET_SHUTDOWN, 2, 0), SBI_ERR_INVALID_PARAM,
                "a reserved reset reason is refused");
}

static void check_dbcn(bool strict)
{
    static const char text[] = "written by DBCN\n";
    static char buffer[8];
    const char *left = text;
    while (*left) {
        struct sbi_result written = sbi_call(SBI_DBCN, SBI_DBCN_WRITE, sizeof text - 1 - (left - text), (uintptr_t)left, 0);
        bool fits = written.error == SBI_SUCCESS && written.value > 0 && written.value <= (long)(sizeof text - 1 - (left - text));
        check(fits, "DBCN writes some of the text, and not more than there is");
        if (!fits)
            break;
        left += written.value;
    }
    check_error(sbi_call(SBI_DBCN, SBI_DBCN_WRITE_BYTE, '\n', 0, 0), SBI_SUCCESS, "DBCN writes a byte");
    struct sbi_result got = sbi_call(SBI_DBCN, SBI_DBCN_READ, sizeof buffer, (uintptr_t)buffer, 0);
    check(got.error == SBI_SUCCESS && got.value >= 0 && got.value <= (long)sizeof buffer, "DBCN reads without waiting");
    check(sbi_call(SBI_DBCN, SBI_DBCN_WRITE, 8, 0, 1).error != SBI_SUCCESS, "DBCN refuses to write from beyond the address space");
    check(sbi_call(SBI_DBCN, SBI_DBCN_READ, 8, 0, 1).error != SBI_SUCCESS, "DBCN refuses to read to beyond the address space");
    if (strict) {
        uint64_t end = machine.memory_base + machine.memory_size;
        check_error(sbi_call(SBI_DBCN, SBI_DBCN_WRITE, 16, end - 8, 0), SBI_ERR_INVALID_PARAM,
                    "DBCN refuses to write from beyond the memory");
        check_error(sbi_call(SBI_DBCN, SBI_DBCN_READ, 16, end - 8, 0), SBI_ERR_INVALID_PARAM, "DBCN refuses to read to beyond the memory");
        check_error(sbi_call(SBI_DBCN, SBI_DBCN_WRITE, UINT64_MAX, machine.memory_base, 0), SBI_ERR_INVALID_PARAM,
                    "DBCN refuses a length that wraps around");
    }
}

bool guest_main(void)
{
    bool strict = arg_number("strict", 0, 0, 1);
    args_finish();
    on_interrupt(IRQ_SOFTWARE, software);
    csr_write(sie, 1ul << IRQ_SOFTWARE);

    check_base();
    check_registers();
    check_timer(true);
    if (machine.has_sstc)
        check_timer(false);
    check_ipi(strict);
    check_rfence(strict);
    check_hsm(strict);
    check_suspend(strict);
    check_legacy(strict);
    check_srst();
    check_dbcn(strict);

    print("@result {\"job\":\"sbi\",\"checks\":%u,\"failures\":%u,\"ok\":%s}\n", checks, failures, failures == 0 ? "true" : "false");
    return failures == 0;
}
