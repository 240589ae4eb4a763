/* Random page tables of all modes, and accesses through them. Entry 2 of the table for 512 GiB always leads to the gate and the code; all other
 * entries are anything: tables in each other, at the wrong level, leaves with any permissions, reserved bits, superpages, misaligned ones. */
#include "code.h"
#include "kinds.h"
#include "machine.h"
#include "memory.h"
#include "random.h"
#include "sbi.h"

#define PIECE 6
#define CHANGES 6
#define MEGAPAGE 0x200000ul
#define USED 8 /* entries of each table that are likely to be used; 2 is the fence's in the roots */

/* Pages of v->tables: the roots of the three modes, then tables for the levels below. */
enum { ROOT39, ROOT48, ROOT57, FIRST_FREE };

static uint64_t leaf_flags(struct vcpu *v)
{
    uint64_t r = any(v), flags = (r & 0xff) | (r & 0x300 ? PTE_V : 0) | (r & 0xc00 ? PTE_A | PTE_D : 0);
    if ((r & 0x7000) == 0)
        flags |= any(v) & 0x3ff; /* RSW */
    if ((r & 0x38000) == 0)
        flags |= any(v) & 0xffc0000000000000; /* reserved, PBMT, N */
    /* Without R, W and X it would be a table, and what it points to no tables: their entries lead beyond memory. */
    if (!(flags & (PTE_R | PTE_W | PTE_X)) && !(kind_mask & 1u << KIND_WILD))
        flags &= ~PTE_V;
    return flags;
}

/* S-mode must not execute what anybody can write. It is readable then: with neither it would be a table, and anybody would write the entries. */
static uint64_t entry_for_scratch(struct vcpu *v)
{
    uint64_t flags = leaf_flags(v);
    if (!(flags & PTE_U) && flags & PTE_X)
        flags = (flags & ~PTE_X) | PTE_R;
    return pte((uintptr_t)scratch + below(v, SCRATCH_PAGES) * PAGE, 0) | flags;
}

static uint64_t entry_for_code(struct vcpu *v) { return pte((uintptr_t)v->code, 0) | (leaf_flags(v) & ~PTE_W) | PTE_X; }

/* A leaf that covers more than scratch: read only, and executed by U-mode only. */
static uint64_t entry_for_memory(struct vcpu *v)
{
    uint64_t flags = (leaf_flags(v) & ~PTE_W) | PTE_R;
    if (!(flags & PTE_U))
        flags &= ~PTE_X;
    uint64_t offset = below(v, machine.memory_size);
    if (once_in(v, 2))
        offset &= ~(MEGAPAGE - 1);
    /* Where it stands for a gigabyte it is misaligned; where for a megapage, it is that one or misaligned. */
    return pte(machine.memory_base + offset, 0) | flags;
}

static uint64_t any_entry(struct vcpu *v)
{
    uint64_t r = any(v);
    switch (r & 15) {
    case 0:
        return 0;
    case 1:
    case 2:
    case 3:
    case 4:
    case 5:
        return pte((uintptr_t)v->tables[below(v, TABLES)], PTE_V) | (r & 0x700 ? 0 : any(v) & (PTE_U | PTE_G | PTE_A | PTE_D));
    case 6:
    case 7:
        return entry_for_code(v);
    case 8:
        return entry_for_memory(v);
    case 9:
        if (kind_mask & 1u << KIND_WILD)
            return r & 0x100 ? pte(edge_address(v) & ~0x200000ul, 0) | (leaf_flags(v) & ~(PTE_W | PTE_X)) : any(v) & ~(PTE_W | PTE_X);
        return any(v) & ~(uint64_t)PTE_V;
    default:
        return entry_for_scratch(v);
    }
}

static void change_tables(struct vcpu *v)
{
    for (int i = 0; i < CHANGES; i++) {
        unsigned table = below(v, TABLES), slot = once_in(v, 8) ? below(v, 512) : below(v, USED);
        if ((table == ROOT39 && slot == 2) || ((table == ROOT48 || table == ROOT57) && slot == 0))
            continue;
        v->tables[table][slot] = any_entry(v);
    }
    v->tables[ROOT39][2] = fence_entry(v);
    v->tables[ROOT48][0] = pte((uintptr_t)v->tables[ROOT39], PTE_V);
    v->tables[ROOT57][0] = pte((uintptr_t)v->tables[ROOT48], PTE_V);
}

/* A virtual address that goes through entries that are likely to be there; seldom a non-canonical one. */
static uint64_t virtual_address(struct vcpu *v, unsigned levels)
{
    uint64_t r = any(v), address = r & 0xff8;
    if (r & 1)
        address |= 0xff8 | (r >> 1 & 7); /* across the end of the page */
    for (unsigned level = 0; level < levels; level++)
        address |= below(v, USED) << (12 + 9 * level);
    if ((r >> 12 & 63) == 0)
        address ^= 1ul << (11 + 9 * levels + below(v, 20));
    return address;
}

unsigned try_paging(struct vcpu *v)
{
    unsigned levels = 3 + below(v, 3);
    bool user = once_in(v, 3);
    change_tables(v);
    if (user)
        v->tables[ROOT39][1] = user_entry(v);
    code_start(v);
    registers_fill(v);
    for (int i = 1; i < 32; i++) {
        if (any(v) & 3)
            v->x[i] = virtual_address(v, levels);
    }
    v->x[A7] = SBI_LEGACY_SEND_IPI + below(v, 4); /* their hart masks are read through these tables as well */
    for (int i = 0; i < PIECE; i++) {
        uint32_t bits = once_in(v, 6) ? 0x00000067 | (8 + below(v, 8)) << 15      /* jump there */
            : once_in(v, 8)           ? 0x12000073 | (any(v) & 0x1ff8000)         /* sfence.vma */
            : once_in(v, 16)          ? 0x16000073 | (any(v) & 0x1ff8000)         /* sinval.vma */
            : once_in(v, 16)          ? ECALL
                                      : any_access(v, 8 + below(v, 8), false);
        if (user)
            code_add_exactly(v, bits);
        else
            code_add(v, bits);
    }
    return code_run(v, (struct setting){
        .user = user, .interrupts = true, .limit_us = 10, .satp = satp_of(5 + levels, v->tables[levels - 3]) | (any(v) & 7) << 44 });
}
