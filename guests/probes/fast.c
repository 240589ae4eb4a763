/* Does a privileged instruction do the same each time? A hypervisor that carries it out in software may put something else in its place when it has met it often, and then go a shorter way
 * with it. So each that a kernel executes on the registers of its traps is executed again and again, with each general register as its source and as its target: on sstatus, sscratch, sepc, scause
 * and stval, and SRET, to this kernel and to a program that calls it at once. All registers are checked behind each, and what the specification says of the others.
 * Likewise stimecmp and sip, which say whether interrupts are pending.
 * In some steps one is, a software interrupt or the timer's: it comes exactly when the instruction lets it. Between them the timer interrupts a loop of the kernel, at the handler or at the timer's
 * place in a table, or waits until interrupts are on again, and the kernel interrupts itself likewise; and it is looked at whether sstatus.SUM and FS do what they say: a page of programs is there or isn't,
 * and floating-point registers keep what they had. And at MRET, which is illegal. */
#include "args.h"
#include "console.h"
#include "csr.h"
#include "machine.h"
#include "start.h"
#include "trap.h"
#include "xorshift.h"

#define PAGE         4096ul
#define SATP_SV39    (8ul << 60)
#define GIB          (1ul << 30)
#define PROGRAM      GIB /* where programs see their page */
#define SSTATUS_SUM  (1ul << 18)
#define SSTATUS_UXL  (2ul << 32)
#define SSTATUS_SD   (1ul << 63)
#define RESERVED     (1ul << 0 | 1ul << 2 | 1ul << 3 | 1ul << 4 | 1ul << 7 | 1ul << 11 | 1ul << 12 | 1ul << 17 | 1ul << 21 | 1ul << 22) /* of sstatus: they stay 0 */
#define SOFTWARE     (1ul << IRQ_SOFTWARE)
#define TIMER_BIT    (1ul << IRQ_TIMER)
#define CALL_OF_USER 8
#define ILLEGAL      2
#define SRET         0x10200073
#define MRET         0x30200073
#define ECALL        0x00000073
#define EBREAK       0x00100073
#define PLACES       3584 /* instructions, each with the jump behind it, in pages without data */

enum { V = 1, R = 2, W = 4, X = 8, U = 16, A = 64, D = 128 };
enum csr { STATUS, SCRATCH, PC, CAUSE, VALUE, TIMER, PENDING, CSRS }; /* of PENDING the model has SSIP alone */
enum { WRITE = 1, SET = 2, CLEAR = 3, NUMBER = 4 };

/* Known to fast_ways.S. */
struct registers {
    uint64_t x[32];
};

typedef void way(struct registers *registers, const void *code);
way way_0, way_1, way_2;
extern const uint8_t arrived_0[], arrived_1[], arrived_2[];

static const struct {
    way *go;
    const uint8_t *arrived;
    unsigned pointer, place;
} ways[] = {{way_0, arrived_0, 31, 30}, {way_1, arrived_1, 29, 28}, {way_2, arrived_2, 27, 26}};

struct instruction {
    uint8_t csr, operation, source, target, way; /* csr CSRS: it is SRET */
};

static struct instruction instructions[PLACES];
static unsigned count;
static uint32_t code[PLACES][2] __attribute__((aligned(PAGE)));
static uint64_t root[512] __attribute__((aligned(PAGE))), middle[512] __attribute__((aligned(PAGE))), last[512] __attribute__((aligned(PAGE)));
static uint32_t program[PAGE / 4] __attribute__((aligned(PAGE)));

static uint64_t seed, changeable;
static uint64_t csrs[CSRS]; /* what they are, by the specification */
static bool strict, has_timer;
static volatile bool may_fault, faulted;
static uint64_t steps, interrupts, calls, faults, ticks;

static uint64_t below(uint64_t n) { return (xorshift(&seed) >> 11) % n; }

#define CHECK(condition, ...)                                                                                                                                     \
    do {                                                                                                                                                          \
        if (!(condition)) {                                                                                                                                       \
            csr_write(stvec, trap_entry);                                                                                                                         \
            print("@result {\"job\":\"fast\",\"ok\":false}\n");                                                                                                   \
            fail(__VA_ARGS__);                                                                                                                                    \
        }                                                                                                                                                         \
    } while (0)

extern const uint8_t trap_entry[];

void handle_exception(struct trap_frame *frame, uint64_t scause)
{
    if (!may_fault || scause != 13)
        report_trap(frame, scause);
    faulted = true;
    frame->sepc += 4;
}

static uint64_t with_sd(uint64_t status)
{
    bool is_dirty = (status & SSTATUS_FS) == SSTATUS_FS || (status & SSTATUS_VS) == SSTATUS_VS;
    return (status & ~SSTATUS_SD) | (is_dirty ? SSTATUS_SD : 0);
}

static uint64_t read_timer(void) { return has_timer ? csr_read(stimecmp) : csrs[TIMER]; }

static uint64_t read_csr(enum csr csr)
{
    /* No time that is written comes while this runs: it is 0, or far away. */
    return csr == PENDING ? csrs[PENDING] | (csrs[TIMER] == 0 ? TIMER_BIT : 0) : csrs[csr];
}

static void check_csrs(const char *when)
{
    uint64_t found[CSRS] = {csr_read(sstatus), csr_read(sscratch), csr_read(sepc), csr_read(scause), csr_read(stval), read_timer(), csr_read(sip)};
    for (unsigned i = 0; i < CSRS; i++)
        CHECK(found[i] == read_csr(i), "%s: register %u is 0x%lx, not 0x%lx", when, i, found[i], read_csr(i));
}

/* What the register becomes by a write. */
static uint64_t written(enum csr csr, uint64_t value)
{
    switch (csr) {
    case STATUS: return with_sd((value & changeable) | SSTATUS_UXL);
    case PC:     return value & ~1ul;
    case PENDING: return value & SOFTWARE;
    default:     return value;
    }
}

/* A trap into the kernel. */
static void trap(uint64_t cause, uint64_t pc, bool from_kernel)
{
    uint64_t status = csrs[STATUS] & ~(SSTATUS_SIE | SSTATUS_SPIE | SSTATUS_SPP);
    csrs[STATUS] = status | (csrs[STATUS] & SSTATUS_SIE) << 4 | (from_kernel ? SSTATUS_SPP : 0);
    csrs[PC] = pc;
    csrs[CAUSE] = cause;
    csrs[VALUE] = 0;
}

/* A value for an instruction to write. */
static uint64_t operand(const struct instruction *it)
{
    uint64_t value = below(3) ? xorshift(&seed) : below(2) ? 0 : -1ul;
    if (it->csr == STATUS) {
        value &= changeable | RESERVED;
        if (below(2))
            value &= xorshift(&seed);
        if (it->operation == WRITE)
            value |= SSTATUS_UXL;
    }
    if (it->csr == TIMER && value != 0)
        value |= 1ul << 62;
    if (it->csr == PENDING && !strict)
        value &= ~4ul; /* QEMU 10.0 takes it for SSIP, of a guest with H */
    if (it->csr == PC && !strict)
        value &= ~1ul; /* QEMU 10.0 keeps it */
    return value;
}

/* Executes the instruction with this number once. */
static void step(unsigned number)
{
    const struct instruction *it = &instructions[number];
    uintptr_t at = (uintptr_t)code[number];
    uint64_t pending = below(4) ? 0 : has_timer && below(2) ? TIMER_BIT : SOFTWARE;
    if (csrs[STATUS] & SSTATUS_SIE && pending) {
        csr_clear(sstatus, SSTATUS_SIE);
        csrs[STATUS] &= ~SSTATUS_SIE;
    }
    if (pending == TIMER_BIT)
        csrs[TIMER] = 0;
    csrs[PENDING] |= pending & SOFTWARE;
    bool to_kernel = true;
    if (it->csr == CSRS) {
        to_kernel = below(2);
        csrs[PC] = to_kernel ? at + 4 : PROGRAM;
        csr_write(sepc, csrs[PC]);
        csrs[STATUS] = (csrs[STATUS] & ~SSTATUS_SPP) | (to_kernel ? SSTATUS_SPP : 0);
        csr_write(sstatus, csrs[STATUS]);
    }
    struct registers before, after;
    for (unsigned i = 0; i < 32; i++)
        before.x[i] = xorshift(&seed);
    before.x[0] = 0;
    if (it->source && !(it->operation & NUMBER))
        before.x[it->source] = operand(it);
    before.x[ways[it->way].pointer] = (uintptr_t)&after;
    before.x[ways[it->way].place] = at;
    after = before;

    uint64_t goes_on = at + 4;
    if (it->csr == CSRS) {
        uint64_t status = csrs[STATUS] & ~(SSTATUS_SIE | SSTATUS_SPP);
        goes_on = csrs[PC];
        csrs[STATUS] = status | (csrs[STATUS] & SSTATUS_SPIE) >> 4 | SSTATUS_SPIE;
    } else {
        uint64_t old = read_csr(it->csr), value = it->operation & NUMBER ? it->source : before.x[it->source];
        unsigned operation = it->operation & 3;
        if (operation == WRITE || it->source)
            csrs[it->csr] = written(it->csr, operation == WRITE ? value : operation == SET ? old | value : old & ~value);
        if (it->target)
            before.x[it->target] = old;
    }
    bool interrupted = pending && (!to_kernel || csrs[STATUS] & SSTATUS_SIE);
    if (interrupted)
        trap(SCAUSE_INTERRUPT | (pending == SOFTWARE ? IRQ_SOFTWARE : IRQ_TIMER), goes_on, to_kernel);
    else if (!to_kernel)
        trap(CALL_OF_USER, PROGRAM, false);

    csr_write(stvec, ways[it->way].arrived);
    if (pending) {
        if (pending == SOFTWARE)
            csr_set(sip, SOFTWARE);
        else
            csr_write(stimecmp, 0ul);
        csr_write(sie, pending);
    }
    ways[it->way].go(&after, code[number]);
    if (pending) {
        csr_write(sie, 0);
        if (pending == SOFTWARE) {
            csr_clear(sip, SOFTWARE);
            csrs[PENDING] = 0;
        }
    }
    csr_write(stvec, trap_entry);
    for (unsigned i = 1; i < 32; i++)
        CHECK(after.x[i] == before.x[i], "0x%x: x%u is 0x%lx, not 0x%lx", code[number][0], i, after.x[i], before.x[i]);
    if (pending || !to_kernel || below(4) == 0)
        check_csrs("behind a step");
    steps++;
    interrupts += interrupted;
    calls += !interrupted && !to_kernel;
}

/* The page of programs is there if SUM says so. */
static void look_at_program(void)
{
    uint32_t found = 0;
    may_fault = true;
    faulted = false;
    __asm__ volatile(".option push\n.option norvc\nlw %0, 0(%1)\n.option pop" : "+r"(found) : "r"(PROGRAM) : "memory");
    may_fault = false;
    faults += faulted;
    CHECK(faulted == !(csrs[STATUS] & SSTATUS_SUM), "SUM is %u, and the page of programs %s there", (csrs[STATUS] & SSTATUS_SUM) != 0, faulted ? "isn't" : "is");
    CHECK(faulted || found == ECALL, "the program has 0x%x", found);
    /* A trap leaves traces. */
    csrs[STATUS] = csr_read(sstatus);
    csrs[PC] = csr_read(sepc);
    csrs[CAUSE] = csr_read(scause);
    csrs[VALUE] = csr_read(stval);
}

static uint64_t floats[4];

/* Registers keep what they have as long as nobody writes them, also while the unit is off; and who writes one has sstatus say so. */
static void look_at_floats(void)
{
    bool was_off = (csrs[STATUS] & SSTATUS_FS) == 0;
    if (was_off) {
        csr_set(sstatus, SSTATUS_FS_INITIAL);
        csrs[STATUS] = with_sd(csrs[STATUS] | SSTATUS_FS_INITIAL);
    }
    uint64_t found[4];
    __asm__ volatile("fmv.x.d %0, f0\nfmv.x.d %1, f9\nfmv.x.d %2, f18\nfmv.x.d %3, f31" : "=r"(found[0]), "=r"(found[1]), "=r"(found[2]), "=r"(found[3]));
    for (unsigned i = 0; i < 4; i++)
        CHECK(found[i] == floats[i], "the floating-point register is 0x%lx, not 0x%lx", found[i], floats[i]);
    if (below(2)) {
        for (unsigned i = 0; i < 4; i++)
            floats[i] = xorshift(&seed);
        __asm__ volatile("fmv.d.x f0, %0\nfmv.d.x f9, %1\nfmv.d.x f18, %2\nfmv.d.x f31, %3" ::"r"(floats[0]), "r"(floats[1]), "r"(floats[2]), "r"(floats[3]));
        csrs[STATUS] = with_sd(csrs[STATUS] | SSTATUS_FS);
    }
}

static void add(struct instruction it)
{
    static const uint16_t numbers[CSRS] = {0x100, 0x140, 0x141, 0x142, 0x143, 0x14d, 0x144};
    CHECK(count < PLACES, "too many instructions");
    bool has_source = it.csr != CSRS && !(it.operation & NUMBER);
    while (it.target == ways[it.way].pointer || it.target == ways[it.way].place ||
           (has_source && (it.source == ways[it.way].pointer || it.source == ways[it.way].place)))
        it.way++;
    instructions[count] = it;
    uint32_t *at = code[count++];
    at[0] = it.csr == CSRS ? SRET : (uint32_t)numbers[it.csr] << 20 | it.source << 15 | it.operation << 12 | it.target << 7 | 0x73;
    int64_t offset = (intptr_t)ways[it.way].arrived - (intptr_t)&at[1];
    CHECK(offset >= -(1l << 20) && offset < 1l << 20, "the jump is too far");
    uint32_t bits = offset;
    at[1] = (bits >> 20 & 1) << 31 | (bits >> 1 & 0x3ff) << 21 | (bits >> 11 & 1) << 20 | (bits >> 12 & 0xff) << 12 | 0x6f;
}

static void add_all(void)
{
    static const uint8_t operations[] = {WRITE, SET, CLEAR, NUMBER | WRITE, NUMBER | SET, NUMBER | CLEAR};
    for (unsigned csr = 0; csr < CSRS; csr++)
        for (unsigned i = 0; i < sizeof operations; i++)
            for (unsigned n = 0; n < 32; n++) {
                uint8_t operation = operations[i];
                /* Without bit 0 of sepc. */
                uint8_t mask = operation & NUMBER && csr == PC && !strict ? 0x1e : 0x1f;
                if (operation & NUMBER && csr == PENDING && !strict)
                    mask = 0x1b;
                /* A write of a number to sstatus would make UXL 0. */
                if (csr == STATUS && operation == (NUMBER | WRITE))
                    continue;
                if (csr == TIMER && !(operation == WRITE && has_timer))
                    continue;
                add((struct instruction){csr, operation, n & mask, below(32), 0});
                add((struct instruction){csr, operation, below(32) & mask, n, 0});
                add((struct instruction){csr, operation, n & mask, n, 0});
            }
    for (unsigned n = 0; n < 32; n++)
        add((struct instruction){CSRS, 0, 0, 0, n % 3});
}

static bool clears_uxl(const struct instruction *it) { return it->csr == STATUS && it->operation == WRITE && it->source == 0; }

static void translate(void)
{
    program[0] = ECALL;
    program[1] = EBREAK;
    last[0] = (uintptr_t)program / PAGE << 10 | V | R | W | X | U | A | D;
    middle[0] = (uintptr_t)last / PAGE << 10 | V;
    root[PROGRAM / GIB] = (uintptr_t)middle / PAGE << 10 | V;
    uint64_t here = machine.memory_base / GIB;
    root[here] = here * GIB / PAGE << 10 | V | R | W | X | A | D;
    csr_write(satp, SATP_SV39 | (uintptr_t)root / PAGE);
    __asm__ volatile("sfence.vma\nfence.i" ::: "memory");
}

/* MRET isn't a kernel's, and traps as itself, whatever was executed before it. (QEMU 10.0 says in stval what it has said before, of the bare hart and of one with H; who believes that would
 * execute another instruction in its place.) */
static void look_at_mret(void)
{
    uint64_t first = xorshift(&seed), second = xorshift(&seed), at, pc, cause, value, scratch;
    csr_write(scause, 0);
    __asm__ volatile("la t0, 2f\n csrw stvec, t0\n la %[at], 1f\n mv t0, %[first]\n mv t1, %[second]\n"
                     "csrw sscratch, t0\n mv t0, t1\n"
                     "1: mret\n .balign 4\n 2: csrr %[pc], sepc\n csrr %[cause], scause\n csrr %[value], stval\n csrr %[scratch], sscratch"
                     : [at] "=&r"(at), [pc] "=&r"(pc), [cause] "=&r"(cause), [value] "=&r"(value), [scratch] "=&r"(scratch)
                     : [first] "r"(first), [second] "r"(second)
                     : "t0", "t1", "memory");
    csr_write(stvec, trap_entry);
    CHECK(cause == ILLEGAL && pc == at, "MRET at 0x%lx: scause is %lu, sepc 0x%lx", at, cause, pc);
    CHECK(scratch == first, "MRET: sscratch is 0x%lx, not 0x%lx", scratch, first);
    CHECK(value == MRET || !strict, "MRET: stval is 0x%lx", value);
    csrs[SCRATCH] = scratch;
    csrs[PC] = pc;
    csrs[CAUSE] = cause;
    csrs[VALUE] = value;
    csrs[STATUS] = csr_read(sstatus);
}

/* The timer interrupts a loop of the kernel at once, at the handler or at its place in the table; or it comes while interrupts are off, and interrupts when they are on. */
static void look_at_timer(void)
{
    bool is_table = below(2), waits = below(2);
    uint64_t status = csrs[STATUS] & ~SSTATUS_SIE, enable = SSTATUS_SIE, first, last, pc, cause, value, after, place;
    csr_write(sstatus, status);
    csr_write(sie, TIMER_BIT);
    csr_write(stimecmp, read_time() + below(100));
    if (waits) {
        while (!(csr_read(sip) & TIMER_BIT))
            ;
        CHECK(csr_read(sstatus) == status, "interrupts are off, and one has come");
    }
    __asm__ volatile(".option push\n.option norvc\n"
                     "la t0, 2f\n or t0, t0, %[mode]\n csrw stvec, t0\n la %[first], 4f\n la %[last], 1f\n"
                     "4: csrs sstatus, %[enable]\n 1: j 1b\n"
                     ".option pop\n .balign 4\n .option push\n .option norvc\n 2: li %[place], 0\n j 3f\n nop\n nop\n nop\n li %[place], 1\n"
                     "3: csrr %[pc], sepc\n csrr %[cause], scause\n csrr %[value], stval\n csrr %[after], sstatus\n"
                     ".option pop"
                     : [first] "=&r"(first), [last] "=&r"(last), [pc] "=&r"(pc), [cause] "=&r"(cause), [value] "=&r"(value), [after] "=&r"(after), [place] "=&r"(place)
                     : [mode] "r"((uint64_t)is_table), [enable] "r"(enable)
                     : "t0", "memory");
    csr_write(stvec, trap_entry);
    csr_write(sie, 0);
    csr_write(stimecmp, -1ul);
    CHECK(cause == (SCAUSE_INTERRUPT | IRQ_TIMER) && value == 0, "the timer interrupts a loop: scause is 0x%lx, stval 0x%lx", cause, value);
    CHECK(pc == last || pc == first, "the timer interrupts a loop at 0x%lx, which is at 0x%lx", pc, last);
    CHECK(place == is_table, "the timer's interrupt is at place %lu", place);
    CHECK(after == (status | SSTATUS_SPIE | SSTATUS_SPP), "sstatus was 0x%lx when the timer came, and is 0x%lx", status, after);
    csrs[STATUS] = after;
    csrs[PC] = pc;
    csrs[CAUSE] = cause;
    csrs[VALUE] = value;
    csrs[TIMER] = -1ul;
    ticks++;
}

/* The kernel interrupts itself: behind the instruction that does it, or, as interrupts are off then, behind the one that switches them on. */
#define INTERRUPT_ONESELF(instruction)                                                                                                                            \
    __asm__ volatile(".option push\n.option norvc\n"                                                                                                              \
                     "la t0, 2f\n or t0, t0, %[mode]\n csrw stvec, t0\n la %[first], 1f\n la %[second], 4f\n li t0, 2\n csrs sstatus, %[before]\n"                \
                     instruction "\n 1: csrs sstatus, %[enable]\n 4: j 4b\n"                                                                                      \
                     ".option pop\n .balign 4\n .option push\n .option norvc\n 2: j 5f\n li %[place], 1\n j 3f\n 5: li %[place], 0\n"                                                                          \
                     "3: csrr %[pc], sepc\n csrr %[cause], scause\n csrr %[value], stval\n csrr %[after], sstatus\n"                                              \
                     ".option pop"                                                                                                                                \
                     : [first] "=&r"(first), [second] "=&r"(second), [pc] "=&r"(pc), [cause] "=&r"(cause), [value] "=&r"(value), [after] "=&r"(after),            \
                       [place] "=&r"(place)                                                                                                                       \
                     : [mode] "r"((uint64_t)is_table), [before] "r"(waits ? 0 : SSTATUS_SIE), [enable] "r"(SSTATUS_SIE)                                           \
                     : "t0", "memory")

static void look_at_software(void)
{
    bool is_table = below(2), waits = below(2);
    uint64_t status = csrs[STATUS] & ~SSTATUS_SIE, first, second, pc, cause, value, after, place;
    csr_clear(sip, SOFTWARE);
    csr_write(sstatus, status);
    csr_write(sie, SOFTWARE);
    if (below(2))
        INTERRUPT_ONESELF("csrs sip, t0");
    else
        INTERRUPT_ONESELF("csrsi sip, 2");
    csr_write(stvec, trap_entry);
    csr_write(sie, 0);
    csr_clear(sip, SOFTWARE);
    CHECK(cause == (SCAUSE_INTERRUPT | IRQ_SOFTWARE) && value == 0, "the kernel interrupts itself: scause is 0x%lx, stval 0x%lx", cause, value);
    CHECK(pc == (waits ? second : first), "the kernel interrupts itself: sepc is 0x%lx, not 0x%lx", pc, waits ? second : first);
    CHECK(place == is_table, "the software interrupt is at place %lu", place);
    CHECK(after == (status | SSTATUS_SPIE | SSTATUS_SPP), "sstatus was 0x%lx when the kernel interrupted itself, and is 0x%lx", status, after);
    csrs[STATUS] = after;
    csrs[PC] = pc;
    csrs[CAUSE] = cause;
    csrs[VALUE] = value;
    csrs[PENDING] = 0;
}

bool guest_main(void)
{
    seed = arg_number("seed", 1, 1, UINT64_MAX);
    uint64_t n = arg_number("n", 1, 1, 1000);
    uint64_t times = arg_number("times", 6, 1, 1000);
    strict = arg_number("strict", 0, 0, 1);
    uint64_t parts = arg_number("parts", 1, 1, 16), part = arg_number("part", 0, 0, parts - 1);
    args_finish();
    changeable = SSTATUS_SIE | SSTATUS_SPIE | SSTATUS_SPP | SSTATUS_FS | SSTATUS_SUM | (machine_has("v") ? SSTATUS_VS : 0);
    csr_write(sie, 0);
    has_timer = machine_has("sstc");
    csrs[TIMER] = -1ul;
    if (has_timer)
        csr_write(stimecmp, -1ul);
    translate();
    add_all();
    __asm__ volatile("fence.i" ::: "memory");

    csrs[STATUS] = written(STATUS, SSTATUS_FS | SSTATUS_UXL);
    csr_write(sstatus, csrs[STATUS]);
    csr_write(sscratch, csrs[SCRATCH]);
    csr_write(sepc, csrs[PC]);
    csr_write(scause, csrs[CAUSE]);
    csr_write(stval, csrs[VALUE]);
    __asm__ volatile("fmv.d.x f0, zero\nfmv.d.x f9, zero\nfmv.d.x f18, zero\nfmv.d.x f31, zero");
    for (uint64_t round = 0; round < n; round++)
        for (unsigned i = part; i < count; i += parts)
            for (uint64_t time = 0; time < times; time++) {
                if (clears_uxl(&instructions[i]) && !strict)
                    break; /* QEMU 10.0 lets it be written */
                step(i);
                if (below(4) == 0)
                    look_at_program();
                if (below(4) == 0)
                    look_at_floats();
                if (below(16) == 0)
                    look_at_mret();
                if (has_timer && below(16) == 0)
                    look_at_timer();
                if (below(16) == 0)
                    look_at_software();
            }
    check_csrs("at the end");
    csr_clear(sstatus, SSTATUS_SIE);
    print("@result {\"job\":\"fast\",\"instructions\":%u,\"steps\":%lu,\"interrupts\":%lu,\"calls\":%lu,\"faults\":%lu,\"ticks\":%lu,\"ok\":true}\n", count, steps, interrupts, calls, faults, ticks);
    return true;
}
