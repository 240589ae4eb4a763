/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A cache of translations with LRU replacement: what TLBs and page-walk caches of the model are made of. */
#ifndef TLB_CACHE_H
#define TLB_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PAGE_SHIFT = 12, MEMO_SIZE = 256 };

/* Whose translation: V, VMID and ASID in one word. */
#define TAG_VIRTUAL (UINT64_C(1) << 63)
enum { TAG_VMID_SHIFT = 16, TAG_ASID_MASK = 0xffff };

struct translation {
    uint64_t page;  /* address >> shift */
    uint64_t tag;
    uint64_t guest_physical; /* what the second stage translated to get it, for HFENCE.GVMA */
    uint64_t used;           /* when it was used last; 0: the entry is empty */
    uint8_t shift;           /* it translates 1 << shift bytes */
    uint8_t second_shift;    /* of the second stage's leaf behind guest_physical; 0: there is none */
    bool global;             /* of every ASID */
};

struct tlb_cache {
    struct translation *entries; /* set by set; NULL if it has none */
    unsigned size, ways, sets;
    uint64_t clock; /* counts uses */
    uint64_t shifts; /* a bit for each shift that was ever put in: other sets needn't be looked at */
    unsigned memo[MEMO_SIZE]; /* where an address was found last: only makes finding fast */
};

/* Of `size` entries, which must be a multiple of `ways`; 0 of both: a cache that never has anything. False: no memory. */
bool cache_init(struct tlb_cache *, unsigned size, unsigned ways);
/* The translation of `address`, which becomes the one that was used last; NULL if there is none. A `shift` of 0 takes
   any size. */
const struct translation *cache_find(struct tlb_cache *, uint64_t address, uint64_t tag, unsigned shift);
/* Puts it in the place of the one of its set that was used longest ago. */
void cache_put(struct tlb_cache *, const struct translation *);
/* Drops those of which `drop` says so. */
void cache_drop(struct tlb_cache *, bool (*drop)(const struct translation *, const void *), const void *data);

#endif
