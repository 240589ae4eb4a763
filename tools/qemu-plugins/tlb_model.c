/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tlb_model.h"

#define ASID(atp) ((atp) >> 44 & 0xffff)
#define VMID(hgatp) ((hgatp) >> 44 & 0x3fff)

bool model_init(struct model *m, const struct kind *kind, const struct sizes *s, unsigned assumed_levels)
{
    *m = (struct model){.kind = kind, .assumed_levels = assumed_levels, .shared_walk = s->walk,
                        .shared_second_walk = s->second_walk};
    bool ok = cache_init(&m->tlb[UNIT_ITLB], s->itlb.entries, s->itlb.ways) &&
              cache_init(&m->tlb[UNIT_DTLB], s->dtlb.entries, s->dtlb.ways) &&
              cache_init(&m->l2, s->l2.entries, s->l2.ways) && cache_init(&m->second_tlb, s->second_tlb, s->second_tlb);
    for (unsigned i = 0; ok && i < MAX_LEVELS; i++) {
        unsigned first = i ? s->walk_of[i] : s->walk, second = i ? s->second_walk_of[i] : s->second_walk;
        ok = cache_init(&m->walk[i], first, first) && cache_init(&m->second_walk[i], second, second);
    }
    return ok;
}

uint64_t regime_tag(const struct regime *regime)
{
    if (!regime->virtual) return ASID(regime->first);
    return TAG_VIRTUAL | VMID(regime->second) << TAG_VMID_SHIFT | ASID(regime->first);
}

static unsigned region_shift(unsigned level) { return PAGE_SHIFT + LEVEL_BITS * level; }

static struct tlb_cache *walk_cache(struct model *m, unsigned level) { return &m->walk[m->shared_walk ? 0 : level]; }

static struct tlb_cache *second_walk_cache(struct model *m, unsigned level)
{
    return &m->second_walk[m->shared_second_walk ? 0 : level];
}

/* Levels of the second stage that the model gives this access; 0: none. */
static unsigned second_levels(const struct model *m, const struct access *a)
{
    unsigned levels = a->regime.virtual ? levels_of(a->regime.second) : 0;
    if (!a->guest) return levels;
    if (m->kind->kind == ONE_STAGE) return 0;
    return levels || m->kind->second_shift == 0 ? levels : m->assumed_levels;
}

/* The leaf of the second stage: the tables' one, or one of the size that the model has for all. */
static struct leaf second_leaf(const struct model *m, const struct access *a, struct leaf of_tables)
{
    unsigned shift = m->kind->second_shift;
    if (!a->guest || !shift) return of_tables;
    return (struct leaf){(uint8_t)((shift - PAGE_SHIFT) / LEVEL_BITS), (uint8_t)shift};
}

/* The level of the first PTE that has to be read: what is above is in a cache of PTEs that aren't leaves. One at the
   leaf's level or below is left of a table that was there before, and no help. */
static unsigned first_level(struct model *m, struct tlb_cache *(*cache)(struct model *, unsigned), uint64_t address,
                            uint64_t tag, unsigned levels, unsigned leaf)
{
    for (unsigned level = leaf + 1; level < levels; level++)
        if (cache_find(cache(m, level), address, tag, region_shift(level))) return level - 1;
    return levels - 1;
}

/* Guest physical to physical. */
static void second_stage(struct model *m, const struct access *a, uint64_t address, struct leaf leaf, uint64_t tag)
{
    unsigned levels = second_levels(m, a);
    if (!levels || cache_find(&m->second_tlb, address, tag, 0)) return;
    struct translation t = {.tag = tag, .guest_physical = address, .second_shift = leaf.shift};
    unsigned level = first_level(m, second_walk_cache, address, tag, levels, leaf.level) + 1;
    while (level-- > leaf.level) {
        m->counts[a->mode].second[level]++;
        t.shift = (uint8_t)(level > leaf.level ? region_shift(level) : leaf.shift);
        t.page = address >> t.shift;
        cache_put(level > leaf.level ? second_walk_cache(m, level) : &m->second_tlb, &t);
    }
}

/* Reads the PTEs from the root to the leaf, as far as no cache has them. In a shadow table's entries are what both
   stages come to, so nothing but itself is read. */
static void first_stage(struct model *m, const struct access *a, unsigned levels, struct leaf leaf, uint64_t tag)
{
    const struct path *path = &a->path;
    bool shadow = a->guest && m->kind->kind == SHADOW;
    unsigned level = first_level(m, walk_cache, a->address, tag, levels, leaf.level) + 1;
    while (level-- > leaf.level) {
        uint8_t shift = (uint8_t)region_shift(level);
        struct translation t = {.page = a->address >> shift, .shift = shift, .tag = tag};
        if (!shadow) {
            struct leaf second = second_leaf(m, a, path->second_of_table[level]);
            second_stage(m, a, path->table[level], second, tag & ~(uint64_t)TAG_ASID_MASK);
            t.guest_physical = path->table[level];
            t.second_shift = second_levels(m, a) ? second.shift : 0;
        }
        m->counts[a->mode].first[level]++;
        if (level > leaf.level) cache_put(walk_cache(m, level), &t);
    }
}

static struct leaf smaller(struct leaf a, struct leaf b) { return a.shift < b.shift ? a : b; }

static bool resolve(struct access *a)
{
    if (a->state == NOT_WALKED) a->state = walk_tables(&a->regime, a->address, a->read, &a->path) ? WALKED : UNRESOLVED;
    return a->state == WALKED;
}

/* Counts the walk, and makes the translation that it gives. */
static bool walk(struct model *m, struct access *a, unsigned first, unsigned second, uint64_t tag, struct translation *t)
{
    if (!resolve(a)) return false;
    const struct path *path = &a->path;
    struct leaf of_second = second_leaf(m, a, path->second), both = path->first;
    if (second) both = first ? smaller(path->first, of_second) : of_second;
    if (a->guest && m->kind->kind == SHADOW) first_stage(m, a, first ? first : second, both, tag);
    else {
        if (first) first_stage(m, a, first, path->first, tag);
        second_stage(m, a, path->guest_physical, of_second, tag & ~(uint64_t)TAG_ASID_MASK);
    }
    *t = (struct translation){.page = a->address >> both.shift, .shift = both.shift, .tag = tag, .global = path->global,
                              .guest_physical = path->guest_physical, .second_shift = second ? of_second.shift : 0};
    m->counts[a->mode].walks++;
    return true;
}

void model_access(struct model *m, struct access *a)
{
    unsigned first = levels_of(a->regime.first), second = second_levels(m, a);
    if (!first && !second) return; /* not translated */
    uint64_t tag = regime_tag(&a->regime);
    if (cache_find(&m->tlb[a->unit], a->address, tag, 0)) return;
    m->counts[a->mode].misses[a->unit]++;
    const struct translation *found = cache_find(&m->l2, a->address, tag, 0);
    struct translation new;
    if (found) new = *found;
    else if (!walk(m, a, first, second, tag, &new)) return;
    else cache_put(&m->l2, &new);
    cache_put(&m->tlb[a->unit], &new);
}
