/* What a kernel's privileged instructions cost, in instructions of all that runs on the hart, as `cost` counts them: those of a system call, of a timer, and of address spaces. A hypervisor that has a guest's
 * kernel in user mode carries each of them out; one that makes the hart's tables itself, those of address spaces. It may need some time to know an instruction: what is counted begins behind that.
 * Only under QEMU's -icount, and with one hart. */
#include "args.h"
#include "console.h"
#include "csr.h"
#include "machine.h"
#include "start.h"
#include "timer.h"
#include "trap.h"

#define PAGE      4096ul
#define ENTRIES   512
#define WINDOW    (128ul << 30) /* beyond all that is mapped one to one */
#define SATP_SV39 (8ul << 60)
#define ASID      1ul          /* of the first space */
#define ROW       8 /* entries of a table that lie in 64 bytes */

/* privileged_ways.S */
void save_and_restore(void); /* interrupts off, and as they were */
void return_to_kernel(uint64_t from); /* SRET to the kernel itself, with what is written for it */
void set_own_timer(uint64_t time);
void fence_page(uint64_t address, uint64_t asid);
void switch_space(uint64_t satp);

enum { V = 1, R = 2, W = 4, X = 8, A = 64, D = 128 };
enum { SAVE_AND_RESTORE, RETURN, SET_TIMER, FENCE, FILL, FILL_ROW, SWITCH, KINDS };

static const char *const names[KINDS] = { "save_and_restore", "return", "set_own_timer", "fence_page", "fill_page", "fill_row", "switch" };

static struct {
    uint64_t count, sum, min, max;
} costs[KINDS];

static struct {
    uint64_t root[ENTRIES], middle[ENTRIES], last[ENTRIES];
} spaces[2] __attribute__((aligned(PAGE)));

static volatile uint64_t pages[1 + ROW][ENTRIES] __attribute__((aligned(PAGE)));

static uint64_t entry(const volatile void *target, uint64_t flags) { return (uintptr_t)target / PAGE << 10 | flags; }

/* The first page has a row of entries for itself; others have one together. */
static uint64_t address_of(unsigned page) { return WINDOW + (page == 0 ? 0 : ROW + page - 1) * PAGE; }

static uint64_t satp_of(unsigned space) { return SATP_SV39 | (ASID + space) << 44 | (uintptr_t)spaces[space].root / PAGE; }

static void map(unsigned space)
{
    for (uint64_t gigabyte = 0; gigabyte < 4; gigabyte++)
        spaces[space].root[gigabyte] = entry((const void *)(gigabyte << 30), V | R | W | X | A | D);
    spaces[space].root[WINDOW >> 30] = entry(spaces[space].middle, V);
    spaces[space].middle[0] = entry(spaces[space].last, V);
    for (unsigned page = 0; page <= ROW; page++)
        spaces[space].last[address_of(page) / PAGE % ENTRIES] = entry(pages[page], V | R | W | A | D);
}

static void touch(unsigned page) { (void)*(volatile uint64_t *)address_of(page); }

static void do_one(unsigned kind, unsigned space)
{
    switch (kind) {
    case SAVE_AND_RESTORE:
        save_and_restore();
        break;
    case RETURN:
        return_to_kernel(SSTATUS_SPP);
        break;
    case SET_TIMER:
        set_own_timer(NEVER);
        break;
    case FENCE:
        fence_page(address_of(0), ASID);
        break;
    case FILL:
        touch(0);
        break;
    case FILL_ROW:
        touch(1);
        break;
    default:
        switch_space(satp_of(space));
    }
}

/* What there is to be fenced is there, and what is to be filled in isn't. */
static void prepare(unsigned kind)
{
    if (kind == FENCE)
        touch(0);
    if (kind == FILL)
        fence_page(address_of(0), ASID);
    for (unsigned page = 1; kind == FILL_ROW && page <= ROW; page++)
        fence_page(address_of(page), ASID);
}

static void measure(unsigned kind, uint64_t round, bool counts)
{
    prepare(kind);
    uint64_t before = csr_read(instret);
    do_one(kind, round % 2 == 0);
    uint64_t after = csr_read(instret);
    uint64_t reading = csr_read(instret) - after;
    uint64_t took = after - before - reading;
    if (kind == SWITCH && round % 2 == 0)
        switch_space(satp_of(0)); /* where fences are */
    if (!counts)
        return;
    if (costs[kind].count == 0 || took < costs[kind].min)
        costs[kind].min = took;
    if (took > costs[kind].max)
        costs[kind].max = took;
    costs[kind].count++;
    costs[kind].sum += took;
}

bool guest_main(void)
{
    machine_needs("sstc", "its timer's cost is measured");
    uint64_t n = arg_number("n", 1000, 1, 1000000);
    uint64_t uncounted = arg_number("uncounted", 100, 0, 1000000);
    args_finish();
    csr_write(CSR_STIMECMP, NEVER);
    csr_write(sie, 0);
    map(0);
    map(1);
    csr_write(satp, satp_of(0));
    if (csr_read(satp) != satp_of(0))
        fail("the hart has no Sv39, or no ASIDs");
    for (uint64_t round = 0; round < uncounted + n; round++)
        for (unsigned kind = 0; kind < KINDS; kind++)
            measure(kind, round, round >= uncounted);

    print("@result {\"job\":\"privileged\",\"unit\":\"instructions\",\"samples\":%lu", n);
    for (unsigned kind = 0; kind < KINDS; kind++) {
        uint64_t tenths = costs[kind].sum * 10 / costs[kind].count;
        print(",\"%s\":{\"min\":%lu,\"mean\":%lu.%lu,\"max\":%lu}", names[kind], costs[kind].min, tenths / 10, tenths % 10, costs[kind].max);
    }
    print(",\"ok\":true}\n");
    return true;
}
