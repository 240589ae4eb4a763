/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sv39 tables with pages of each size, for guests whose TLB misses the self-test knows. A VS-mode guest has the same.
 *
 *   RAM     1 GiB identity, for the code
 *   SMALL   4 KiB pages, all of them the same page of memory; a table of its own of level 0
 *   LARGE   a 2 MiB page, the one that the program is in
 *   NAPOT   two ranges of 64 KiB
 *   GLOBAL  4 KiB pages of every ASID
 */
#ifndef TRANSLATED_H
#define TRANSLATED_H

#include "guest.h"

enum { PAGE = 4096, PTE_V = 1, PTE_RWX_AD = 0xcf, PTE_U = 0x10, PTE_G = 0x20, ENTRIES = 512, PROGRAM = 0x80200000 >> 12 };
#define SMALL 0x100000000ul
#define LARGE (SMALL + 0x200000)
#define NAPOT (SMALL + 0x400000)
#define GLOBAL (SMALL + 0x600000)
#define PTE_N (1ul << 63)

typedef uint64_t table[ENTRIES] __attribute__((aligned(PAGE)));
static table root, level_1, small, napot, global;
static char page[PAGE] __attribute__((aligned(PAGE)));

static inline uint64_t pte(uint64_t number, uint64_t flags) { return number << 10 | flags; }
static inline uint64_t number_of(const void *p) { return (uint64_t)p >> 12; }

static inline void make_tables(void)
{
    root[2] = pte(0x80000000ul >> 12, PTE_RWX_AD);
    root[4] = pte(number_of(level_1), PTE_V);
    level_1[0] = pte(number_of(small), PTE_V);
    level_1[1] = pte(PROGRAM, PTE_RWX_AD);
    level_1[2] = pte(number_of(napot), PTE_V);
    level_1[3] = pte(number_of(global), PTE_V);
    for (int i = 0; i < ENTRIES; i++) {
        small[i] = pte(number_of(page), PTE_RWX_AD);
        global[i] = pte(number_of(page), PTE_RWX_AD | PTE_G);
    }
    for (uint64_t i = 0; i < 32; i++) napot[i] = PTE_N | pte(PROGRAM + i / 16 * 16 + 8, PTE_RWX_AD);
}

static inline uint64_t atp(uint64_t asid) { return 8ul << 60 | asid << 44 | number_of(root); }

/* touches.S. Loads from `count` addresses, `stride` apart, `rounds` times: translated by satp, which is 0 before and
   after; in VS-mode, translated by vsatp and hgatp. Nothing else is translated but the fetches, from one page. */
void touch(uint64_t satp, uint64_t address, uint64_t stride, uint64_t count, uint64_t rounds);
void touch_from_alias(uint64_t satp, uint64_t address, uint64_t stride, uint64_t count, uint64_t rounds, uint64_t alias); /* the loop is fetched so far above where it is */
void touch_in_vs(uint64_t vsatp, uint64_t address, uint64_t stride, uint64_t count, uint64_t rounds);
void touch_in_window(uint64_t vsatp, uint64_t address, uint64_t stride, uint64_t count, uint64_t rounds); /* in VU-mode; window 7 is a round more */
void fence_often(uint64_t satp); /* five times in a row */
void fence_in_vs(uint64_t vsatp);

/* What a guest can do; one of it is built into it. */
#define POSSIBLE static __attribute__((unused)) void

#endif
