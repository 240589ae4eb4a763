#include "emit.h"
#include "groups.h"
#include "spaces.h"

#define LOAD      0x03
#define LOAD_FP   0x07
#define MISC_MEM  0x0f
#define OP_IMM    0x13
#define STORE     0x23
#define STORE_FP  0x27
#define AMO       0x2f
#define JALR      0x67
#define SYSTEM    0x73
#define SATP      0x180
#define RA        1
#define CBO       2
#define CBO_ZERO  4
#define FENCE_I   0x0000100f
#define SFENCE_VMA 0x09
#define NOP       0x00000013

/* No canonical one, none that is mapped, one that is in Sv48 only, the places of code. */
static uint64_t nobodys_page(void)
{
    static const uint64_t pages[] = {
        0, 0x900000, 0x2000000000, 0x4000010000, 0x8000000000, 0x800000000000, 0x7fffffffffff000, 0x8000000000000000,
        0xffffffbffffff000, 0xffff800000000000, 0x100000000 + 12 * PAGE, 0x100000000 + 5 * LARGE, USER_CODE + CODE_BYTES, 0xffffffffffffe000,
    };
    return pages[random_below(sizeof pages / sizeof pages[0])];
}

static uint64_t page_of_kind(bool is_memory)
{
    uint64_t bits = random_bits() | 1;
    unsigned slot;
    switch (random_below(16)) {
    case 0: return nobodys_page();
    case 1:
    case 2: return (uintptr_t)data + random_below(DATA_PAGES - 1) * PAGE;
    default:
        do
            slot = random_below(SLOTS);
        while (is_memory && slot_may_be_nowhere(slot));
        return slot_address(slot, &bits);
    }
}

uint64_t any_page(void) { return page_of_kind(false); }

/* For atomic accesses, which QEMU carries out as a load and a store on a machine with one hart: where nothing is, the load's access fault comes before the store's
 * page fault there. */
static uint64_t page_of_memory(void) { return page_of_kind(true); }

/* An address in it: within its data, or across its end; a store leaves alone what can be executed. */
static uint64_t within(uint64_t page, unsigned width, bool is_store)
{
    switch (random_below(8)) {
    case 0:
        if (can_be_crossed(page))
            return page + PAGE - 1 - random_below(7);
        return page;
    case 1:
    case 2: return page + random_below(is_store ? TRAPS_FROM - 7 : PAGE - 8);
    default: return page + random_below(TRAPS_FROM / width) * width;
    }
}

static unsigned base_with(uint64_t address, int32_t immediate)
{
    unsigned base = random_target();
    emit_constant(base, address - immediate);
    return base;
}

static int32_t any_immediate(void) { return random_one_in(2) ? 0 : (int32_t)random_below(4096) - 2048; }

void group_load_or_store(void)
{
    unsigned kind = random_below(16), funct3;
    bool is_store = kind >= 8, is_float = random_one_in(6);
    int32_t immediate = any_immediate();
    funct3 = is_float ? 2 + random_below(2) : random_below(is_store ? 4 : 7);
    unsigned width = 1 << (funct3 & 3);
    group_begin(0);
    uint64_t address = within(any_page(), width, is_store);
    if (!is_float && random_one_in(5)) { /* C.LW, C.LD, C.SW, C.SD */
        static const uint16_t compressed[] = { 0x4000, 0x6000, 0xc000, 0xe000 };
        unsigned which = random_below(2) + 2 * is_store, base = 8 + random_below(8), other = 8 + random_below(8);
        emit_constant(base, within(any_page(), 8, is_store));
        emit16(compressed[which] | (base - 8) << 7 | (other - 8) << 2);
    } else {
        unsigned base = base_with(address, immediate);
        if (is_store)
            emit_s(is_float ? STORE_FP : STORE, funct3, base, random_rs(), immediate);
        else
            emit_i(is_float ? LOAD_FP : LOAD, funct3, is_float ? random_rs() : random_rd(), base, immediate);
    }
    group_end();
}

void group_atomic(void)
{
    static const uint8_t functions[] = { 0x00, 0x01, 0x04, 0x08, 0x0c, 0x10, 0x14, 0x18, 0x1c, 0x02 };
    unsigned function = functions[random_below(sizeof functions)], width = 2 + random_below(2);
    group_begin(0);
    uint64_t page = page_of_memory(), place = page + random_below(TRAPS_FROM / 8) * 8;
    if (random_one_in(8) && !program_is_vectored())
        place = within(page, 8, true);
    unsigned base = base_with(place, 0);
    emit_r(AMO, width, function << 2 | random_below(4), random_rd(), base, function == 0x02 ? 0 : random_rs());
    group_end();
}

/* Until it is stored: a hart may lose a reservation whenever it likes. Where it can't be stored, SC traps with its register as it was, or with 1 of an earlier attempt: so that is 1. */
void group_loop_of_reservation(void)
{
    unsigned width = 2 + random_below(2), value = random_target(), result, base;
    do
        result = random_target();
    while (result == value);
    do
        base = random_target();
    while (base == value || base == result);
    unsigned stored = random_rs();
    group_begin(WHOLE | WHOLE_FOR_USER);
    emit_i(OP_IMM, 0, result, 0, 1);
    emit_constant(base, page_of_memory() + random_below(TRAPS_FROM / 8) * 8);
    emit_r(AMO, width, 0x02 << 2, value, base, 0);
    emit_r(AMO, width, 0x03 << 2, result, base, stored == result ? 0 : stored); /* not how often it was tried */
    emit32(0x80000000 | 0x7e000000 | result << 15 | 1 << 12 | 0xc << 8 | 1 << 7 | 0x63); /* BNEZ result, -8 */
    group_end();
}

/* All but CBO.ZERO only where there is memory, if it can be reached: else QEMU 10's harts do nothing, and a second stage of translation faults. */
void group_cache_block(void)
{
    static const uint16_t functions[] = { 0, 1, 2, 3, CBO_ZERO, CBO_ZERO };
    uint64_t bits = random_bits() | 1, page = any_page();
    unsigned function = functions[random_below(6)];
    if (function != CBO_ZERO)
        page = program_goes_bare() ? (uintptr_t)data + random_below(DATA_PAGES) * PAGE : slot_address(random_below(SURELY_MEMORY), &bits);
    group_begin(0);
    unsigned base = base_with(page + random_below(TRAPS_FROM), 0);
    emit_i(MISC_MEM, CBO, 0, base, function);
    group_end();
}

void group_wild_jump(void)
{
    group_begin(WHOLE);
    unsigned base = base_with(any_page() + TRAPS_FROM + random_below((TRAPS_TO - TRAPS_FROM) / 2 - 4) * 2, 0);
    emit_i(JALR, 0, RA, base, 0);
    group_end();
}

void group_address_space(void)
{
    uint64_t value = space_satp(random_below(SPACES));
    if (program_goes_bare() && random_one_in(6))
        value = 0;
    else if (random_one_in(8)) /* a mode that there isn't */
        value = (value & ~(0xful << 60)) | (random_one_in(2) ? 10 + random_below(6) : 1 + random_below(7)) << 60;
    group_begin(WHOLE);
    unsigned base = base_with(value, 0);
    emit_csr(CSRRW, random_rd(), SATP, base);
    group_end();
}

/* Changes an entry of a table, and fences what that asks for. */
void group_table_entry(void)
{
    uint64_t bits = random_bits() | 1;
    unsigned space = random_below(SPACES), slot = random_below(SLOTS), form = random_below(4);
    unsigned base, value, address, asid;
    bool is_global = slot >= FIRST_GLOBAL;
    base = random_target();
    do
        value = random_target();
    while (value == base);
    address = base;
    asid = value;
    group_begin(WHOLE | FENCES);
    emit_constant(base, slot_place(space, slot));
    emit_constant(value, slot_value(space, slot, &bits));
    emit_s(STORE, 3, base, value, 0);
    bool names_address = (form & 1) && !slot_is_pointer(slot), names_asid = (form & 2) && !is_global;
    if (names_address)
        emit_constant(address, slot_address(slot, &bits));
    if (names_asid)
        emit_constant(asid, space_asid(space));
    emit_r(SYSTEM, 0, SFENCE_VMA, 0, names_address ? address : 0, names_asid ? asid : 0);
    group_end();
}

void group_fence(void)
{
    static const uint8_t functions[] = { 0x09, 0x09, 0x09, 0x0b };
    group_begin(0);
    switch (random_below(6)) {
    case 0: emit32(FENCE_I); break;
    case 1: emit_i(MISC_MEM, 0, 0, 0, random_below(256)); break;
    case 2: emit_r(SYSTEM, 0, 0x0c, 0, 0, random_below(2)); break; /* SFENCE.W.INVAL, SFENCE.INVAL.IR */
    default: emit_r(SYSTEM, 0, functions[random_below(4)], 0, random_one_in(2) ? 0 : random_rs(), random_one_in(2) ? 0 : random_rs());
    }
    group_end();
}

/* The instruction behind it is another when it comes there. */
void group_rewritten_code(void)
{
    unsigned base = random_target(), value;
    do
        value = random_target();
    while (value == base);
    group_begin(WHOLE | FENCES_CODE);
    emit_constant(value, calculation());
    unsigned target = emit_at() + ADDRESS_BYTES + 4 + 4;
    emit_address(base, (random_one_in(4) ? USER_CODE : (uintptr_t)code) + target);
    emit_s(STORE, 2, base, value, 0);
    emit32(FENCE_I);
    group_end();
    group_begin(0);
    emit32(NOP);
    group_end();
}
