/* Attacks on who keeps translations for the guest: address spaces, what is global, what is fenced, and where in a root it is. Nothing faults in the guest: each address is mapped to its scratch area or to
 * its memory, by pages and large pages, in Sv39 and, where there is that, Sv48, and the code and the stacks are where they are without translation. */
#include "attacks.h"
#include "csr.h"
#include "machine.h"
#include "memory.h"
#include "random.h"
#include "sbi.h"

#define ENTRIES   512
#define GIGABYTE  (1ul << 30)
#define MEGAPAGE  (1ul << 21)
#define MEMORY    8 /* large pages of the guest's memory that are mapped */
#define SUM       (1ul << 18)
#define MXR       (1ul << 19)
#define DATA      (PTE_V | PTE_R | PTE_W | PTE_A | PTE_D)
#define LOWEST    (ENTRIES / 2) /* of a root's upper half */

/* Pages of v->tables. */
enum { ROOTS39 = 0, ROOTS48 = 5, MIDDLES = 7, LEAVES = 11 };
_Static_assert(TABLES - LEAVES == 5, "a prime number of them: neighbours aren't alike");

static uint64_t any_leaf(struct vcpu *v)
{
    uint64_t r = any(v);
    return pte((uintptr_t)scratch + r % SCRATCH_PAGES * PAGE, DATA | (r & 0x100 ? PTE_G : 0) | (r & 0x600 ? 0 : PTE_U));
}

static uint64_t any_middle(struct vcpu *v)
{
    uint64_t r = any(v);
    if (r & 3)
        return pte((uintptr_t)v->tables[LEAVES + (r >> 8) % (TABLES - LEAVES)], PTE_V);
    return pte(machine.memory_base + (r >> 8) % MEMORY * MEGAPAGE, DATA | (r & 4 ? PTE_G : 0));
}

static uint64_t *middle(struct vcpu *v) { return v->tables[MIDDLES + below(v, LEAVES - MIDDLES)]; }

static void fill(struct vcpu *v)
{
    for (unsigned i = 0; i < ENTRIES; i++) {
        for (unsigned table = LEAVES; table < TABLES; table++)
            v->tables[table][i] = any_leaf(v);
        for (unsigned table = MIDDLES; table < LEAVES; table++)
            v->tables[table][i] = any_middle(v);
        for (unsigned root = ROOTS39; root < ROOTS48; root++)
            v->tables[root][i] = pte((uintptr_t)middle(v), PTE_V);
        for (unsigned root = ROOTS48; root < MIDDLES; root++)
            v->tables[root][i] = pte((uintptr_t)v->tables[below(v, ROOTS48)], PTE_V);
    }
    for (unsigned root = ROOTS39; root < ROOTS48; root++)
        v->tables[root][machine.memory_base / GIGABYTE] = pte(machine.memory_base & -GIGABYTE, DATA | PTE_X | (root & 1 ? PTE_G : 0));
    csr_set(sstatus, SUM);
}

static uint64_t asid_of(uint64_t r) { return (r & 1 ? r >> 8 & 0xffff : r >> 8 & 15) << 44; }

/* Another address space, or the same one by another number. True if it is one of Sv48; where there is none, what was entered last is kept. */
static bool enter(struct vcpu *v, unsigned roots)
{
    unsigned root = below(v, roots);
    csr_write(satp, satp_of(8, v->tables[root % ROOTS48]) | asid_of(any(v)));
    if (root >= ROOTS48)
        csr_write(satp, satp_of(9, v->tables[root]) | asid_of(any(v)));
    return csr_read(satp) >> 60 == 9;
}

/* An address that is mapped, in any entry of the root but that for the memory, mostly in few. */
static uint64_t mapped(struct vcpu *v, bool has_four_levels, bool is_upper)
{
    uint64_t r = any(v), entry = r & 7 ? r >> 3 & 1 : r >> 3 & (LOWEST - 1);
    uint64_t low = (r >> 16 & 7) << 21 | (r >> 24 & 31) << 12 | (r >> 32 & 0xff8);
    if (!has_four_levels && entry == machine.memory_base / GIGABYTE)
        entry++;
    unsigned bits = has_four_levels ? 39 : 30;
    return is_upper ? -((entry + 1) << bits) + low : entry << bits | low;
}

static void touch(uint64_t address)
{
    (void)*(volatile uint64_t *)address;
}

static void fence_some(struct vcpu *v, uint64_t at)
{
    uint64_t asid = asid_of(any(v)) >> 44;
    switch (any(v) & 7) {
    case 0:
        __asm__ volatile("sfence.vma" ::: "memory");
        break;
    case 1:
        __asm__ volatile("sfence.vma zero, %0" ::"r"(asid) : "memory");
        break;
    case 2:
        __asm__ volatile("sfence.vma %0, %1" ::"r"(at), "r"(asid) : "memory");
        break;
    case 3:
        sbi_call5(SBI_RFENCE, SBI_RFENCE_VMA_ASID, 0, UINT64_MAX, at & -PAGE, (any(v) & 31) * PAGE, asid);
        break;
    default:
        __asm__ volatile("sfence.vma %0, zero" ::"r"(at) : "memory");
    }
}

void attack_spaces(struct vcpu *v, uint64_t turn)
{
    if (turn == 0)
        fill(v);
    bool has_four_levels = enter(v, MIDDLES);
    for (unsigned i = below(v, 6); i; i--)
        touch(mapped(v, has_four_levels, any(v) & 1));
    if (turn & 1)
        fence_some(v, mapped(v, has_four_levels, any(v) & 1));
}

/* It changes what it has mapped all the time, pages and what is above them, and fences only then. */
void attack_changes(struct vcpu *v, uint64_t turn)
{
    if (turn == 0) {
        fill(v);
        enter(v, ROOTS48);
    }
    uint64_t at = mapped(v, false, false);
    touch(at);
    if (turn & 7)
        v->tables[LEAVES + below(v, TABLES - LEAVES)][at >> 12 & 511] = any_leaf(v);
    else
        middle(v)[at >> 21 & 511] = any_middle(v);
    fence_some(v, at);
    touch(at);
}

/* All of a root's upper half, entry by entry: where a hypervisor has something of its own in the tables, that has to go elsewhere all the time. */
void attack_windows(struct vcpu *v, uint64_t turn)
{
    if (turn == 0)
        fill(v);
    bool has_four_levels = turn % 64 ? csr_read(satp) >> 60 == 9 : enter(v, MIDDLES);
    touch(-((turn % LOWEST + 1) << (has_four_levels ? 39 : 30)) + (any(v) & 3 * PAGE));
}

/* What a kernel may reach changes: with SUM, without, and at last with MXR. */
void attack_views(struct vcpu *v, uint64_t turn)
{
    if (turn == 0) {
        fill(v);
        enter(v, ROOTS48);
    }
    uint64_t at = mapped(v, false, false);
    csr_set(sstatus, turn % 4096 == 4095 ? MXR : SUM);
    touch(at);
    csr_clear(sstatus, turn % 4 ? SUM : MXR);
    fence_some(v, at);
    csr_set(sstatus, SUM);
    if (turn % 64 == 63)
        enter(v, ROOTS48);
}

/* Privileged instructions in memory that is loaded, and stored to, between them, by all. */
void attack_texts(struct vcpu *v, uint64_t turn)
{
    static const uint32_t instructions[] = {
        0x140022f3, /* csrr t0, sscratch */
        0x00008067, /* ret */
        0x100022f3, /* csrr t0, sstatus */
        0x00008067,
        0x12000073, /* sfence.vma */
        0x00008067,
        0x104022f3, /* csrr t0, sie */
        0x00008067,
    };
    volatile uint32_t *code = (volatile uint32_t *)v->code;
    unsigned number = turn % (PAGE / sizeof instructions) * (sizeof instructions / 4);
    for (unsigned i = 0; i < sizeof instructions / 4 && turn < PAGE / sizeof instructions; i++)
        code[number + i] = instructions[i];
    if (turn < PAGE / sizeof instructions)
        __asm__ volatile("fence.i" ::: "memory");
    for (unsigned i = 0; i < sizeof instructions / 4; i += 2)
        ((void (*)(void))(v->code + (number + i) * 4))();
    if (turn % 32 == 31)
        touch((uintptr_t)vcpus[below(v, vcpu_count)]->code);
    if (turn % 256 == 255)
        code[number] = instructions[0];
}
