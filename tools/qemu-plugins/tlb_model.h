/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The model: one hart's TLBs and page-walk caches, of one set of sizes, under one way to translate guests' addresses.
 * Knows nothing of QEMU. tlb_model.c has the accesses, tlb_fence.c the fences.
 */
#ifndef TLB_MODEL_H
#define TLB_MODEL_H

#include "mode.h"
#include "tlb_cache.h"
#include "tlb_tables.h"

/* How many entries a TLB has, and how many of them are in a set. */
struct size {
    unsigned entries, ways;
};

/* A set of sizes. Page-walk caches are fully associative, and have the PTEs that aren't leaves. */
struct sizes {
    struct size itlb, dtlb, l2;
    unsigned walk, second_walk; /* one cache for the PTEs of all levels ... */
    unsigned walk_of[MAX_LEVELS], second_walk_of[MAX_LEVELS]; /* ... or one for each level */
    unsigned second_tlb; /* guest physical to physical: leaves of the second stage */
};

/* How a guest's addresses are translated. Those of others always are as their registers say. */
enum translation_kind {
    AS_IS,     /* as the registers and the tables say */
    ONE_STAGE, /* by the guest's own tables alone: the bare machine */
    TWO_STAGE, /* by both, with leaves of one size in the second stage */
    SHADOW,    /* by one table that has both stages in it, with the smaller page of the two */
};

struct kind {
    const char *name;
    enum translation_kind kind;
    unsigned second_shift; /* size of all leaves of the second stage; 0: as the tables say */
};

enum tlb_unit { UNIT_ITLB, UNIT_DTLB };

struct counts {
    uint64_t misses[2]; /* of the ITLB and the DTLB */
    uint64_t walks;     /* misses of all levels of TLBs */
    uint64_t first[MAX_LEVELS], second[MAX_LEVELS]; /* PTEs read, by stage and level */
};

struct model {
    const struct kind *kind;
    struct tlb_cache tlb[2], l2, second_tlb;
    struct tlb_cache walk[MAX_LEVELS], second_walk[MAX_LEVELS]; /* a shared one is the one of level 0 */
    bool shared_walk, shared_second_walk;
    unsigned assumed_levels; /* of a second stage where the machine has none */
    struct counts counts[MODES];
};

/* One access to one page. */
struct access {
    uint64_t address;
    struct regime regime;
    enum tlb_unit unit;
    enum mode mode; /* who executes: whose count it is */
    bool guest;     /* the kind is for it */
    read_memory *read;
    enum { NOT_WALKED, WALKED, UNRESOLVED } state; /* of `path`, which is found once for all models */
    struct path path;
};

/* False: no memory. */
bool model_init(struct model *, const struct kind *, const struct sizes *, unsigned assumed_levels);
/* Whether `address` was translated by the TLBs or by walking; a walk is counted. */
void model_access(struct model *, struct access *);
/* V, VMID and ASID of a regime. */
uint64_t regime_tag(const struct regime *);

enum fence_kind { SFENCE_VMA, HFENCE_VVMA, HFENCE_GVMA, FENCE_KINDS };

struct fence {
    enum fence_kind kind;
    bool virtual;                   /* of an SFENCE.VMA: executed in VS-mode, so for vsatp's translations */
    bool one_address, one_space;    /* rs1, rs2 weren't x0 */
    uint64_t address, space;        /* a guest physical one and a VMID for HFENCE.GVMA, else an ASID */
    uint64_t vmid;                  /* hgatp's */
};

void model_fence(struct model *, const struct fence *);

#endif
