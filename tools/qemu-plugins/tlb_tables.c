/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tlb_tables.h"

enum { OFFSET_BITS = 12, NAPOT_SHIFT = 16, MODE_SHIFT = 60, MODE_SV39 = 8, X4_BITS = 2 };
enum { PTE_V = 1, PTE_R = 2, PTE_X = 8, PTE_G = 0x20 };
#define PPN_MASK ((UINT64_C(1) << 44) - 1)
#define PTE_N (UINT64_C(1) << 63)

unsigned levels_of(uint64_t atp)
{
    unsigned mode = (unsigned)(atp >> MODE_SHIFT);
    return mode < MODE_SV39 || mode > MODE_SV39 + 2 ? 0 : mode - MODE_SV39 + 3;
}

static unsigned level_shift(unsigned level) { return OFFSET_BITS + LEVEL_BITS * level; }

static uint64_t pte_address(uint64_t table, uint64_t address, unsigned level, unsigned root_bits)
{
    uint64_t index = address >> level_shift(level) & ((UINT64_C(1) << (LEVEL_BITS + root_bits)) - 1);
    return table + index * sizeof(uint64_t);
}

/* Whether the PTE is a leaf that can be; then also what it translates. */
static bool take_leaf(uint64_t pte, uint64_t address, unsigned level, struct leaf *leaf, uint64_t *result)
{
    unsigned shift = level_shift(level);
    uint64_t base = (pte >> 10 & PPN_MASK) << OFFSET_BITS;
    if (!(pte & (PTE_R | PTE_X))) return false;
    if (pte & PTE_N) {
        if (level != 0) return false;
        shift = NAPOT_SHIFT;
    }
    uint64_t offset = (UINT64_C(1) << shift) - 1;
    *leaf = (struct leaf){(uint8_t)level, (uint8_t)shift};
    *result = (base & ~offset) | (address & offset);
    return true;
}

static bool second_stage(uint64_t hgatp, uint64_t address, read_memory *read, struct leaf *leaf, uint64_t *result)
{
    unsigned levels = levels_of(hgatp), level = levels;
    uint64_t table = (hgatp & PPN_MASK) << OFFSET_BITS, pte;
    while (level-- > 0) {
        unsigned root_bits = level == levels - 1 ? X4_BITS : 0;
        if (!read(pte_address(table, address, level, root_bits), &pte) || !(pte & PTE_V)) return false;
        if (take_leaf(pte, address, level, leaf, result)) return true;
        table = (pte >> 10 & PPN_MASK) << OFFSET_BITS;
    }
    if (levels) return false;
    *result = address;
    return true;
}

bool walk_tables(const struct regime *regime, uint64_t address, read_memory *read, struct path *path)
{
    uint64_t hgatp = regime->virtual ? regime->second : 0;
    unsigned levels = levels_of(regime->first), level = levels;
    uint64_t table = (regime->first & PPN_MASK) << OFFSET_BITS, at, pte;
    *path = (struct path){.first_levels = levels, .second_levels = levels_of(hgatp), .guest_physical = address};
    bool found = levels == 0;
    while (!found && level-- > 0) {
        path->table[level] = pte_address(table, address, level, 0);
        if (!second_stage(hgatp, path->table[level], read, &path->second_of_table[level], &at)) return false;
        if (!read(at, &pte) || !(pte & PTE_V)) return false;
        if (pte & PTE_G) path->global = true; /* of a table too: it is of all that is below */
        found = take_leaf(pte, address, level, &path->first, &path->guest_physical);
        table = (pte >> 10 & PPN_MASK) << OFFSET_BITS;
    }
    return found && second_stage(hgatp, path->guest_physical, read, &path->second, &path->physical);
}
