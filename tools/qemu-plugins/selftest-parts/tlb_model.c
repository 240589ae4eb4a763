/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The model of tlb.so without QEMU: what the guests of the self-test can't have. Ends with 0 if all is as it should be. */
#include <stdio.h>
#include <string.h>

#include "../tlb_model.h"

enum { PAGES = 64, PAGE = 4096, PTE_V = 1, PTE_RWX_AD = 0xcf, FIRST = 1, SECOND = 20, DATA = 40 };

static uint64_t memory[PAGES][PAGE / 8];
static int failures;

static bool read_fake(uint64_t physical, uint64_t *value)
{
    if (physical >= sizeof memory) return false;
    *value = memory[physical / PAGE][physical % PAGE / 8];
    return true;
}

static void expect(const char *what, uint64_t is, uint64_t wanted)
{
    if (is == wanted) return;
    printf("%s: %lu, not %lu\n", what, (unsigned long)is, (unsigned long)wanted);
    failures++;
}

static uint64_t pte(uint64_t page, uint64_t flags) { return page << 10 | flags; }

/* Address 0 is at page DATA, by `levels` tables from page FIRST on; the second stage is an identity of as many levels.
   Its root has four pages. */
static struct access make_access(unsigned levels)
{
    memset(memory, 0, sizeof memory);
    for (unsigned level = levels - 1, page = FIRST; level > 0; level--, page++) memory[page][0] = pte(page + 1, PTE_V);
    memory[FIRST + levels - 1][0] = pte(DATA, PTE_RWX_AD);
    memory[SECOND][0] = pte(SECOND + 4, PTE_V);
    for (unsigned level = levels - 2, at = SECOND + 4; level > 0; level--, at++) memory[at][0] = pte(at + 1, PTE_V);
    for (unsigned i = 0; i < PAGES; i++) memory[SECOND + levels + 2][i] = pte(i, PTE_RWX_AD);
    uint64_t mode = (uint64_t)(levels + 5) << 60;
    return (struct access){.regime = {true, mode | FIRST, mode | SECOND}, .guest = true, .mode = MODE_VS, .read = read_fake};
}

static uint64_t reads_of(const struct model *m)
{
    const struct counts *c = &m->counts[MODE_VS];
    uint64_t sum = 0;
    for (int level = 0; level < MAX_LEVELS; level++) sum += c->first[level] + c->second[level];
    return sum;
}

/* A cold miss of n levels on n levels reads n * n + 2 n PTEs. */
static void test_cold_misses(void)
{
    static const struct kind as_is = {"as-is", AS_IS, 0}, shadow = {"shadow", SHADOW, 0};
    const struct sizes sizes = {.itlb = {1, 1}, .dtlb = {1, 1}};
    for (unsigned levels = 3; levels <= 5; levels++) {
        struct model two, one;
        struct access a = make_access(levels);
        model_init(&two, &as_is, &sizes, 3);
        model_init(&one, &shadow, &sizes, 3);
        model_access(&two, &a);
        model_access(&one, &a);
        expect("leaf", a.state == WALKED && a.path.physical == DATA * PAGE, true);
        expect("PTEs of a cold miss", reads_of(&two), levels * levels + 2 * levels);
        expect("PTEs of a cold miss in a shadow table", reads_of(&one), levels);
        model_access(&two, &a);
        expect("misses of a page that is in the TLB", two.counts[MODE_VS].walks, 1);
    }
}

static void test_unmapped(void)
{
    static const struct kind as_is = {"as-is", AS_IS, 0};
    struct access a = make_access(3);
    struct model m;
    memory[FIRST + 2][0] = 0;
    model_init(&m, &as_is, &(struct sizes){.itlb = {1, 1}, .dtlb = {1, 1}}, 3);
    model_access(&m, &a);
    expect("an access that no leaf translates", a.state == UNRESOLVED && reads_of(&m) == 0, true);
}

static const struct translation *put(struct tlb_cache *c, uint64_t page)
{
    cache_put(c, &(struct translation){.page = page, .shift = PAGE_SHIFT});
    return cache_find(c, page << PAGE_SHIFT, 0, 0);
}

/* Two sets of two: even pages and odd ones. The one that was used longest ago goes, of the same set. */
static void test_replacement(void)
{
    struct tlb_cache c;
    cache_init(&c, 4, 2);
    put(&c, 0), put(&c, 1), put(&c, 2), put(&c, 3);
    cache_find(&c, 0, 0, 0);
    put(&c, 4);
    expect("page 0, used last", cache_find(&c, 0, 0, 0) != NULL, true);
    expect("page 2, used longest ago", cache_find(&c, 2 << PAGE_SHIFT, 0, 0) != NULL, false);
    expect("page 1, of another set", cache_find(&c, 1 << PAGE_SHIFT, 0, 0) != NULL, true);
    expect("page 1, for another ASID", cache_find(&c, 1 << PAGE_SHIFT, 7, 0) != NULL, false);
    expect("page 1, as one of 2 MiB", cache_find(&c, 1 << PAGE_SHIFT, 0, 21) != NULL, false);
}

int main(void)
{
    test_cold_misses();
    test_unmapped();
    test_replacement();
    return failures != 0;
}
