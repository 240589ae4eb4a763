#include "spaces.h"
#include <string.h>
#include "machine.h"
#include "xorshift.h"

#define WORDS     512
#define TEST      0x100000000ul
#define BIG       0x140000000ul
#define GLOBALS   0x1c0000000ul
#define HIGH      0xffffffc000000000ul /* the first of the upper half in Sv39 */
#define LAST      0xfffffffffffff000ul
#define SMALL     12 /* slots of 4 KiB at TEST, side by side */
#define POINTER   19
#define SV39      8ul
#define SV48      9ul

enum { V = 1, R = 2, W = 4, X = 8, U = 16, G = 32, A = 64, D = 128 };

struct tables {
    uint64_t root48[WORDS], root39[WORDS], own[WORDS], test[WORDS], small[WORDS], user[WORDS], user_code[WORDS], behind[WORDS], high[WORDS], high_small[WORDS],
        last[WORDS], last_small[WORDS];
};

uint16_t code[CODE_BYTES / 2] __attribute__((aligned(PAGE)));
uint8_t data[LARGE] __attribute__((aligned(LARGE)));
static struct tables tables[SPACES] __attribute__((aligned(PAGE)));
static uint64_t globals[2][WORDS] __attribute__((aligned(PAGE)));
static uint64_t satps[SPACES];

/* Neither memory nor a device is there, on any of the machines. */
static const uint64_t nowhere[] = { 0x800000, 0x2000000000, 0x80000000000, 0xfffffffffff000 };

static uint64_t below(uint64_t *random, uint64_t limit) { return (xorshift(random) >> 8) % limit; }

static uint64_t entry(uint64_t address, uint64_t bits) { return address / PAGE << 10 | bits; }

static uint64_t pointer(const uint64_t *table) { return entry((uintptr_t)table, V); }

uint64_t space_satp(unsigned space) { return satps[space]; }

uint64_t space_asid(unsigned space) { return satps[space] >> 44 & 0xffff; }

static unsigned level_of(unsigned slot) { return slot == 15 ? 2 : slot >= SMALL && slot < 15 ? 1 : 0; }

bool slot_is_pointer(unsigned slot) { return slot == POINTER; }

static uint64_t *place(unsigned space, unsigned slot)
{
    struct tables *of = &tables[space];
    if (slot < SMALL)
        return &of->small[slot];
    if (slot < 15)
        return &of->test[1 + slot - SMALL];
    switch (slot) {
    case 15: return &of->root39[BIG / GIANT];
    case 16: return &of->high_small[0];
    case 17: return &of->high_small[1];
    case 18: return &of->last_small[WORDS - 1];
    case POINTER: return &of->test[4];
    default: return &globals[1][slot - FIRST_GLOBAL];
    }
}

uint64_t slot_place(unsigned space, unsigned slot) { return (uintptr_t)place(space, slot); }

bool slot_may_be_nowhere(unsigned slot)
{
    return level_of(slot) != 0 || (slot >= SURELY_MEMORY && slot < SMALL) || slot == 18 || slot >= SLOTS - 2;
}

bool can_be_crossed(uint64_t page)
{
    uint64_t small = (page - TEST) / PAGE, global = (page - GLOBALS) / PAGE;
    return !(small >= SMALL - 5 && small < SMALL) && !(global >= SLOTS - FIRST_GLOBAL - 3 && global < SLOTS - FIRST_GLOBAL) && page != LAST;
}

/* Behind the last page of data is nobody's, so none that crosses from page to page begins in it. */
uint64_t slot_address(unsigned slot, uint64_t *random)
{
    uint64_t page = below(random, DATA_PAGES - 1) * PAGE;
    if (slot < SMALL)
        return TEST + slot * PAGE;
    if (slot < 15)
        return TEST + (1 + slot - SMALL) * LARGE + page;
    switch (slot) {
    case 15: return BIG + ((uintptr_t)data - MEMORY) + page;
    case 16: return HIGH;
    case 17: return HIGH + PAGE;
    case 18: return LAST;
    case POINTER: return TEST + 4 * LARGE + below(random, SMALL) * PAGE;
    default: return GLOBALS + (slot - FIRST_GLOBAL) * PAGE;
    }
}

static uint64_t bit_of(uint64_t *random, unsigned first, unsigned last) { return 1ul << (first + below(random, last - first + 1)); }

uint64_t slot_value(unsigned space, unsigned slot, uint64_t *random)
{
    static const uint8_t rights[] = { R, R | W, R | W, R | X, R | W | X, R | W | X, X };
    uint64_t odd = below(random, 10);
    if (slot == POINTER) {
        uint64_t more = odd < 3 ? bit_of(random, 6, 9) : odd == 3 ? U : odd == 4 ? bit_of(random, 54, 63) : 0;
        return pointer(tables[space].behind) | more;
    }
    unsigned level = level_of(slot);
    uint64_t target = (uintptr_t)data, bits = V | A | D | rights[below(random, sizeof rights)];
    if (below(random, 2))
        bits |= U;
    if (level == 0)
        target += below(random, DATA_PAGES) * PAGE;
    else if (level == 2)
        target = MEMORY;
    if (slot_may_be_nowhere(slot) && below(random, 6) == 0)
        target = nowhere[below(random, level ? 2 : 4)] & ~(level ? (PAGE << 9 * level) - 1 : 0);
    if (target == 0)
        target = nowhere[1];
    if (level && below(random, 5) == 0)
        target += bit_of(random, 12, 11 + 9 * level);
    if (odd < 3) /* of these A or D stays, so it is no pointer to a table in the data */
        bits ^= bit_of(random, 0, 4) | (below(random, 2) ? bit_of(random, 6, 7) : 0);
    else if (odd == 3)
        bits ^= bit_of(random, 6, 7);
    else if (odd == 4)
        bits |= bit_of(random, 54, 63);
    else if (odd == 5)
        bits |= bit_of(random, 8, 9);
    if (slot >= FIRST_GLOBAL)
        bits |= G;
    return entry(target, 0) | bits;
}

static void fill_data(uint64_t *random)
{
    static const uint16_t nop = 0x0001, c_ebreak = 0x9002, ebreak[] = { 0x0073, 0x0010 };
    for (unsigned page = 0; page < DATA_PAGES; page++) {
        uint64_t *words = (uint64_t *)(data + page * PAGE);
        for (unsigned i = 0; i < WORDS; i++)
            words[i] = xorshift(random);
        uint16_t *traps = (uint16_t *)words;
        for (unsigned i = TRAPS_FROM / 2; i < TRAPS_TO / 2; i += 4) {
            traps[i] = below(random, 4) ? nop : 0;
            traps[i + 1] = below(random, 2) ? nop : c_ebreak;
            traps[i + 2] = ebreak[0];
            traps[i + 3] = ebreak[1];
        }
        traps[TRAPS_TO / 2 - 2] = traps[TRAPS_TO / 2 - 1] = c_ebreak;
    }
}

static void fill_space(unsigned space, uint64_t *random)
{
    struct tables *of = &tables[space];
    uint64_t all = V | R | W | X | A | D;
    memset(of, 0, sizeof *of);
    /* Where all of ours is, in large pages or in a giant one. */
    for (unsigned i = 0; i < 8; i++)
        of->own[i] = entry(MEMORY + i * LARGE, all);
    of->root39[MEMORY / GIANT] = below(random, 2) ? entry(MEMORY, all) : pointer(of->own);
    of->root39[TEST / GIANT] = pointer(of->test);
    of->test[0] = pointer(of->small);
    of->root39[USER_CODE / GIANT] = pointer(of->user);
    of->user[0] = pointer(of->user_code);
    uint64_t writable = below(random, 2) ? W : 0;
    for (unsigned i = 0; i < CODE_BYTES / PAGE; i++)
        of->user_code[i] = entry((uintptr_t)code + i * PAGE, V | R | X | U | A | D | writable);
    of->root39[GLOBALS / GIANT] = pointer(globals[0]);
    of->root39[256] = pointer(of->high);
    of->high[0] = pointer(of->high_small);
    of->root39[511] = pointer(of->last);
    of->last[511] = pointer(of->last_small);
    of->root48[0] = of->root48[511] = pointer(of->root39);
    for (unsigned i = 0; i < SMALL; i++)
        of->behind[i] = slot_value(space, i % SURELY_MEMORY, random);
    for (unsigned slot = 0; slot < SLOTS; slot++)
        if (slot < FIRST_GLOBAL || space == 0)
            *place(space, slot) = slot_value(space, slot, random);
}

static bool hart_has_sv48(void)
{
    const char *mmu = fdt_string(&machine.fdt, &machine.boot_cpu, "mmu-type");
    return mmu && strcmp(mmu, "riscv,sv39") != 0;
}

void spaces_fill(uint64_t *random)
{
    fill_data(random);
    globals[0][0] = pointer(globals[1]);
    uint64_t asid = xorshift(random);
    for (unsigned space = 0; space < SPACES; space++) {
        fill_space(space, random);
        bool is_sv48 = below(random, 3) == 0 && hart_has_sv48();
        uint64_t *root = is_sv48 ? tables[space].root48 : tables[space].root39;
        satps[space] = (is_sv48 ? SV48 : SV39) << 60 | ((asid + space) & 0xffff) << 44 | (uintptr_t)root / PAGE;
    }
}
