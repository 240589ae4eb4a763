#include "memory.h"
#include "gate.h"
#include "irqchip_registers.h"
#include "machine.h"
#include "random.h"
#include "trap.h"

#define ENTRIES 512
#define LEAF (PTE_V | PTE_A | PTE_D)
#define MEGAPAGE 0x200000ul

/* Pages are taken from here: far from the image, so that no relative jump leads from the tried-out code into it. */
#define ARENA_OFFSET 0x600000ul
#define ARENA_END    0xe00000ul

struct vcpu *vcpus[MAX_HARTS];
uint8_t *scratch;

/* What a vCPU's code may reach. Each vCPU has its own: in another's gate or code, nothing that happens would be its own. */
struct fence {
    uint64_t arena[ENTRIES];
    uint64_t user_arena[ENTRIES];
    uint64_t gigabyte[ENTRIES];
    uint64_t user_gigabyte[ENTRIES];
    uint64_t roots[2][3][ENTRIES]; /* [devices][levels above Sv39's root] */
};

static uintptr_t next_page;
static uint64_t uart_table[ENTRIES] __attribute__((aligned(4096)));
static uint64_t device_gigabyte[ENTRIES] __attribute__((aligned(4096)));

void *take_pages(unsigned count)
{
    void *page = (void *)next_page;
    next_page += count * PAGE;
    if (next_page > machine.memory_base + ARENA_END)
        fail("%u vCPUs need more than the %lu MiB that there are", vcpu_count, machine.memory_size >> 20);
    return page;
}

void clear_pages(void *pages, unsigned count)
{
    /* The library's memset goes by bytes: half a millisecond for the pages of each vCPU, in which nothing is tried yet. */
    volatile uint64_t *at = pages;
    for (unsigned i = 0; i < count * PAGE / sizeof *at; i += 8) {
        at[i] = at[i + 1] = at[i + 2] = at[i + 3] = 0;
        at[i + 4] = at[i + 5] = at[i + 6] = at[i + 7] = 0;
    }
}

static unsigned slot(const void *p) { return (uintptr_t)p / PAGE % ENTRIES; }

static void map(struct fence *fence, const void *page, uint64_t flags, uint64_t user_flags)
{
    fence->arena[slot(page)] = pte((uintptr_t)page, LEAF | flags);
    fence->user_arena[slot(page)] = user_flags ? pte((uintptr_t)page, LEAF | PTE_U | user_flags) : 0;
}

uint64_t fence_entry(const struct vcpu *v) { return pte((uintptr_t)v->fence->gigabyte, PTE_V); }
uint64_t user_entry(const struct vcpu *v) { return pte((uintptr_t)v->fence->user_gigabyte, PTE_V); }

static void map_devices(void)
{
    irqchips_find();
    for (unsigned i = 0; i < irqchip_count; i++) {
        for (uint64_t at = irqchips[i].base; at < irqchips[i].base + irqchips[i].size; at += MEGAPAGE)
            device_gigabyte[at / MEGAPAGE] = pte(at, LEAF | PTE_R | PTE_W);
    }
    device_gigabyte[UART_BASE / MEGAPAGE] = pte((uintptr_t)uart_table, PTE_V);
    uart_table[0] = pte(UART_BASE, LEAF | PTE_R | PTE_W);
}

static void make_fence(struct vcpu *v)
{
    struct fence *fence = take_pages(sizeof *fence / PAGE);
    unsigned arena = (machine.memory_base + ARENA_OFFSET) / MEGAPAGE % ENTRIES;
    clear_pages(fence, sizeof *fence / PAGE);
    v->fence = fence;
    for (unsigned i = 0; i < SCRATCH_PAGES; i++)
        map(fence, scratch + i * PAGE, PTE_R | PTE_W, PTE_R | PTE_W | PTE_X);
    map(fence, v, PTE_R, 0);
    map(fence, gate_of(v) + PAGE, PTE_R | PTE_X, 0);
    map(fence, v->code, PTE_R | PTE_X, PTE_R | PTE_X);
    fence->gigabyte[arena] = pte((uintptr_t)fence->arena, PTE_V);
    fence->user_gigabyte[arena] = pte((uintptr_t)fence->user_arena, PTE_V);
    for (int devices = 0; devices < 2; devices++) {
        uint64_t *root = fence->roots[devices][0];
        if (devices)
            root[0] = pte((uintptr_t)device_gigabyte, PTE_V);
        root[1] = user_entry(v);
        root[2] = fence_entry(v);
        for (int level = 1; level < 3; level++)
            fence->roots[devices][level][0] = pte((uintptr_t)fence->roots[devices][level - 1], PTE_V);
    }
}

void memory_prepare(const uint64_t *ids, unsigned count)
{
    if (machine.memory_base != 0x80000000ul || machine.memory_size < ARENA_END + 0x200000)
        fail("at least 16 MiB of memory at 0x80000000 are needed");
    next_page = machine.memory_base + ARENA_OFFSET;
    scratch = take_pages(SCRATCH_PAGES);
    /* First what is mapped, so that all of it is in one megapage. */
    for (unsigned i = 0; i < count; i++) {
        vcpus[i] = (struct vcpu *)((uint8_t *)take_pages(GATE_SIZE / PAGE + 1) + GATE_SIZE);
        clear_pages(vcpus[i], 1);
        gate_prepare(vcpus[i]);
        vcpus[i]->code = take_pages(1);
        vcpus[i]->id = ids[i];
        vcpus[i]->index = i;
    }
    for (unsigned i = 0; i < count; i++) {
        vcpus[i]->start.stack_top = (uint8_t *)take_pages(1) + PAGE;
        vcpus[i]->tables = take_pages(TABLES);
        make_fence(vcpus[i]);
    }
    map_devices();
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
    return satp_of(8 + level, v->fence->roots[devices][level]) | (any(v) & 7) << 44;
}
