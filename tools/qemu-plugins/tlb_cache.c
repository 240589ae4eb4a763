/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tlb_cache.h"

#include <stdlib.h>

bool cache_init(struct tlb_cache *c, unsigned size, unsigned ways)
{
    *c = (struct tlb_cache){.size = size, .ways = ways, .sets = ways ? size / ways : 0};
    if (size) c->entries = calloc(size, sizeof *c->entries);
    return !size || c->entries;
}

static bool fits(const struct translation *t, uint64_t address, uint64_t tag)
{
    uint64_t matters = t->global ? ~(uint64_t)TAG_ASID_MASK : ~UINT64_C(0);
    return t->used && t->page == address >> t->shift && ((t->tag ^ tag) & matters) == 0;
}

/* Pages of each size are spread over the sets by the lowest bits of their number. */
static struct translation *set_of(const struct tlb_cache *c, uint64_t page)
{
    return c->entries + page % c->sets * c->ways;
}

static struct translation *search(const struct tlb_cache *c, uint64_t address, uint64_t tag, unsigned shift)
{
    for (uint64_t left = shift ? UINT64_C(1) << shift : c->shifts; left; left &= left - 1) {
        unsigned size = (unsigned)__builtin_ctzll(left);
        struct translation *set = set_of(c, address >> size);
        for (struct translation *t = set; t < set + c->ways; t++)
            if (t->shift == size && fits(t, address, tag)) return t;
    }
    return NULL;
}

const struct translation *cache_find(struct tlb_cache *c, uint64_t address, uint64_t tag, unsigned shift)
{
    if (!c->entries) return NULL;
    uint64_t number = address >> PAGE_SHIFT;
    unsigned *memo = &c->memo[(number ^ number >> 9 ^ tag) % MEMO_SIZE];
    struct translation *t = &c->entries[*memo];
    if (!fits(t, address, tag) || (shift && t->shift != shift)) {
        t = search(c, address, tag, shift);
        if (!t) return NULL;
        *memo = (unsigned)(t - c->entries);
    }
    t->used = ++c->clock;
    return t;
}

void cache_put(struct tlb_cache *c, const struct translation *new)
{
    if (!c->entries) return;
    struct translation *set = set_of(c, new->page), *oldest = set;
    for (struct translation *t = set + 1; t < set + c->ways; t++)
        if (t->used < oldest->used) oldest = t;
    *oldest = *new;
    oldest->used = ++c->clock;
    c->shifts |= UINT64_C(1) << new->shift;
}

void cache_drop(struct tlb_cache *c, bool (*drop)(const struct translation *, const void *), const void *data)
{
    for (struct translation *t = c->entries; t < c->entries + c->size; t++)
        if (t->used && drop(t, data)) t->used = 0;
}
