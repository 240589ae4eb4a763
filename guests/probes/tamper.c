/* Can a guest get at what isn't its own by its page tables? All of its harts share one tree of tables. Each at random overwrites an entry of any level with whatever might lead
 * elsewhere (memory of others, devices, tables themselves, large pages, reserved bits), fences, or has others fence, in each way that there is, and loads and stores through what it
 * finds. Nothing may be found but a fault, the guest's own words, or entries. The words are where the hypervisor's image is on the board: who confuses the two addresses reads that.
 * With `watch=1` it is a neighbour, which fills its own memory and looks all the time whether anybody has changed it. */
#include <stdatomic.h>
#include "args.h"
#include "console.h"
#include "csr.h"
#include "machine.h"
#include "sbi.h"
#include "start.h"
#include "timer.h"
#include "trap.h"
#include "worker.h"
#include "xorshift.h"

#define STACK_WORDS 512
#define PAGE        4096ul
#define LARGE       (2ul << 20)
#define GIGABYTE    (1ul << 30)
#define ENTRIES     512
#define HELD        (4ul << 20) /* from the begin of memory to the program: so many bytes hold words that tell whose they are */
#define MIDDLES     2
#define LASTS       4
#define WINDOW      (128ul << 30) /* whose entries of the root are overwritten: MIDDLES and as many more */
#define USED        8             /* entries of each table that are used, so that harts meet */
#define SATP_SV39   (8ul << 60)
#define RFENCE_ASID 2
#define ALL_HARTS   UINT64_MAX
#define OWN         0x0a77ac4eul /* upper half of a word that this guest has written */
#define WATCHED     0x0077a7c4ul
#define NOTHING     (OWN << 32) /* an entry that isn't valid; zeros may be anybody's */

enum { V = 1, R = 2, W = 4, X = 8, U = 16, G = 32, A = 64, D = 128, MARK = 3 << 8 /* for software: on all entries of this program */ };

struct worker {
    struct secondary start;
    uint64_t seed, expected;
    volatile bool may_fault, faulted;
    uint64_t edits, fences, loads, stores, faults;
    uint64_t stack[STACK_WORDS] __attribute__((aligned(16)));
};

static struct worker workers[MAX_HARTS];
static unsigned worker_count;
static uint64_t end;
static atomic_uint done;
static volatile uint64_t root[ENTRIES] __attribute__((aligned(PAGE)));
static volatile uint64_t middles[MIDDLES][ENTRIES] __attribute__((aligned(PAGE)));
static volatile uint64_t lasts[LASTS][ENTRIES] __attribute__((aligned(PAGE)));

#define CHECK(condition, ...) CHECK_OR(print("@result {\"job\":\"tamper\",\"ok\":false}\n"), condition, __VA_ARGS__)

static uint64_t below(struct worker *me, uint64_t limit) { return xorshift(&me->seed) % limit; }

static uint64_t entry(uint64_t target, uint64_t flags) { return target / PAGE << 10 | flags | MARK; }

static uint64_t word(struct worker *me) { return OWN << 32 | (below(me, 1ul << 32)); }

/* An address that isn't the guest's: memory behind its own, as far as a board has it and further, and what boards have below. */
static uint64_t foreign(struct worker *me)
{
    uint64_t behind = machine.memory_base + machine.memory_size;
    switch (below(me, 6)) {
    case 0:
        return behind + below(me, 4) * PAGE;
    case 1:
        return behind + below(me, GIGABYTE);
    case 2: /* where the last memory of a board with 2 GiB is, from which guests have theirs */
        return machine.memory_base + 2 * GIGABYTE - below(me, 256ul << 20);
    case 3:
        return 0x30000000ul + below(me, 256ul << 20);
    case 4:
        return 1ul << (33 + below(me, 23));
    default:
        return below(me, 1ul << 56);
    }
}

/* What an entry of this level could say, 2 for the root's. Whatever it leads to of the guest's own memory are its words or tables: the program mustn't overwrite itself. */
static uint64_t forged(struct worker *me, unsigned level)
{
    uint64_t flags = V | R | A | D | (below(me, 4) ? W : 0) | (below(me, 4) ? 0 : X) | (below(me, 16) ? 0 : U) | (below(me, 4) ? 0 : G);
    uint64_t size = PAGE << 9 * level;
    switch (below(me, 8)) {
    case 0:
        return below(me, 2) ? NOTHING : entry(foreign(me), flags & ~V);
    case 1: /* not aligned as its level wants it, mostly */
        return entry(foreign(me), flags);
    case 2:
        return entry(foreign(me) & -size, flags);
    case 3: /* a table that isn't one, or one that is of another level, or this one again */
        if (level == 0)
            return entry(foreign(me), V);
        return entry(below(me, 2) ? foreign(me) : (uintptr_t)(below(me, 2) ? lasts[below(me, LASTS)] : middles[below(me, MIDDLES)]), V);
    case 4: /* reserved bits; where harts have Svnapot and Svpbmt, some of these */
        return entry(machine.memory_base + below(me, HELD) / LARGE * LARGE, flags) | 1ul << (54 + below(me, 10));
    case 5: /* a page of the tables themselves */
        return level == 0 ? entry((uintptr_t)(below(me, 2) ? lasts[below(me, LASTS)] : middles[below(me, MIDDLES)]), flags) : entry(foreign(me), V);
    default:
        return level == 2 ? entry((uintptr_t)middles[below(me, MIDDLES)], V)
                          : entry((machine.memory_base + below(me, HELD)) & -size, flags);
    }
}

static void edit(struct worker *me)
{
    unsigned index = below(me, USED) * 61 % ENTRIES;
    switch (below(me, 8)) {
    case 0:
        root[(WINDOW >> 30) + below(me, 2 * MIDDLES)] = forged(me, 2);
        break;
    case 1:
        middles[below(me, MIDDLES)][index] = below(me, 2) ? entry((uintptr_t)lasts[below(me, LASTS)], V) : forged(me, 1);
        break;
    default:
        lasts[below(me, LASTS)][index] = forged(me, 0);
    }
    me->edits++;
}

static uint64_t address(struct worker *me)
{
    return WINDOW + below(me, 2 * MIDDLES) * GIGABYTE + below(me, USED) * 61 % ENTRIES * LARGE + below(me, USED) * 61 % ENTRIES * PAGE +
           below(me, ENTRIES) * sizeof(uint64_t);
}

static uint64_t asid_of(uint64_t number) { return number << 44; }

static void fence(struct worker *me)
{
    uint64_t at = address(me), asid = 1 + below(me, 3), start = below(me, 2) ? at : 0, size = start ? (1 + below(me, 9)) * PAGE : UINT64_MAX;
    uint64_t mask = below(me, 2) ? (1ul << worker_count) - 1 : 0, base = mask ? machine.harts[0].id : ALL_HARTS;
    switch (below(me, 7)) {
    case 0:
        __asm__ volatile("sfence.vma" ::: "memory");
        break;
    case 1:
        __asm__ volatile("sfence.vma %0, zero" ::"r"(at) : "memory");
        break;
    case 2:
        __asm__ volatile("sfence.vma zero, %0" ::"r"(asid) : "memory");
        break;
    case 3:
        __asm__ volatile("sfence.vma %0, %1" ::"r"(at), "r"(asid) : "memory");
        break;
    case 4:
        CHECK(sbi_remote_sfence_vma(mask, base, start, size) == SBI_SUCCESS, "a remote fence failed");
        break;
    case 5:
        CHECK(sbi_call5(SBI_RFENCE, RFENCE_ASID, mask, base, start, size, asid).error == SBI_SUCCESS, "a remote fence failed");
        break;
    default:
        csr_write(satp, SATP_SV39 | asid_of(asid) | (uintptr_t)root / PAGE);
    }
    me->fences++;
}

void handle_exception(struct trap_frame *frame, uint64_t scause)
{
    struct worker *me = self();
    bool is_refused = scause == 5 || scause == 7 || scause == 13 || scause == 15;
    if (!is_refused || !me->may_fault)
        report_trap(frame, scause);
    CHECK(csr_read(stval) == me->expected, "a fault at %lx, not at %lx", csr_read(stval), me->expected);
    me->faulted = true;
    frame->sepc += 4;
}

/* Loads, or stores `value`. */
static bool use(struct worker *me, uint64_t at, bool is_store, uint64_t *value)
{
    me->expected = at;
    me->faulted = false;
    me->may_fault = true;
    if (is_store)
        __asm__ volatile(".option push\n.option norvc\nsd %0, (%1)\n.option pop" ::"r"(*value), "r"(at) : "memory");
    else
        __asm__ volatile(".option push\n.option norvc\nld %0, (%1)\n.option pop" : "=&r"(*value) : "r"(at) : "memory");
    me->may_fault = false;
    me->faults += me->faulted;
    return !me->faulted;
}

/* Can the guest itself have written this at an offset in a page? Its memory holds its words, wherever its tables may lead; tables hold entries at the few offsets that are used. */
static bool is_own(uint64_t value, uint64_t at)
{
    uint64_t index = at % PAGE / sizeof(uint64_t);
    if (value >> 32 == OWN)
        return true;
    for (unsigned i = 0; i < USED; i++)
        if (index == i * 61 % ENTRIES)
            return (value & MARK) == MARK;
    return false;
}

static void reach(struct worker *me)
{
    uint64_t at = address(me), value = word(me);
    bool is_store = below(me, 3) == 0;
    if (is_store) {
        me->stores += use(me, at, true, &value);
        return;
    }
    if (!use(me, at, false, &value))
        return;
    me->loads++;
    CHECK(is_own(value, at), "a load from %lx gives %lx, which isn't this guest's", at, value);
}

static void work(void *argument)
{
    struct worker *me = argument;
    csr_write(satp, SATP_SV39 | asid_of(1) | (uintptr_t)root / PAGE);
    __asm__ volatile("sfence.vma" ::: "memory");
    while (read_time() < end) {
        switch (below(me, 8)) {
        case 0 ... 2:
            edit(me);
            break;
        case 3:
            fence(me);
            break;
        default:
            reach(me);
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

/* Never what the one that is watched against takes for its own: another upper half, and not the mark of entries. */
static uint64_t watched(uint64_t i) { return WATCHED << 32 | i << 10; }

/* Gives each word of the held memory its value, or looks whether it has it. Until the time is over. */
static uint64_t watch(void)
{
    volatile uint64_t *held = (volatile uint64_t *)(uintptr_t)machine.memory_base;
    uint64_t count = HELD / sizeof(uint64_t), looked = 0;
    for (uint64_t i = 0; i < count; i++)
        held[i] = watched(i);
    for (uint64_t i = 0; read_time() < end || looked < count; i = (i + 1) % count, looked++)
        CHECK(held[i] == watched(i), "somebody has changed the word at %lx to %lx", machine.memory_base + i * sizeof(uint64_t), held[i]);
    return looked;
}

static void prepare(void)
{
    volatile uint64_t *held = (volatile uint64_t *)(uintptr_t)machine.memory_base;
    for (uint64_t i = 0; i < HELD / sizeof(uint64_t); i++)
        held[i] = OWN << 32 | i;
    /* A leaf of 1 GiB at the begin of memory leads to these pages behind it, as far as it goes. */
    for (uint64_t at = 61 * LARGE; at + LARGE <= machine.memory_size && at < GIGABYTE; at += 61 * LARGE)
        for (uint64_t i = 0; i < LARGE / sizeof(uint64_t); i++)
            held[at / sizeof(uint64_t) + i] = OWN << 32 | i;
    for (unsigned i = 0; i < ENTRIES; i++) {
        for (unsigned of = 0; of < MIDDLES; of++)
            middles[of][i] = NOTHING;
        for (unsigned of = 0; of < LASTS; of++)
            lasts[of][i] = NOTHING;
    }
    for (uint64_t gigabyte = 0; gigabyte < 8; gigabyte++)
        root[gigabyte] = entry(gigabyte << 30, V | R | W | X | A | D);
    for (unsigned i = 0; i < 2 * MIDDLES; i++)
        root[(WINDOW >> 30) + i] = entry((uintptr_t)middles[i % MIDDLES], V);
    for (unsigned i = 0; i < USED; i++)
        for (unsigned of = 0; of < MIDDLES; of++)
            middles[of][i * 61 % ENTRIES] = entry((uintptr_t)lasts[(i + of) % LASTS], V);
}

bool guest_main(void)
{
    uint64_t ms = arg_number("ms", 30, 1, 100000), seed = arg_number("seed", 1, 1, UINT32_MAX), watches = arg_number("watch", 0, 0, 1);
    args_finish();
    end = read_time() + us_to_ticks(ms * 1000);
    if (watches) {
        uint64_t looked = watch();
        print("@result {\"job\":\"tamper\",\"words\":%lu,\"ok\":true}\n", looked);
        return true;
    }
    prepare();
    end = read_time() + us_to_ticks(ms * 1000);
    worker_count = machine.hart_count;
    for (unsigned i = 0; i < worker_count; i++)
        workers[i].seed = seed * 1000003 + i;
    for (unsigned i = 1; i < worker_count; i++) {
        workers[i].start = (struct secondary){ workers[i].stack + STACK_WORDS, work_and_stop, &workers[i] };
        start_hart(machine.harts[i].id, &workers[i].start);
    }
    __asm__ volatile("mv tp, %0" ::"r"(&workers[0]));
    work(&workers[0]);
    while (atomic_load(&done) < worker_count)
        pause_hint();
    uint64_t edits = 0, fences = 0, loads = 0, stores = 0, faults = 0;
    for (unsigned i = 0; i < worker_count; i++) {
        edits += workers[i].edits;
        fences += workers[i].fences;
        loads += workers[i].loads;
        stores += workers[i].stores;
        faults += workers[i].faults;
    }
    print("@result {\"job\":\"tamper\",\"harts\":%u,\"edits\":%lu,\"fences\":%lu,\"loads\":%lu,\"stores\":%lu,\"faults\":%lu,\"ok\":true}\n",
          worker_count, edits, fences, loads, stores, faults);
    return true;
}
