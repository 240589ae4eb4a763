#include "run.h"
#include <string.h>
#include "context.h"
#include "csr.h"
#include "emit.h"
#include "groups.h"
#include "machine.h"
#include "record.h"
#include "spaces.h"
#include "timer.h"
#include "xorshift.h"

#define SSTATUS_SUM (1ul << 18)
#define SSTATUS_MXR (1ul << 19)
#define MOST_TRAPS  300
#define NOT_CODE    UINT64_MAX
#define RA          1
#define TP          4
#define CBO         0x200f
#define MRET        0x30200073

struct context context __attribute__((aligned(PAGE)));
static uint64_t numbers;
static unsigned end;

static uint64_t next(void) { return xorshift(&numbers); }

static uint64_t below(uint64_t limit) { return (next() >> 8) % limit; }

/* Which byte of the program is at this address? */
static uint64_t offset_of(uint64_t address)
{
    uint64_t there = address - (uintptr_t)code, user = address - USER_CODE;
    return there < CODE_BYTES ? there : user < CODE_BYTES ? user : NOT_CODE;
}

/* Where a mode finds this byte of the program; seldom where it doesn't. */
static uint64_t address_of(uint64_t offset, bool is_user)
{
    bool is_elsewhere = is_user && context.satp >> 60 != 0;
    if (below(32) == 0)
        is_elsewhere = !is_elsewhere;
    return (is_elsewhere ? USER_CODE : (uintptr_t)code) + offset;
}

static uint64_t any_value(void)
{
    switch (below(5)) {
    case 0: return below(64);
    case 1: return any_page() + below(PAGE);
    case 2: return -below(64);
    default: return next();
    }
}

static void begin(void)
{
    csr_write(sie, 0);
    csr_write(sip, 0);
    timer_set(NEVER);
    spaces_fill(&numbers);
    end = make_program(&numbers);
    record_code(code, end);
    for (unsigned i = 0; i < SPACES * SLOTS; i++)
        record_fact("entry", i / SLOTS, i % SLOTS, *(const uint64_t *)slot_place(i / SLOTS, i % SLOTS));
    __asm__ volatile("fence.i" ::: "memory");
    for (unsigned i = 0; i < 32; i++) {
        context.x[i] = any_value();
        context.f[i] = next();
    }
    context.x[TP] = (uintptr_t)&context;
    context.x[RA] = 0;
    csr_set(sstatus, SSTATUS_FS);
    gate_load_float();
    csr_write(fcsr, below(256));
    csr_write(sscratch, next());
    csr_write(scause, next());
    csr_write(stval, next());
    csr_write(scounteren, below(8) | 2);
    csr_write(senvcfg, 0);
    bool is_user = below(2);
    context.satp = !program_goes_bare() || below(4) ? space_satp(below(SPACES)) : 0;
    context.vector = (uintptr_t)gate_tables[below(TABLES)] + (program_is_vectored() ? below(2) : 0);
    context.status = (is_user ? 0 : SSTATUS_SPP) | below(4) << 13 | (below(2) ? SSTATUS_SUM : 0) | (below(2) ? SSTATUS_MXR : 0) |
                     (below(2) ? SSTATUS_SPIE : 0);
    context.pc = address_of(0, is_user);
    __asm__ volatile("sfence.vma" ::: "memory");
}

/* QEMU 10 leaves stval zero where CBO.INVAL and the like are illegal, and at MRET as it was. */
static bool has_no_value(uint64_t cause)
{
    uint64_t at = offset_of(context.pc);
    if (cause != 2 || at == NOT_CODE)
        return false;
    uint32_t bits = code[at / 2] | (uint32_t)code[at / 2 + 1] << 16;
    return (bits & 0x707f) == CBO || bits == MRET;
}

static void record_trap(uint64_t cause)
{
    record("cause", cause);
    record("pc", context.pc);
    if (has_no_value(cause))
        csr_write(stval, 0);
    record("value", csr_read(stval));
    record("entry", context.entry);
    record("status", context.status);
    record("satp", context.satp);
    record("vector", context.vector);
    record("sip", csr_read(sip));
    record("sie", csr_read(sie));
    record("scratch", csr_read(sscratch));
    record("counteren", csr_read(scounteren));
    record("envcfg", csr_read(senvcfg));
    if (machine.has_sstc)
        record("timecmp", csr_read(CSR_STIMECMP));
    if (context.status & SSTATUS_FS) {
        gate_save_float();
        record("fcsr", csr_read(fcsr));
        record_all("f", context.f, 32);
    }
    static const char *const names[32] = {
        0,     "x1",  "x2",  "x3",  "x4",  "x5",  "x6",  "x7",  "x8",  "x9",  "x10", "x11", "x12", "x13", "x14", "x15",
        "x16", "x17", "x18", "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x29", "x30", "x31",
    };
    for (unsigned i = 1; i < 32; i++)
        record(names[i], context.x[i]);
    record_end();
    uint64_t value = csr_read(stval);
    for (unsigned i = 0; i < SPACES * SLOTS; i++)
        if (context.satp == space_satp(i / SLOTS) && slot_address(i % SLOTS, &(uint64_t){ 1 }) / PAGE == value / PAGE)
            record_fact("found", i / SLOTS, i % SLOTS, *(const uint64_t *)slot_place(i / SLOTS, i % SLOTS));
}

/* An interrupt has been seen: now it is off, in one way or another. */
static void quench(unsigned code)
{
    if (below(2))
        csr_clear(sie, 1ul << code);
    else if (code == IRQ_SOFTWARE)
        csr_clear(sip, 1ul << IRQ_SOFTWARE);
    else
        timer_set(NEVER);
}

/* The byte of the program with which it goes on. NOT_CODE: with none. */
static uint64_t next_offset(uint64_t cause, bool was_user)
{
    bool is_interrupt = cause & SCAUSE_INTERRUPT;
    uint64_t at = offset_of(context.pc);
    if (at == NOT_CODE) /* where it jumped, or returned, to */
        return offset_of(context.x[RA]);
    if (at >= end)
        return NOT_CODE;
    unsigned behind = whole_group_end(at), flags = group_flags(at);
    if (flags & FENCES)
        __asm__ volatile("sfence.vma" ::: "memory");
    if (flags & FENCES_CODE)
        __asm__ volatile("fence.i" ::: "memory");
    if (behind && (!was_user || (flags & WHOLE_FOR_USER && !is_interrupt)))
        return behind;
    bool was_fetched = cause != 0 && cause != 1 && cause != 12;
    if (is_interrupt || !was_fetched)
        return at;
    return at + ((code[at / 2] & 3) == 3 ? 4 : 2);
}

unsigned run_program(uint64_t random)
{
    numbers = random | 1;
    begin();
    unsigned traps = 0;
    while (traps < MOST_TRAPS) {
        gate_enter();
        traps++;
        uint64_t cause = csr_read(scause);
        record_trap(cause);
        bool was_user = !(context.status & SSTATUS_SPP);
        if (cause & SCAUSE_INTERRUPT)
            quench(cause & 63);
        uint64_t at = next_offset(cause, was_user);
        if (at == NOT_CODE || at >= end)
            break;
        bool is_user = was_user ? below(8) != 0 : below(16) == 0;
        if (was_user && !is_user && whole_group_end(at)) /* user mode may have left out its beginning */
            at = whole_group_end(at);
        context.status = (context.status & ~SSTATUS_SPP) | (is_user ? 0 : SSTATUS_SPP);
        context.pc = address_of(at, is_user);
    }
    csr_clear(sie, UINT64_MAX);
    record_all("data", (const uint64_t *)data, DATA_PAGES * PAGE / sizeof(uint64_t));
    record("traps", traps);
    record_end();
    return traps;
}
