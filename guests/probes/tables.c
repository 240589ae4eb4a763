/* Is what a hart finds by its page tables what they say? Each hart has tables of its own, of more address spaces than a hypervisor keeps. At random it changes entries,
 * goes to another address space, fences (by all forms of SFENCE.VMA, and by the SBI, others' too), loads and stores. What it may find is what entries have said since the last
 * fence that covers them; anything else ends the guest, as does a fault where there was always a page. */
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

#define MOST_HARTS  4
#define STACK_WORDS 512
#define PAGE        4096ul
#define LARGE       (2ul << 20)
#define ENTRIES     512
#define SPACES      20 /* of a hart */
#define PRIVATE     12 /* pages of an address space that can be changed; behind them: */
#define LARGES      3  /* large pages */
#define GLOBAL      6  /* pages that are in all of a hart's address spaces */
#define SLOTS       (PRIVATE + LARGES + GLOBAL)
#define REGIONS     2 /* of memory that entries lead to, a large page each */
#define POOL        (REGIONS * ENTRIES)
#define MOST        6 /* of what an entry has said since a fence: with more, all is fenced */
#define NOTHING     0xffffu
#define ALL_HARTS   UINT64_MAX
#define WINDOW      (128ul << 30)
#define GLOBALS     (130ul << 30)
#define SATP_SV39   (8ul << 60)
#define RFENCE_ASID 2

enum { V = 1, R = 2, W = 4, X = 8, G = 32, A = 64, D = 128 };

/* What an entry says: the page of the pool that it leads to, or the first one of a large page. */
struct said {
    uint16_t page;
    bool writes;
};

struct slot {
    struct said said[MOST]; /* the last one is what it says now */
    unsigned count;
};

struct space {
    struct slot slots[SLOTS - GLOBAL];
};

struct tables {
    uint64_t root[ENTRIES], middle[ENTRIES], last[ENTRIES];
};

struct worker {
    struct secondary start;
    uint64_t id, seed, expected; /* the address that may fault */
    unsigned index, space;       /* SPACES: without translation */
    volatile bool may_fault, faulted;
    uint64_t loads, faults, stores, fences;
    struct space spaces[SPACES];
    struct slot globals[GLOBAL];
    uint64_t stack[STACK_WORDS] __attribute__((aligned(16)));
};

static struct worker workers[MOST_HARTS];
static unsigned worker_count;
static uint64_t steps;
static atomic_uint done;
static struct tables tables[MOST_HARTS][SPACES] __attribute__((aligned(PAGE)));
static uint64_t global_tables[MOST_HARTS][2][ENTRIES] __attribute__((aligned(PAGE)));
static volatile uint64_t pool[POOL][ENTRIES] __attribute__((aligned(LARGE)));

#define CHECK(condition, ...) CHECK_OR(print("@result {\"job\":\"tables\",\"ok\":false}\n"), condition, __VA_ARGS__)

static uint64_t below(struct worker *me, uint64_t limit) { return xorshift(&me->seed) % limit; }

static uint64_t entry(const volatile void *target, uint64_t flags) { return (uintptr_t)target / PAGE << 10 | flags; }

/* The first word of each page tells them apart. */
static uint64_t content(unsigned page) { return 0x7ab1e00000000000ul | page; }

static bool is_large(unsigned slot) { return slot >= PRIVATE && slot < PRIVATE + LARGES; }

static bool is_global(unsigned slot) { return slot >= PRIVATE + LARGES; }

static struct slot *slot_of(struct worker *me, unsigned space, unsigned slot)
{
    return is_global(slot) ? &me->globals[slot - PRIVATE - LARGES] : &me->spaces[space].slots[slot];
}

/* They are spread over their tables. */
static unsigned index_of(unsigned slot) { return slot * 37 % ENTRIES; }

static uint64_t address_of(unsigned slot)
{
    if (is_large(slot))
        return WINDOW + (1 + slot - PRIVATE) * LARGE;
    return (is_global(slot) ? GLOBALS : WINDOW) + index_of(slot) * PAGE;
}

static volatile uint64_t *entry_of(struct worker *me, unsigned space, unsigned slot)
{
    struct tables *of = &tables[me->index][space];
    if (is_large(slot))
        return &of->middle[1 + slot - PRIVATE];
    return is_global(slot) ? &global_tables[me->index][1][index_of(slot)] : &of->last[index_of(slot)];
}

static void forget(struct slot *slot)
{
    slot->said[0] = slot->said[slot->count - 1];
    slot->count = 1;
}

/* All that this hart can have kept of these address spaces (SPACES: of all) and of this slot (SLOTS: of all) is out. */
static void fenced(struct worker *me, unsigned space, unsigned slot, bool global)
{
    for (unsigned i = 0; i < SLOTS; i++) {
        if (slot != SLOTS && slot != i)
            continue;
        if (is_global(i) && global)
            forget(slot_of(me, 0, i));
        for (unsigned of = 0; of < SPACES && !is_global(i); of++)
            if (space == SPACES || space == of)
                forget(slot_of(me, of, i));
    }
    me->fences++;
}

static uint64_t asid_of(unsigned space) { return 1 + space; }

static void fence_here(struct worker *me)
{
    unsigned space = below(me, SPACES), slot = below(me, SLOTS);
    uint64_t asid = asid_of(space), address = address_of(slot) + (is_large(slot) ? below(me, LARGE) : 0);
    switch (below(me, 4)) {
    case 0:
        __asm__ volatile("sfence.vma" ::: "memory");
        return fenced(me, SPACES, SLOTS, true);
    case 1:
        __asm__ volatile("sfence.vma %0, zero" ::"r"(address) : "memory");
        return fenced(me, SPACES, slot, true);
    case 2:
        __asm__ volatile("sfence.vma zero, %0" ::"r"(asid) : "memory");
        return fenced(me, space, SLOTS, false);
    default:
        __asm__ volatile("sfence.vma %0, %1" ::"r"(address), "r"(asid) : "memory");
        return fenced(me, space, slot, false);
    }
}

/* Others are to fence what they have of their own at this address, which does no harm. */
static void fence_by_call(struct worker *me)
{
    unsigned space = below(me, SPACES), slot = below(me, SLOTS);
    bool is_all = below(me, 2), has_asid = below(me, 2), is_own = below(me, 4);
    uint64_t start = is_all ? 0 : address_of(slot), size = is_all ? UINT64_MAX : below(me, 3 * PAGE) + 1;
    uint64_t mask = is_own ? 0 : ~(1ul << me->id), base = is_own ? ALL_HARTS : 0;
    mask &= is_own ? mask : (1ul << worker_count) - 1;
    if (!is_own && mask == 0)
        return;
    long error = has_asid ? sbi_call5(SBI_RFENCE, RFENCE_ASID, mask, base, start, size, asid_of(space)).error
                          : sbi_remote_sfence_vma(mask, base, start, size);
    CHECK(error == SBI_SUCCESS, "remote fence of hart %lu: error %ld", me->id, error);
    if (is_own)
        fenced(me, has_asid ? space : SPACES, is_all ? SLOTS : slot, !has_asid);
}

static void change(struct worker *me)
{
    unsigned space = me->space != SPACES && below(me, 2) ? me->space : below(me, SPACES), i = below(me, SLOTS);
    struct slot *slot = slot_of(me, space, i);
    if (slot->count == MOST) {
        __asm__ volatile("sfence.vma" ::: "memory");
        fenced(me, SPACES, SLOTS, true);
    }
    struct said now = { is_large(i) ? below(me, REGIONS) * ENTRIES : below(me, POOL), below(me, 2) };
    uint64_t flags = V | R | A | D | (now.writes ? W : 0) | (is_global(i) ? G : 0);
    if (below(me, 4) == 0)
        now.page = NOTHING;
    slot->said[slot->count++] = now;
    *entry_of(me, space, i) = now.page == NOTHING ? 0 : entry(pool[now.page], flags);
}

/* Goes to an address space, or to none. */
static void go_to(struct worker *me, unsigned space)
{
    uint64_t satp = space == SPACES ? 0 : SATP_SV39 | asid_of(space) << 44 | (uintptr_t)tables[me->index][space].root / PAGE;
    csr_write(satp, satp);
    CHECK(csr_read(satp) == satp, "satp of hart %lu is %lx, not %lx", me->id, csr_read(satp), satp);
    me->space = space;
}

void handle_exception(struct trap_frame *frame, uint64_t scause)
{
    struct worker *me = self();
    if ((scause != 13 && scause != 15) || !me->may_fault)
        report_trap(frame, scause);
    CHECK(csr_read(stval) == me->expected, "hart %lu faults at %lx, not at %lx", me->id, csr_read(stval), me->expected);
    me->faulted = true;
    frame->sepc += 4;
}

static bool load(struct worker *me, uint64_t address, uint64_t *value)
{
    me->expected = address;
    me->faulted = false;
    me->may_fault = true;
    __asm__ volatile(".option push\n.option norvc\nld %0, (%1)\n.option pop" : "=&r"(*value) : "r"(address) : "memory");
    me->may_fault = false;
    return !me->faulted;
}

static bool store(struct worker *me, uint64_t address, uint64_t value)
{
    me->expected = address;
    me->faulted = false;
    me->may_fault = true;
    __asm__ volatile(".option push\n.option norvc\nsd %0, (%1)\n.option pop" ::"r"(value), "r"(address) : "memory");
    me->may_fault = false;
    return !me->faulted;
}

/* Uses a page of the address space. */
static void use(struct worker *me)
{
    if (me->space == SPACES)
        return;
    unsigned i = below(me, SLOTS), within = is_large(i) ? below(me, ENTRIES) : 0;
    const struct slot *slot = slot_of(me, me->space, i);
    uint64_t address = address_of(i) + within * PAGE, value = 0;
    bool is_store = below(me, 3) == 0, may = false, may_fault = false;
    if (is_store) {
        /* A word of each page is this hart's. */
        uint64_t own = (1 + me->index) * sizeof(uint64_t), token = xorshift(&me->seed);
        bool is_done = store(me, address + own, token);
        for (unsigned n = 0; n < slot->count; n++) {
            struct said said = slot->said[n];
            may_fault |= said.page == NOTHING || !said.writes;
            may |= said.page != NOTHING && said.writes && pool[said.page + within][1 + me->index] == token;
        }
        CHECK(is_done ? may : may_fault, "hart %lu, address space %u: a store to %lx %s", me->id, me->space, address,
              is_done ? "went elsewhere" : "faulted");
        me->stores++;
        return;
    }
    bool is_done = load(me, address, &value);
    for (unsigned n = 0; n < slot->count; n++) {
        struct said said = slot->said[n];
        may_fault |= said.page == NOTHING;
        may |= said.page != NOTHING && value == content(said.page + within);
    }
    CHECK(is_done ? may : may_fault, "hart %lu, address space %u: a load from %lx gives %lx%s", me->id, me->space, address, value,
          is_done ? "" : ", a fault");
    me->loads++;
    me->faults += !is_done;
}

static void work(void *argument)
{
    struct worker *me = argument;
    /* Of a hart that has never fenced nothing is known. */
    __asm__ volatile("sfence.vma" ::: "memory");
    for (uint64_t step = 0; step < steps; step++) {
        switch (below(me, 16)) {
        case 0 ... 3:
            change(me);
            break;
        case 4:
            go_to(me, below(me, 8) == 0 ? SPACES : below(me, SPACES));
            break;
        case 5:
            go_to(me, below(me, 3));
            break;
        case 6:
            fence_here(me);
            break;
        case 7:
            if (below(me, 4) == 0)
                fence_by_call(me);
            break;
        default:
            use(me);
        }
    }
    go_to(me, SPACES);
    atomic_fetch_add(&done, 1);
}

static void work_and_stop(void *argument)
{
    work(argument);
    sbi_hart_stop();
    fail("a hart didn't stop");
}

static void prepare(struct worker *me, unsigned index)
{
    me->index = index;
    me->id = machine.harts[index].id;
    me->space = SPACES;
    uint64_t global = index % 2 ? G : 0;
    for (unsigned space = 0; space < SPACES; space++) {
        struct tables *of = &tables[index][space];
        for (uint64_t gigabyte = 0; gigabyte < 4; gigabyte++)
            of->root[gigabyte] = entry((const void *)(gigabyte << 30), V | R | W | X | A | D | global);
        of->root[WINDOW >> 30] = entry(of->middle, V);
        of->middle[0] = entry(of->last, V);
        of->root[GLOBALS >> 30] = entry(global_tables[index][0], V | G);
    }
    global_tables[index][0][0] = entry(global_tables[index][1], V);
    for (unsigned slot = 0; slot < SLOTS; slot++)
        for (unsigned space = 0; space < SPACES; space++)
            *slot_of(me, space, slot) = (struct slot){ { { NOTHING, false } }, 1 };
}

bool guest_main(void)
{
    steps = arg_number("n", 20000, 1, UINT32_MAX);
    uint64_t seed = arg_number("seed", 1, 1, UINT32_MAX);
    args_finish();
    worker_count = machine.hart_count < MOST_HARTS ? machine.hart_count : MOST_HARTS;
    for (unsigned page = 0; page < POOL; page++)
        pool[page][0] = content(page);
    for (unsigned i = 0; i < worker_count; i++) {
        workers[i].seed = seed * 1000003 + i;
        prepare(&workers[i], i);
    }
    for (unsigned i = 1; i < worker_count; i++) {
        workers[i].start = (struct secondary){ workers[i].stack + STACK_WORDS, work_and_stop, &workers[i] };
        start_hart(workers[i].id, &workers[i].start);
    }
    __asm__ volatile("mv tp, %0" ::"r"(&workers[0]));
    work(&workers[0]);
    while (atomic_load(&done) < worker_count)
        pause_hint();
    uint64_t loads = 0, stores = 0, faults = 0, fences = 0;
    for (unsigned i = 0; i < worker_count; i++) {
        loads += workers[i].loads;
        stores += workers[i].stores;
        faults += workers[i].faults;
        fences += workers[i].fences;
    }
    print("@result {\"job\":\"tables\",\"harts\":%u,\"loads\":%lu,\"stores\":%lu,\"faults\":%lu,\"fences\":%lu,\"ok\":true}\n", worker_count,
          loads, stores, faults, fences);
    return true;
}
