/* Is an instruction what was stored, whoever executes it, and whatever others do with its page meanwhile? All harts execute privileged instructions, and breakpoints of their own, at random in one page after
 * the other, as a kernel and as a program, which sees the same pages elsewhere. After a while, in which a hypervisor may have put something else in their places, some of them load what they execute, and
 * store other instructions over it. Each trap must be that of the instruction that is there, and each load must give it. */
#include <stdatomic.h>
#include "args.h"
#include "console.h"
#include "csr.h"
#include "machine.h"
#include "sbi.h"
#include "start.h"
#include "trap.h"
#include "worker.h"
#include "xorshift.h"

#define STACK_WORDS 512
#define PAGE        4096ul
#define LARGE       (2ul << 20)
#define GIB         (1ul << 30)
#define ENTRIES     512
#define PAGES       16 /* each in a large page of its own */
#define SLOTS       (PAGE / sizeof(struct slot))
#define ALIAS       GIB /* where programs see them */
#define HELD        (8ul << 20) /* from the begin of memory, for the program */
#define SATP_SV39   (8ul << 60)
#define ALL_HARTS   UINT64_MAX
#define ILLEGAL     2
#define BREAKPOINT  3
#define JR_T6       0x000f8067u
#define MARKER      0x7e87ul

enum { V = 1, R = 2, W = 4, X = 8, U = 16, A = 64, D = 128 };

struct slot {
    uint32_t instruction, jump;
};

enum kind { READ, WRITE, MASK, RETURN, FENCE, WAIT, LONG_BREAK, SHORT_BREAK, KINDS };
static const uint32_t instructions[KINDS] = {
    [READ] = 0x14002573,       /* csrr a0, sscratch */
    [WRITE] = 0x14059073,      /* csrw sscratch, a1 */
    [MASK] = 0x10017573,       /* csrrci a0, sstatus, 2 */
    [RETURN] = 0x10200073,     /* sret */
    [FENCE] = 0x12000073,      /* sfence.vma */
    [WAIT] = 0x10500073,       /* wfi */
    [LONG_BREAK] = 0x00100073, /* ebreak */
    [SHORT_BREAK] = 0x00019002, /* c.ebreak, c.nop */
};

struct worker {
    struct secondary start;
    uint64_t seed, back, cause, value;
    volatile bool may_trap;
    uint64_t kernel, user, loads, stores, raced;
    uint64_t stack[STACK_WORDS] __attribute__((aligned(16)));
};

static struct worker workers[MAX_HARTS];
static unsigned worker_count;
static uint64_t begin, end, slice, programs;
static atomic_uint done;
static atomic_uint states[PAGES][SLOTS]; /* the kind; above it how often it was changed, which is odd while it is */
static uint64_t root[ENTRIES] __attribute__((aligned(PAGE))), middle[ENTRIES] __attribute__((aligned(PAGE))), lasts[PAGES][ENTRIES] __attribute__((aligned(PAGE)));

#define CHECK(condition, ...) CHECK_OR(print("@result {\"job\":\"text\",\"ok\":false}\n"), condition, __VA_ARGS__)

static uint64_t below(struct worker *me, uint64_t limit) { return (xorshift(&me->seed) >> 11) % limit; }

static struct slot *slots(unsigned page) { return (struct slot *)(machine.memory_base + HELD + page * LARGE); }

static unsigned kind_of(unsigned state) { return state & 0xff; }
static bool is_changing(unsigned state) { return state >> 8 & 1; }

void handle_exception(struct trap_frame *frame, uint64_t scause)
{
    struct worker *me = self();
    if (!me->may_trap)
        report_trap(frame, scause);
    me->may_trap = false;
    me->cause = scause;
    me->value = csr_read(stval);
    frame->sepc = me->back;
    frame->sstatus |= SSTATUS_SPP;
}

/* Executes what is at `at`, as a kernel, or as a program with interrupts off. What a0 is behind it. */
static uint64_t execute(struct worker *me, uint64_t at, bool is_user, uint64_t written)
{
    register uint64_t a0 __asm__("a0") = MARKER;
    register uint64_t a1 __asm__("a1") = written;
    register uint64_t a2 __asm__("a2") = at;
    me->cause = 0;
    me->may_trap = true;
    csr_clear(sstatus, SSTATUS_SPIE);
    if (is_user) {
        csr_clear(sstatus, SSTATUS_SPP);
        csr_write(sepc, at);
        /* Where nothing traps it goes on at 0, where nothing is. */
        __asm__ volatile("la t0, 1f\nsd t0, %3\nli t6, 0\nsret\n1:" : "+r"(a0), "+r"(a1), "+r"(a2), "=m"(me->back) : : "t0", "t6", "memory");
    } else {
        csr_set(sstatus, SSTATUS_SPP);
        csr_write(sepc, at + 4);
        __asm__ volatile("la t6, 1f\nsd t6, %3\njr a2\n1:" : "+r"(a0), "+r"(a1), "+r"(a2), "=m"(me->back) : : "t0", "t6", "memory");
    }
    me->may_trap = false;
    return a0;
}

/* What the kernel has seen of an instruction, whose mark was in sscratch. */
static void check_kernel(struct worker *me, unsigned kind, uint64_t a0, uint64_t mark, uint64_t written, uint64_t at)
{
    uint64_t scratch = csr_read(sscratch);
    uint64_t cause = kind == LONG_BREAK || kind == SHORT_BREAK ? BREAKPOINT : 0;
    CHECK(me->cause == cause, "%x at %lx: cause %lu, not %lu", instructions[kind], at, me->cause, cause);
    CHECK(scratch == (kind == WRITE ? written : mark), "%x at %lx: sscratch is %lx", instructions[kind], at, scratch);
    if (kind == READ)
        CHECK(a0 == mark, "%x at %lx: it read %lx, not %lx", instructions[kind], at, a0, mark);
    else if (kind == MASK)
        CHECK((a0 & (SSTATUS_SPP | SSTATUS_SIE)) == SSTATUS_SPP, "%x at %lx: it read %lx", instructions[kind], at, a0);
    else
        CHECK(a0 == MARKER, "%x at %lx: a0 is %lx", instructions[kind], at, a0);
}

/* What a program has. */
static void check_user(struct worker *me, unsigned kind, uint64_t a0, uint64_t at)
{
    bool is_break = kind == LONG_BREAK || kind == SHORT_BREAK;
    uint64_t value = is_break ? at : instructions[kind];
    CHECK(me->cause == (is_break ? BREAKPOINT : ILLEGAL), "a program has %x at %lx: cause %lu, value %lx", instructions[kind], at, me->cause, me->value);
    /* For a breakpoint QEMU 10.0 says where the page is that it met it in first. */
    bool is_there = is_break ? (me->value ^ value) % PAGE == 0 : me->value == value;
    CHECK(me->value == 0 || is_there, "a program has %x at %lx: value %lx", instructions[kind], at, me->value);
    CHECK(a0 == MARKER, "a program has %x at %lx: a0 is %lx", instructions[kind], at, a0);
}

static void run(struct worker *me, unsigned page, unsigned number)
{
    uint64_t at = (uintptr_t)&slots(page)[number], mark = xorshift(&me->seed), written = xorshift(&me->seed);
    bool is_user = below(me, 4) < programs;
    unsigned state = atomic_load(&states[page][number]);
    if (is_changing(state))
        return;
    if (is_user)
        at += ALIAS - (uintptr_t)slots(0);
    csr_write(sscratch, mark);
    csr_write(sie, is_user ? 0 : 1ul << IRQ_SOFTWARE);
    __asm__ volatile("fence.i" ::: "memory");
    uint64_t a0 = execute(me, at, is_user, written);
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load(&states[page][number]) != state) {
        me->raced++;
        return;
    }
    if (is_user)
        check_user(me, kind_of(state), a0, at);
    else
        check_kernel(me, kind_of(state), a0, mark, written, at);
    me->kernel += !is_user;
    me->user += is_user;
}

static void look(struct worker *me, unsigned page, unsigned number)
{
    unsigned state = atomic_load(&states[page][number]);
    uint32_t found = *(volatile uint32_t *)&slots(page)[number].instruction;
    atomic_thread_fence(memory_order_seq_cst);
    if (is_changing(state) || atomic_load(&states[page][number]) != state)
        return;
    CHECK(found == instructions[kind_of(state)], "a load at %lx gives %x, not %x", (uintptr_t)&slots(page)[number], found, instructions[kind_of(state)]);
    me->loads++;
}

static void change(struct worker *me, unsigned page, unsigned number)
{
    unsigned state = atomic_load(&states[page][number]), kind = below(me, KINDS), changed = (state & ~0xffu) + 0x200;
    if (is_changing(state) || !atomic_compare_exchange_strong(&states[page][number], &state, state + 0x100))
        return;
    *(volatile uint32_t *)&slots(page)[number].instruction = instructions[kind];
    __asm__ volatile("fence rw, rw\nfence.i" ::: "memory");
    CHECK(sbi_remote_fence_i(0, ALL_HARTS) == SBI_SUCCESS, "a remote fence failed");
    atomic_store(&states[page][number], changed | kind);
    me->stores++;
}

static void work(void *argument)
{
    struct worker *me = argument;
    csr_write(satp, SATP_SV39 | (uintptr_t)root / PAGE);
    __asm__ volatile("sfence.vma" ::: "memory");
    /* An interrupt is pending that is enabled, so a wait ends at once; but a program, which can't keep it off, mustn't have it. */
    csr_set(sip, 1ul << IRQ_SOFTWARE);
    for (uint64_t now; (now = read_time()) < end;) {
        unsigned page = (now - begin) / slice % PAGES, number = below(me, SLOTS);
        bool is_late = (now - begin) % slice > slice / 4 * 3;
        switch (is_late ? below(me, 16) : 2) {
        case 0:
            look(me, page, number);
            break;
        case 1:
            change(me, page, number);
            break;
        default:
            run(me, page, number);
        }
    }
    csr_write(satp, 0);
    atomic_fetch_add(&done, 1);
}

static void work_and_stop(void *argument)
{
    work(argument);
    sbi_hart_stop();
    fail("a hart didn't stop");
}

static uint64_t entry(uint64_t target, uint64_t flags) { return target / PAGE << 10 | flags; }

static void prepare(struct worker *me)
{
    root[machine.memory_base / GIB] = entry(machine.memory_base & -GIB, V | R | W | X | A | D);
    root[ALIAS / GIB] = entry((uintptr_t)middle, V);
    for (unsigned page = 0; page < PAGES; page++) {
        middle[page] = entry((uintptr_t)lasts[page], V);
        lasts[page][0] = entry((uintptr_t)slots(page), V | R | X | U | A | D);
        for (unsigned number = 0; number < SLOTS; number++) {
            unsigned kind = below(me, KINDS);
            slots(page)[number] = (struct slot){ instructions[kind], JR_T6 };
            atomic_store(&states[page][number], kind);
        }
    }
    __asm__ volatile("fence.i" ::: "memory");
}

bool guest_main(void)
{
    uint64_t ms = arg_number("ms", 200, 1, 1000000), seed = arg_number("seed", 1, 1, UINT32_MAX), us = arg_number("slice_us", 3000, 100, 1000000);
    programs = arg_number("programs", 1, 0, 4);
    args_finish();
    if (machine.memory_size < HELD + PAGES * LARGE)
        fail("too little memory");
    worker_count = machine.hart_count;
    for (unsigned i = 0; i < worker_count; i++)
        workers[i].seed = seed * 1000003 + i;
    prepare(&workers[0]);
    slice = us_to_ticks(us);
    begin = read_time();
    end = begin + us_to_ticks(ms * 1000);
    for (unsigned i = 1; i < worker_count; i++) {
        workers[i].start = (struct secondary){ workers[i].stack + STACK_WORDS, work_and_stop, &workers[i] };
        start_hart(machine.harts[i].id, &workers[i].start);
    }
    __asm__ volatile("mv tp, %0" ::"r"(&workers[0]));
    work(&workers[0]);
    while (atomic_load(&done) < worker_count)
        pause_hint();
    uint64_t kernel = 0, user = 0, loads = 0, stores = 0, raced = 0;
    for (unsigned i = 0; i < worker_count; i++) {
        kernel += workers[i].kernel;
        user += workers[i].user;
        loads += workers[i].loads;
        stores += workers[i].stores;
        raced += workers[i].raced;
    }
    print("@result {\"job\":\"text\",\"harts\":%u,\"kernel\":%lu,\"user\":%lu,\"loads\":%lu,\"stores\":%lu,\"raced\":%lu,\"ok\":true}\n", worker_count, kernel, user, loads,
          stores, raced);
    return true;
}
