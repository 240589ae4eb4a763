/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a fence takes out of the model. No more than the privileged specification asks for, so that what stays is what
 * may stay: a fence for one address leaves PTEs that aren't leaves, and translations of other pages; a fence for one
 * ASID leaves global ones. (A hart may drop more.)
 */
#include "tlb_model.h"

static bool same_vmid(const struct translation *t, uint64_t vmid)
{
    return (t->tag & TAG_VIRTUAL) && (t->tag & ~TAG_VIRTUAL) >> TAG_VMID_SHIFT == vmid;
}

/* SFENCE.VMA and HFENCE.VVMA: translations of virtual addresses. */
static bool first_stage_drops(const struct translation *t, const struct fence *f)
{
    bool virtual = f->kind == HFENCE_VVMA || f->virtual;
    if (virtual ? !same_vmid(t, f->vmid) : (t->tag & TAG_VIRTUAL) != 0) return false;
    if (f->one_space && (t->global || (t->tag & TAG_ASID_MASK) != f->space)) return false;
    return !f->one_address || t->page == f->address >> t->shift;
}

/* HFENCE.GVMA: whatever a leaf of the second stage was needed for. */
static bool second_stage_drops(const struct translation *t, const struct fence *f)
{
    if (!(t->tag & TAG_VIRTUAL) || (f->one_space && !same_vmid(t, f->space))) return false;
    return !f->one_address || (t->second_shift && (t->guest_physical ^ f->address) >> t->second_shift == 0);
}

static bool drops_leaf(const struct translation *t, const void *fence)
{
    const struct fence *f = fence;
    return f->kind == HFENCE_GVMA ? second_stage_drops(t, f) : first_stage_drops(t, f);
}

static bool drops_table(const struct translation *t, const void *fence)
{
    const struct fence *f = fence;
    if (f->kind == HFENCE_GVMA) return second_stage_drops(t, f);
    return !f->one_address && first_stage_drops(t, f);
}

static bool drops_second_table(const struct translation *t, const void *fence)
{
    const struct fence *f = fence;
    return f->kind == HFENCE_GVMA && !f->one_address && second_stage_drops(t, f);
}

static bool drops_second_leaf(const struct translation *t, const void *fence)
{
    const struct fence *f = fence;
    return f->kind == HFENCE_GVMA && second_stage_drops(t, f);
}

void model_fence(struct model *m, const struct fence *f)
{
    if (f->kind == HFENCE_GVMA && m->kind->kind == ONE_STAGE) return; /* of a stage that it doesn't have */
    cache_drop(&m->tlb[UNIT_ITLB], drops_leaf, f);
    cache_drop(&m->tlb[UNIT_DTLB], drops_leaf, f);
    cache_drop(&m->l2, drops_leaf, f);
    cache_drop(&m->second_tlb, drops_second_leaf, f);
    for (int level = 0; level < MAX_LEVELS; level++) {
        cache_drop(&m->walk[level], drops_table, f);
        cache_drop(&m->second_walk[level], drops_second_table, f);
    }
}
