/* Loads and stores to devices and beyond. */
#include "code.h"
#include "csr.h"
#include "irqchip_registers.h"
#include "kinds.h"
#include "machine.h"
#include "memory.h"
#include "random.h"
#include "sbi.h"

#define PIECE 8
#define BASES 8 /* registers x8 to x15 */
#define UART_REGISTERS 0x100
#define WIDEST 8
#define GIGABYTE (1ul << 30)
#define MEGAPAGE (1ul << 21)

static uint64_t device_address(struct vcpu *v)
{
    /* Its load lasts until the watchdog: seldom. */
    if (once_in(v, 64))
        return GIVE_WAY_BASE + (any(v) & 7);
    return any(v) & 3 ? irqchip_address(any(v)) : UART_BASE + (any(v) & 3 ? any(v) & 7 : any(v) % (UART_REGISTERS - WIDEST));
}

unsigned try_devices(struct vcpu *v)
{
    code_start(v);
    registers_fill(v);
    for (int i = 0; i < BASES; i++)
        v->x[8 + i] = device_address(v);
    /* A register that was loaded is no address any more. */
    unsigned loaded = 0;
    for (int i = 0; i < PIECE; i++) {
        unsigned base = 8 + below(v, BASES);
        uint32_t bits = any_access(v, base, true);
        if (loaded & 1u << (base - 8))
            continue;
        if ((bits & 0x7f) == 0x03 && (bits >> 10 & 3) == 1)
            bits ^= 16u << 7; /* x24 to x31 instead of x8 to x15 */
        else if ((bits & 3) == 0)
            loaded |= 1u << (bits >> 2 & 7); /* if it loads; if not, no harm is done */
        code_add(v, bits);
    }
    return code_run(v, (struct setting){ .interrupts = true, .satp = 0, .limit_us = 50 });
}

/* One to one, but for what belongs to the fuzzer: that is as in the vCPU's fence. */
enum { WILD_ROOT, WILD_GIGABYTE, WILD_TABLES };

void wild_prepare(struct vcpu *v)
{
    if (!(kind_mask & 1u << KIND_WILD))
        return;
    v->wild = take_pages(WILD_TABLES);
    const uint64_t leaf = PTE_V | PTE_R | PTE_W | PTE_X | PTE_A | PTE_D;
    const uint64_t *fence = (const uint64_t *)((fence_entry(v) >> 10) * PAGE);
    uint64_t end = machine.memory_base + machine.memory_size;
    for (uint64_t i = 0; i < 512; i++) {
        v->wild[WILD_ROOT][i] = pte(i < 256 ? i * GIGABYTE : (i - 255) << 38, leaf);
        v->wild[WILD_GIGABYTE][i] = fence[i] ? fence[i] : machine.memory_base + i * MEGAPAGE >= end ? pte(machine.memory_base + i * MEGAPAGE, leaf) : 0;
    }
    v->wild[WILD_ROOT][2] = pte((uintptr_t)v->wild[WILD_GIGABYTE], PTE_V);
}

unsigned try_wild(struct vcpu *v)
{
    code_start(v);
    registers_fill(v);
    for (int i = 1; i < 32; i++)
        v->x[i] = edge_address(v);
    v->x[A7] = SBI_LEGACY_SHUTDOWN + 1; /* nobody's */
    for (int i = 0; i < PIECE; i++)
        code_add(v, once_in(v, 16) ? 0x00000067 | (8 + below(v, BASES)) << 15 : any_access(v, 8 + below(v, BASES), false));
    return code_run(v, (struct setting){ .interrupts = true, .satp = satp_of(8, v->wild[WILD_ROOT]), .limit_us = 20 });
}
