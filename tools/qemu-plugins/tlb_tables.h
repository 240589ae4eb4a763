/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Walks the page tables that are in the machine's memory, as the hart does: what an access is translated by. */
#ifndef TLB_TABLES_H
#define TLB_TABLES_H

#include <stdbool.h>
#include <stdint.h>

enum { MAX_LEVELS = 5, LEVEL_BITS = 9 };

/* The registers that translate an access. */
struct regime {
    bool virtual;    /* V=1: the first stage is vsatp's, the second hgatp's; else satp's alone */
    uint64_t first;  /* satp or vsatp */
    uint64_t second; /* hgatp; nothing if not virtual */
};

/* How a stage translates one address. Levels have the privileged specification's numbers: 0 is that of 4 KiB pages. */
struct leaf {
    uint8_t level, shift; /* 1 << shift bytes: more than the level's if it is a NAPOT range */
};

struct path {
    unsigned first_levels, second_levels;  /* of the tables; 0: Bare */
    struct leaf first;                     /* if there is a first stage */
    struct leaf second;                    /* of the page itself, if there is a second stage */
    uint64_t table[MAX_LEVELS];            /* address of the first stage's PTE at each level, down to the leaf's */
    struct leaf second_of_table[MAX_LEVELS]; /* and what translates that */
    bool global;
    uint64_t guest_physical, physical; /* the same without a second stage */
};

/* Levels of the tables that satp, vsatp or hgatp names: 0 for Bare. */
unsigned levels_of(uint64_t atp);

/* Reads a doubleword of physical memory; false if there is no memory. */
typedef bool read_memory(uint64_t physical, uint64_t *value);

/* False if no leaf is reached: the tables have changed since the hart was allowed its access. */
bool walk_tables(const struct regime *, uint64_t address, read_memory *, struct path *);

#endif
