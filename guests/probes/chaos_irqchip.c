#include <stdbool.h>
#include "aplic.h"
#include "chaos_irqchip.h"
#include "csr.h"
#include "imsic.h"
#include "irqchip_registers.h"
#include "machine.h"

#define SOURCE 10
#define STORM  24 /* messages at once */

static volatile uint32_t *word(uint64_t offset) { return (volatile uint32_t *)(uintptr_t)(irqchips[0].base + offset); }
static void load(uint64_t offset) { (void)*word(offset); }

/* --- PLIC: contexts of all harts, and of some that aren't there --- */

static void plic_open(void) {}

static void plic_configure(uint64_t r, uint64_t b) { *word(4 * (r % 96)) = b; }

static void plic_enable(uint64_t r, uint64_t b) { *word(0x2000 + 0x80 * (r % 32) + 4 * (b % 3)) = b >> 8; }

static void plic_deliver(uint64_t r, uint64_t b)
{
    load(0x200004 + 0x1000 * (r % 32));
    *word(0x200004 + 0x1000 * (r % 32)) = b & 1 ? SOURCE : b;
}

static void plic_listen(void)
{
    *word(4 * SOURCE) = 7;
    for (unsigned i = 0; i < machine.hart_count; i++)
        *word(0x2080 + 0x100 * i) = 1 << SOURCE;
}

static void plic_fight(uint64_t r)
{
    unsigned context = 2 * (r >> 8) % (2 * machine.hart_count) + 1;
    uint64_t claim = 0x200004 + 0x1000 * context;
    switch (r % 8) {
    case 1: case 2: case 3: load(claim); break;
    case 4: case 5: *word(claim) = SOURCE; break;
    case 6: *word(4 * SOURCE) = r >> 16 & 7; break;
    case 7: *word(0x2000 + 0x80 * context) = r & 1 << 20 ? 0xffffffff : 1 << SOURCE; break;
    }
}

static void plic_switch_all(uint64_t hart, uint32_t bits) { *word(0x2080 + 0x100 * hart + 4) = bits; }

static bool plic_serve(uint64_t r)
{
    volatile uint32_t *claim = word(0x201004 + r % machine.hart_count * 0x2000);
    *claim = *claim;
    return false;
}

/* --- APLIC, whether it interrupts harts itself or sends messages --- */

#define IN_CLRIP       0x1d00ul
#define IDC            0x4000ul
#define IDC_SIZE       32ul
#define CLAIMI         0x1cul
#define IDC_REGISTERS  5 /* idelivery, iforce, ithreshold, topi, claimi: not one behind the other */

/* A hart, mostly one that is there; and of the rest any bits. */
static uint32_t any_target(uint64_t b) { return b % 8 ? (b >> 8) % machine.hart_count << APLIC_TARGET_HART_SHIFT | (b >> 16 & 0xff) : b >> 8; }

static uint32_t any_source(uint64_t r)
{
    static const uint32_t likely[] = { SOURCE, 11, 32, 33, 34, 35 };
    return r & 1 ? likely[(r >> 1) % (sizeof likely / sizeof *likely)] : (r >> 1) % 1024;
}

static void aplic_configure_any(uint64_t r, uint64_t b)
{
    switch (r % 8) {
    case 0: case 1: case 2: *word(APLIC_SOURCECFG(any_source(r >> 8))) = b % 16 ? b >> 8 & 7 : b >> 8; break;
    case 3: case 4: *word(APLIC_TARGET(any_source(r >> 8))) = any_target(b); break; /* of source 0: genmsi */
    case 5: *word(APLIC_TARGET(0)) = any_target(b); break;
    case 6: *word(APLIC_DOMAINCFG) = b % 4 ? APLIC_DOMAINCFG_IE : b >> 8; break;
    case 7: {
        volatile uint32_t *any = (volatile uint32_t *)(uintptr_t)(irqchip_address(r >> 3) & ~3ul);
        if (b & 1) *any = b >> 8; else (void)*any;
        break;
    }
    }
}

/* setip, in_clrip, setie and clrie: by words, and by numbers. */
static void aplic_enable(uint64_t r, uint64_t b)
{
    uint64_t kind = 0x1c00 + (r & 3) * 0x100;
    if (r & 4)
        *word(kind + (r >> 3) % 32 * 4) = b & 1 ? UINT32_MAX : b;
    else if (r & 8)
        *word(kind + 0xdc) = any_source(b);
    else
        load(kind + (r >> 3) % 32 * 4);
}

static void aplic_deliver(uint64_t r, uint64_t b)
{
    static const uint64_t registers[IDC_REGISTERS] = { 0, 4, 8, 0x18, CLAIMI };
    uint64_t at = IDC + r % (machine.hart_count + 1) * IDC_SIZE + registers[(r >> 8) % IDC_REGISTERS];
    if (b & 1) *word(at) = b & 2 ? 1 : b >> 8; else load(at);
}

static void aplic_listen(void)
{
    *word(APLIC_SOURCECFG(SOURCE)) = APLIC_SOURCE_LEVEL_HIGH;
    *word(APLIC_TARGET(SOURCE)) = SOURCE;
    *word(APLIC_SETIENUM) = SOURCE;
}

static void aplic_open(void)
{
    *word(APLIC_DOMAINCFG) = APLIC_DOMAINCFG_IE;
    for (unsigned i = 0; i < machine.hart_count; i++)
        *word(IDC + IDC_SIZE * i) = 1;
}

static void aplic_fight(uint64_t r)
{
    unsigned hart = (r >> 8) % machine.hart_count;
    switch (r % 8) {
    case 1: case 2: load(IDC + IDC_SIZE * hart + CLAIMI); break;
    case 3: load(IN_CLRIP); break;
    case 4: case 5: *word(APLIC_SETIPNUM) = SOURCE; break;
    case 6: *word(APLIC_SOURCECFG(SOURCE)) = r & 1 << 20 ? APLIC_SOURCE_LEVEL_HIGH : r >> 16 & 7; *word(APLIC_SETIENUM) = SOURCE; break;
    case 7: *word(APLIC_TARGET(SOURCE)) = hart << APLIC_TARGET_HART_SHIFT | SOURCE; break;
    }
}

static void aplic_switch_all(uint64_t hart, uint32_t bits)
{
    *word(APLIC_TARGET(SOURCE)) = hart << APLIC_TARGET_HART_SHIFT | SOURCE;
    *word(bits ? 0x1e00 : 0x1f00) = UINT32_MAX; /* setie, clrie */
}

static bool aplic_serve(uint64_t r)
{
    load(IDC + IDC_SIZE * (r % machine.hart_count) + CLAIMI);
    return false;
}

/* --- IMSICs behind an APLIC --- */

static uint64_t csr_number(uint64_t r)
{
    static const uint64_t known[] = { IMSIC_EIDELIVERY, IMSIC_EITHRESHOLD, IMSIC_EIP(0), IMSIC_EIE(0), IMSIC_EIP(64), IMSIC_EIE(64), 0x30, 0x71, 0xff, 0x100 };
    return r & 1 ? known[(r >> 1) % (sizeof known / sizeof *known)] : r & 2 ? (r >> 2) % 0x200 : r;
}

/* By `siselect` and beside it: what isn't there is illegal. */
static void any_file_register(uint64_t r, uint64_t b)
{
    csr_write(CSR_SISELECT, csr_number(r >> 8));
    uint64_t value = b & 1 ? UINT64_MAX : b & 2 ? 1 : b >> 2;
    switch (r % 8) {
    case 0: csr_write(CSR_SIREG, value); break;
    case 1: csr_set(CSR_SIREG, value); break;
    case 2: csr_clear(CSR_SIREG, value); break;
    case 3: (void)csr_read(CSR_SIREG); break;
    case 4: csr_swap(CSR_STOPEI, value); break;
    case 5: (void)csr_read(CSR_STOPEI); break;
    case 6: csr_set(CSR_STOPEI, value); break;
    case 7: (void)csr_read(0xdb0); break; /* stopi */
    }
}

/* Messages to all harts, and some that no file takes: beyond the last one, or not a register. */
static void storm(uint64_t r, uint64_t b)
{
    for (unsigned i = 0; i < STORM; i++, b = b >> 1 | b << 63) {
        uint64_t file = (r + i) % (machine.hart_count + (r >> 32) % 2) * IMSIC_FILE_SIZE;
        *(volatile uint32_t *)(uintptr_t)(irqchips[1].base + file + (b % 16 ? 0 : b >> 8 & 0xffc)) = b & 1 << 20 ? b : b >> 8 & 63;
    }
}

static void imsic_open(void)
{
    *word(APLIC_DOMAINCFG) = APLIC_DOMAINCFG_IE;
    csr_write(CSR_SISELECT, IMSIC_EIE(0));
    csr_write(CSR_SIREG, UINT64_MAX);
    csr_write(CSR_SISELECT, IMSIC_EIDELIVERY);
    csr_write(CSR_SIREG, 1);
}

static void imsic_deliver(uint64_t r, uint64_t b)
{
    if (r & 1) storm(r >> 1, b); else any_file_register(r >> 1, b);
}

static void imsic_fight(uint64_t r)
{
    if (r % 8 < 3) csr_swap(CSR_STOPEI, 0); else aplic_fight(r);
}

/* What has been claimed doesn't come again by itself. */
static bool imsic_serve(uint64_t r) { return csr_swap(CSR_STOPEI, 0) != 0 && r % 8 != 0; }

static const struct irqchip_chaos
    plic = { plic_open, plic_configure, plic_enable, plic_deliver, plic_listen, plic_fight, plic_switch_all, plic_serve },
    direct = { aplic_open, aplic_configure_any, aplic_enable, aplic_deliver, aplic_listen, aplic_fight, aplic_switch_all, aplic_serve },
    messages = { imsic_open, aplic_configure_any, aplic_enable, imsic_deliver, aplic_listen, imsic_fight, aplic_switch_all, imsic_serve };

const struct irqchip_chaos *chaos_irqchip(void)
{
    irqchips_find();
    struct irqchip irqchip = irqchip_find(machine.boot_hart);
    return irqchip.driver == &plic_driver ? &plic : irqchip.driver == &aplic_driver ? &direct : &messages;
}
