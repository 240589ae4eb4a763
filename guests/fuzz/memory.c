#include "memory.h"
#include <string.h>
#include "gate.h"
#include "machine.h"
#include "random.h"
#include "trap.h"

#define ENTRIES 512
#define LEAF (PTE_V | PTE_A | PTE_D)
#define MEGAPAGE 0x200000ul

/* Pages are taken from here: far from the image, so that no relative jump leads from the tried-out code into it. */
#define ARENA_OFFSET 0x800000ul
#define ARENA_END    0xe00000ul

struct vcpu *vcpus[MAX_HARTS];
uint8_t *scratch;

static uintptr_t next_page;
static uint64_t arena_table[ENTRIES] __attribute__((aligned(4096)));
static uint64_t arena_user_table[ENTRIES] __attribute__((aligned(4096)));
static uint64_t uart_table[ENTRIES] __attribute__((aligned(4096)));
static uint64_t gigabyte[ENTRIES] __attribute__((aligned(4096)));
static uint64_t user_gigabyte[ENTRIES] __attribute__((aligned(4096)));
static uint64_t device_gigabyte[ENTRIES] __attribute__((aligned(4096)));
/* [devices][levels above Sv39's root] */
static uint64_t roots[2][3][ENTRIES] __attribute__((aligned(4096)));

static void *take_pages(unsigned count)
{
    void *page = (void *)next_page;
    next_page += count * PAGE;
    if (next_page > machine.memory_base + ARENA_END)
        fail("%u vCPUs need more than the %lu MiB that there are", vcpu_count, machine.memory_size >> 20);
    return page;
}

static unsigned slot(const void *p) { return (uintptr_t)p / PAGE % ENTRIES; }

static void map(const void *page, uint64_t flags, uint64_t user_flags)
{
    arena_table[slot(page)] = pte((uintptr_t)page, LEAF | flags);
    arena_user_table[slot(page)] = user_flags ? pte((uintptr_t)page, LEAF | PTE_U | user_flags) : 0;
}

uint64_t fence_entry(void) { return pte((uintptr_t)gigabyte, PTE_V); }
uint64_t user_entry(void) { return pte((uintptr_t)user_gigabyte, PTE_V); }

static void make_fences(void)
{
    uint64_t base = machine.memory_base;
    gigabyte[(base + ARENA_OFFSET) / MEGAPAGE % ENTRIES] = pte((uintptr_t)arena_table, PTE_V);
    user_gigabyte[(base + ARENA_OFFSET) / MEGAPAGE % ENTRIES] = pte((uintptr_t)arena_user_table, PTE_V);
    for (uint64_t at = PLIC_BASE; at < PLIC_BASE + PLIC_SIZE; at += MEGAPAGE)
        device_gigabyte[at / MEGAPAGE] = pte(at, LEAF | PTE_R | PTE_W);
    device_gigabyte[UART_BASE / MEGAPAGE] = pte((uintptr_t)uart_table, PTE_V);
    uart_table[0] = pte(UART_BASE, LEAF | PTE_R | PTE_W);
    for (int devices = 0; devices < 2; devices++) {
        uint64_t *root = roots[devices][0];
        if (devices)
            root[0] = pte((uintptr_t)device_gigabyte, PTE_V);
        root[1] = user_entry();
        root[2] = fence_entry();
        for (int level = 1; level < 3; level++)
            roots[devices][level][0] = pte((uintptr_t)roots[devices][level - 1], PTE_V);
    }
}

void memory_prepare(const uint64_t *ids, unsigned count)
{
    if (machine.memory_base != 0x80000000ul || machine.memory_size < ARENA_END + 0x200000)
        fail("at least 16 MiB of memory at 0x80000000 are needed");
    next_page = machine.memory_base + ARENA_OFFSET;
    scratch = take_pages(SCRATCH_PAGES);
    for (unsigned i = 0; i < SCRATCH_PAGES; i++)
        map(scratch + i * PAGE, PTE_R | PTE_W, PTE_R | PTE_W | PTE_X);
    /* First what is mapped, so that all of it is in one table. */
    for (unsigned i = 0; i < count; i++) {
        vcpus[i] = (struct vcpu *)((uint8_t *)take_pages(GATE_SIZE / PAGE + 1) + GATE_SIZE);
        memset(vcpus[i], 0, PAGE);
        map(vcpus[i], PTE_R, 0);
        gate_prepare(vcpus[i]);
        map((uint8_t *)vcpus[i] - PAGE, PTE_R | PTE_X, 0);
        vcpus[i]->code = take_pages(1);
        map(vcpus[i]->code, PTE_R | PTE_X, PTE_R | PTE_X);
        vcpus[i]->id = ids[i];
        vcpus[i]->index = i;
    }
    for (unsigned i = 0; i < count; i++) {
        vcpus[i]->start.stack_top = (uint8_t *)take_pages(1) + PAGE;
        vcpus[i]->tables = take_pages(TABLES);
    }
    make_fences();
}

uint64_t scratch_address(struct vcpu *v)
{
    uint64_t r = any(v);
    /* Often close to the end of a page, so that accesses cross it. */
    return (uintptr_t)scratch + (r & 4 ? (r >> 8) % (SCRATCH_PAGES * PAGE) & ~(r & 3)
                                       : (r >> 8 & (SCRATCH_PAGES - 1)) * PAGE + PAGE - (r >> 16 & 15));
}

void scratch_refill(struct vcpu *v)
{
    uint64_t *at = (uint64_t *)(scratch + (any(v) % (SCRATCH_PAGES * PAGE) & ~63ul));
    for (int i = 0; i < 8; i++)
        at[i] = any(v);
}

uint64_t satp_of(unsigned mode, const void *root) { return (uint64_t)mode << 60 | (uintptr_t)root / PAGE; }

uint64_t fence_satp(struct vcpu *v, bool devices)
{
    unsigned level = below(v, 3);
    return satp_of(8 + level, roots[devices][level]) | (any(v) & 7) << 44;
}
