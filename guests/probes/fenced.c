/* What does a hart get done whose siblings have it fence? The first one copies a word from page to page, each by an address of its own; the others fence, by the SBI: a page that it doesn't
 * use, one that it does, a range, an address space, or all. With `own` it does so itself, in between. And how long is the hypervisor away then? With further address spaces, which all see the same
 * global pages, and change them, there is more to be found out of date. */
#include <stdatomic.h>
#include "args.h"
#include "console.h"
#include "csr.h"
#include "machine.h"
#include "sbi.h"
#include "start.h"
#include "timer.h"
#include "trap.h"

#define STACK_WORDS 256
#define PAGE        4096ul
#define ENTRIES     512
#define SPACES      20 /* at most */
#define PAGES       8  /* of each address space, in two tables */
#define WINDOW      (128ul << 30)
#define GLOBALS     (130ul << 30)
#define SATP_SV39   (8ul << 60)
#define RFENCE_ASID 2

enum { V = 1, R = 2, W = 4, X = 8, G = 32, A = 64, D = 128 };

struct space {
    uint64_t root[ENTRIES], middle[ENTRIES], last[2][ENTRIES];
};

struct sender {
    struct secondary start;
    unsigned index;
    uint64_t fences;
    uint64_t stack[STACK_WORDS] __attribute__((aligned(16)));
};

static struct sender senders[MAX_HARTS];
static atomic_uint stopping, stopped;
static struct space spaces[SPACES] __attribute__((aligned(PAGE)));
static uint64_t global_tables[3][ENTRIES] __attribute__((aligned(PAGE)));
static volatile uint64_t pool[2 * PAGES][ENTRIES] __attribute__((aligned(PAGE)));
static volatile uint64_t moved[MAX_HARTS][2][ENTRIES] __attribute__((aligned(PAGE)));
static uint64_t pause_us, space_count, pages;
static bool checks;
static enum { A_PAGE, A_PAGE_ASID, USED, RANGE, GLOBAL, A_SPACE, ALL } what;
static const char *const choices[] = { "page", "page-asid", "used", "range", "global", "space", "all", NULL };

static uint64_t entry(const volatile void *target, uint64_t flags) { return (uintptr_t)target / PAGE << 10 | flags; }

/* Half of them have a table of their own. */
static uint64_t address_of(unsigned page) { return WINDOW + (page % 2 << 21) + (page + 1) * PAGE; }

static void map(struct space *space)
{
    for (uint64_t gigabyte = 0; gigabyte < 4; gigabyte++)
        space->root[gigabyte] = entry((const void *)(gigabyte << 30), V | R | W | X | A | D);
    space->root[WINDOW >> 30] = entry(space->middle, V);
    space->root[GLOBALS >> 30] = entry(global_tables[0], V | G);
    for (unsigned half = 0; half < 2; half++)
        space->middle[half] = entry(space->last[half], V);
    for (unsigned page = 0; page < PAGES; page++)
        space->last[page % 2][page + 1] = entry(pool[page], V | R | W | A | D);
}

static void go_to(uint64_t space)
{
    csr_write(satp, SATP_SV39 | (1 + space) << 44 | (uintptr_t)spaces[space].root / PAGE);
}

/* `page`: if it is one that is fenced, this. */
static void fence(uint64_t mask, uint64_t base, uint64_t page)
{
    uint64_t start = 0, size = UINT64_MAX, asid = 1;
    bool has_asid = what == A_PAGE_ASID || what == USED || what == RANGE || what == A_SPACE;
    switch (what) {
    case A_PAGE:
    case A_PAGE_ASID:
        start = page, size = PAGE;
        break;
    case USED:
        start = checks ? page : address_of(1), size = PAGE;
        break;
    case RANGE:
        start = page, size = pages * PAGE;
        break;
    case GLOBAL:
        start = GLOBALS, size = pages * PAGE;
        break;
    case A_SPACE:
    case ALL:
        break;
    }
    long error = has_asid ? sbi_call5(SBI_RFENCE, RFENCE_ASID, mask, base, start, size, asid).error
                          : sbi_remote_sfence_vma(mask, base, start, size);
    if (error != SBI_SUCCESS)
        fail("a remote fence: error %ld", error);
}

static void pause_a_while(void)
{
    uint64_t until = read_time() + us_to_ticks(pause_us);
    while (read_time() < until && !atomic_load(&stopping))
        pause_hint();
}

/* Maps a page of its own to the other place, has that fenced, and looks whether the first hart, which stores to it all the time, still does so in the old place. */
static void move(struct sender *me)
{
    unsigned page = PAGES + me->index, place = me->fences % 2;
    spaces[0].last[page % 2][page + 1] = entry(moved[me->index][place], V | R | W | A | D);
    fence(1, machine.boot_hart, address_of(page));
    uint64_t before = moved[me->index][!place][0], until = read_time() + us_to_ticks(5);
    while (read_time() < until)
        if (moved[me->index][!place][0] != before)
            fail("hart %u: a page is used after fence %lu of it", me->index, me->fences);
}

static void send(void *argument)
{
    struct sender *me = argument;
    while (!atomic_load(&stopping)) {
        if (checks)
            move(me);
        else
            fence(1, machine.boot_hart, WINDOW + 100 * PAGE);
        me->fences++;
        pause_a_while();
    }
    atomic_fetch_add(&stopped, 1);
    sbi_hart_stop();
}

/* All address spaces see what is global, which is now this and now that: pages of 4 KiB, or one of 1 GiB. */
static void change(uint64_t round)
{
    uint64_t large = entry((const void *)(2ul << 30), V | R | W | A | D | G);
    global_tables[0][0] = round & 1 ? entry((const void *)(2ul << 30), V | R | W | A | D | G) : entry(global_tables[1], V);
    for (uint64_t page = 0; page < PAGES; page++)
        global_tables[1][page] = round & 2 ? 0 : entry(pool[PAGES + page], V | R | W | A | D | G);
    for (uint64_t space = 0; space < space_count; space++)
        spaces[space].root[GLOBALS >> 30] = round % 7 == 0 ? large : entry(global_tables[0], V | G);
}

static volatile bool may_fault;

void handle_exception(struct trap_frame *frame, uint64_t scause)
{
    if ((scause != 13 && scause != 15) || !may_fault)
        report_trap(frame, scause);
    frame->sepc += 4;
}

static void use(uint64_t address)
{
    uint64_t value;
    may_fault = true;
    __asm__ volatile(".option push\n.option norvc\nld %0, (%1)\n.option pop" : "=&r"(value) : "r"(address) : "memory");
    may_fault = false;
}

/* A round of somebody who means ill: all address spaces have something of their own and see what is global, and that changes and is fenced. */
static void harm(uint64_t round)
{
    for (uint64_t space = 0; space < space_count; space++) {
        go_to((space * 7 + round) % space_count);
        for (unsigned page = 0; page < PAGES; page++)
            use(address_of(page));
        use(GLOBALS + round % PAGES * PAGE);
        use(GLOBALS + (1ul << 21));
    }
    change(round);
    if (round % 3 == 0)
        use(GLOBALS + (3ul << 21));
    if (round % 2 == 0)
        fence(1, machine.boot_hart, WINDOW + 100 * PAGE);
    else if (round % 4 == 1)
        __asm__ volatile("sfence.vma %0, zero" ::"r"(GLOBALS + round % PAGES * PAGE) : "memory");
    else
        __asm__ volatile("sfence.vma %0, zero" ::"r"(address_of(round % PAGES)) : "memory");
    if (round % 5 == 0)
        sbi_remote_sfence_vma(1, machine.boot_hart, address_of(0), pages * PAGE);
}

bool guest_main(void)
{
    what = arg_choice("what", choices);
    uint64_t ms = arg_number("ms", 20, 1, 100000);
    pause_us = arg_number("us", 15, 0, 1000000);
    space_count = arg_number("spaces", 1, 1, SPACES);
    pages = arg_number("pages", 4, 1, 64);
    bool harms = arg_number("harm", 0, 0, 1);
    checks = arg_number("check", 0, 0, 1);
    args_finish();
    for (unsigned space = 0; space < SPACES; space++)
        map(&spaces[space]);
    change(2);
    go_to(0);
    for (unsigned i = 0; i < machine.hart_count; i++) {
        if (machine.harts[i].id == machine.boot_hart)
            continue;
        senders[i].index = i;
        spaces[0].last[(PAGES + i) % 2][PAGES + i + 1] = entry(moved[i][1], V | R | W | A | D);
        senders[i].start = (struct secondary){ senders[i].stack + STACK_WORDS, send, &senders[i] };
        start_hart(machine.harts[i].id, &senders[i].start);
    }
    uint64_t end = read_time() + us_to_ticks(ms * 1000), copies = 0, rounds = 0;
    while (read_time() < end) {
        if (harms) {
            harm(rounds++);
            continue;
        }
        for (unsigned page = 0; page < PAGES; page++) {
            volatile uint64_t *from = (volatile uint64_t *)address_of(page), *to = (volatile uint64_t *)address_of((page + 1) % PAGES);
            *to = *from;
            copies++;
        }
        for (unsigned i = 0; checks && i < machine.hart_count; i++)
            if (machine.harts[i].id != machine.boot_hart)
                *(volatile uint64_t *)address_of(PAGES + i) = copies;
    }
    atomic_store(&stopping, 1);
    while (atomic_load(&stopped) < machine.hart_count - 1)
        pause_hint();
    uint64_t fences = 0;
    for (unsigned i = 0; i < machine.hart_count; i++)
        fences += senders[i].fences;
    print("@result {\"job\":\"fenced\",\"copies\":%lu,\"rounds\":%lu,\"fences\":%lu,\"ok\":true}\n", copies, rounds, fences);
    return true;
}
