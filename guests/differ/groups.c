#include "groups.h"
#include "emit.h"
#include "machine.h"
#include "sbi.h"
#include "spaces.h"

#define OP_IMM    0x13
#define OP_IMM_32 0x1b
#define OP        0x33
#define OP_32     0x3b
#define LUI       0x37
#define AUIPC     0x17
#define OP_FP     0x53
#define BRANCH    0x63
#define JAL       0x6f
#define SYSTEM    0x73
#define ECALL     0x00000073
#define EBREAK    0x00100073
#define SRET      0x10200073
#define WFI       0x10500073
#define MRET      0x30200073
#define C_EBREAK  0x9002
#define C_NOP     0x0001
#define RA        1
#define A0        10
#define A6        16
#define A7        17

#define SSTATUS    0x100
#define SIE        0x104
#define STVEC      0x105
#define SCOUNTEREN 0x106
#define SENVCFG    0x10a
#define SSCRATCH   0x140
#define SEPC       0x141
#define SCAUSE     0x142
#define STVAL      0x143
#define SIP        0x144
#define STIMECMP   0x14d
#define SATP       0x180
#define CYCLE      0xc00

#define STATUS_SPIE 0x20
#define STATUS_SPP  0x100
#define SOFTWARE    2
#define TIMER       32

extern const char gate_tables[];

uint32_t calculation(void)
{
    static const uint8_t opcodes[] = { OP_IMM, OP_IMM, OP_IMM_32, OP, OP, OP_32, LUI, AUIPC };
    static const uint8_t functions[] = { 0x00, 0x00, 0x20, 0x01, 0x07, 0x10, 0x05, 0x30 };
    uint32_t opcode = opcodes[random_below(8)], bits = random_bits() << 15 | random_rd() << 7 | opcode;
    if ((opcode == OP || opcode == OP_32) && !random_one_in(8))
        bits = (bits & ~(0x7fu << 25)) | (uint32_t)functions[random_below(8)] << 25;
    return bits | random_below(8) << 12;
}

static void group_calculation(void)
{
    group_begin(0);
    emit32(calculation());
    group_end();
}

/* Those of the first, second and third quadrant that do nothing but to registers, or are illegal. */
static void group_compressed(void)
{
    uint16_t bits;
    group_begin(0);
    do {
        uint16_t any = random_bits() & 0x1fff;
        switch (random_below(6)) {
        case 0: bits = any & ~3; break;                             /* C.ADDI4SPN */
        case 1: bits = (any & ~3) | 2; break;                       /* C.SLLI */
        case 2: bits = 0x8000 | (any & ~3) | 2 | 1 << 2; break;     /* C.MV, C.ADD */
        case 3: bits = random_one_in(2) ? 0x8002 : 0; break;        /* illegal */
        default: bits = (any & ~3) | 1 | random_below(5) << 13;
        }
    } while ((bits >> 7 & 31) == 1 || (bits >> 7 & 31) == 4);
    emit16(bits);
    group_end();
}

static unsigned any_csr(void)
{
    static const uint16_t known[] = {
        SSTATUS, SSTATUS, SSTATUS, SIE, SIE, SIP, SIP, STVEC, SCOUNTEREN, SENVCFG, SSCRATCH, SEPC, SCAUSE, STVAL, STIMECMP, SATP, 1, 2, 3,
    };
    static const uint16_t others[] = {
        0x000, 0x004, 0x005, 0x008, 0x009, 0x00a, 0x00f, 0x011, 0x015, 0x017, 0x041, 0x044, 0x102, 0x103, 0x107, 0x10c, 0x10d, 0x10e, 0x10f,
        0x120, 0x14a, 0x14b, 0x150, 0x151, 0x15c, 0x181, 0x200, 0x204, 0x240, 0x244, 0x280, 0x300, 0x304, 0x305, 0x344, 0x600, 0x602, 0x643,
        0x680, 0x5a8, 0x7a0, 0x7b0, 0xb00, 0xc20, 0xc21, 0xc22, 0xc80, 0xda0, 0xdb0, 0xe12, 0xf11, 0xf12, 0xf14, 0xfb0, 0x5c0, 0x800, 0x9c0, 0xcc0,
        0xdc0,
    };
    switch (random_below(10)) {
    case 0: return random_below(4096);
    case 1: return others[random_below(sizeof others / sizeof others[0])];
    default: return known[random_below(sizeof known / sizeof known[0])];
    }
}

/* Can a write of it end our hold on the hart, or is what it holds the time's? There are groups of their own for these. */
static bool is_read_only_here(unsigned number) { return number == STVEC || number == STIMECMP || number == SATP; }

static bool is_counter(unsigned number) { return number >= CYCLE && number < CYCLE + 32; }

/* `time` can always be read: where a hart refuses it, OpenSBI (1.5) reads it for the program, whatever scounteren says. */
static void emit_counters(unsigned function, unsigned source)
{
    const unsigned time = 2;
    if (function & 4) {
        emit_csr(function, random_rd(), SCOUNTEREN, function == CSRRCI ? source & ~time : source | time);
        return;
    }
    unsigned base = random_target();
    emit_constant(base, function == CSRRC ? random_bits() & ~(uint64_t)time : random_bits() | time);
    emit_csr(function, random_rd(), SCOUNTEREN, base);
}

/* Fields that nobody writes, as QEMU 10's harts aren't as the specification has it there: bit 0 of sepc is kept, though it is always 0; so is sstatus.UXL, which may be 3
 * (128 bits) then; and in VS-mode bits 2, 6, 10 of sie and sip reach those of VS-mode itself, which are at 1, 5, 9. */
static void group_csr(void)
{
    static const uint8_t functions[] = { CSRRW, CSRRS, CSRRC, CSRRWI, CSRRSI, CSRRCI };
    unsigned number = any_csr(), function = functions[random_below(6)], source = random_one_in(4) ? 0 : random_rs();
    if (is_counter(number))
        number = SSCRATCH;
    if (is_read_only_here(number)) {
        function |= 2;
        source = 0;
    }
    group_begin(0);
    if (number == SCOUNTEREN) {
        emit_counters(function, source);
        group_end();
        return;
    }
    if (number == SEPC || number == SSTATUS || number == SIE || number == SIP) {
        uint64_t keep = number == SEPC ? 1 : number == SSTATUS ? 3ul << 32 : 0x444, kept = number == SSTATUS && function == CSRRW ? 2ul << 32 : 0;
        if (number == SSTATUS && function == CSRRWI)
            function = CSRRSI;
        if (function & 4)
            source &= ~keep;
        if (!(function & 4) && (source || function == CSRRW)) {
            source = random_target();
            emit_constant(source, (random_bits() & ~keep) | kept);
        }
    }
    emit_csr(function, random_rd(), number, source);
    group_end();
}

/* Whatever it counts is forgotten: only whether it can be read is the same each time. */
static void group_counter(void)
{
    unsigned rd = random_target();
    group_begin(WHOLE);
    emit_csr(CSRRS, rd, CYCLE + (random_one_in(3) ? random_below(32) : random_below(3)), 0);
    emit_i(OP_IMM, 0, rd, 0, random_below(2048));
    group_end();
}

static void group_status(void)
{
    unsigned base = random_target();
    group_begin(0);
    if (random_one_in(3))
        emit_i(OP_IMM, 0, base, 0, (random_below(2) ? STATUS_SPIE | STATUS_SPP : 2) & random_bits());
    else
        emit32(((1 << 18 | 1 << 19 | 3 << 13) & random_bits()) | base << 7 | LUI);
    emit_csr(random_one_in(2) ? CSRRS : CSRRC, random_rd(), SSTATUS, base);
    group_end();
}

static void group_interrupts(void)
{
    static const uint16_t bits[] = { SOFTWARE, TIMER, SOFTWARE | TIMER, 0x222, 0xfbbb };
    unsigned base = random_target();
    group_begin(0);
    emit_constant(base, bits[random_below(5)]);
    emit_csr(random_one_in(3) ? CSRRC : CSRRS, random_rd(), random_one_in(2) ? SIE : SIP, base);
    group_end();
}

static void group_handler(void)
{
    uint64_t mode = random_one_in(6) ? 2 + random_below(2) : program_is_vectored() ? random_below(2) : 0, value = (uintptr_t)gate_tables + random_below(2) * 64 + mode;
    unsigned base = random_target();
    group_begin(WHOLE);
    emit_constant(base, value);
    emit_csr(CSRRW, random_rd(), STVEC, base);
    group_end();
}

/* Long ago, or never: what is near may come before an instruction or behind it. */
static uint64_t any_deadline(void)
{
    static const uint64_t deadlines[] = { 0, 1, UINT64_MAX, UINT64_MAX - 1, 1ul << 62, 1ul << 63 };
    return deadlines[random_below(6)];
}

/* Without Sstc the timer is the firmware's. */
static void emit_call_of_timer(uint64_t deadline)
{
    emit_constant(A0, deadline);
    emit_constant(A6, SBI_TIME_SET);
    emit_constant(A7, SBI_TIME);
    emit32(ECALL);
}

static void group_timer(void)
{
    unsigned base = random_target();
    group_begin(WHOLE);
    if (machine.has_sstc) {
        emit_constant(base, any_deadline());
        emit_csr(CSRRW, random_rd(), STIMECMP, base);
    } else {
        emit_call_of_timer(any_deadline());
    }
    group_end();
}

static void group_wait(void)
{
    group_begin(WHOLE);
    if (random_one_in(2)) {
        unsigned base = random_target();
        if (machine.has_sstc)
            emit_csr(CSRRWI, 0, STIMECMP, 0);
        else
            emit_call_of_timer(0);
        emit_constant(base, TIMER);
        emit_csr(CSRRS, 0, SIE, base);
    } else {
        emit_csr(CSRRSI, 0, SIE, SOFTWARE);
        emit_csr(CSRRSI, 0, SIP, SOFTWARE);
    }
    while (emit_at() % PAGE > PAGE - 8) /* where it is the last one of a page and traps, QEMU 10 says that it was on the next one */
        emit16(C_NOP);
    emit32(WFI);
    group_end();
}

static void group_return(void)
{
    enum { BYTES = ADDRESS_BYTES + 6 * 4 };
    unsigned base = random_target(), bits;
    do
        bits = random_target();
    while (bits == base);
    bool to_user = random_one_in(2), is_odd = random_one_in(8);
    uint64_t begin = to_user ^ is_odd ? USER_CODE : (uintptr_t)code;
    uint32_t set = (to_user ? 0 : STATUS_SPP) | (random_below(2) ? STATUS_SPIE : 0);
    group_begin(WHOLE);
    emit_address(base, begin + emit_at() + BYTES);
    emit_csr(CSRRW, 0, SEPC, base);
    emit_i(OP_IMM, 0, bits, 0, set);
    emit_csr(CSRRS, 0, SSTATUS, bits);
    emit_i(OP_IMM, 0, bits, 0, set ^ (STATUS_SPP | STATUS_SPIE));
    emit_csr(CSRRC, 0, SSTATUS, bits);
    emit32(SRET);
    group_end();
}

/* Calls whose answers any firmware would give. */
static void group_call(void)
{
    static const struct {
        uint32_t extension;
        uint8_t function, arguments;
        uint64_t a[5];
    } calls[] = {
        { 0x10, 3, 1, { 0x10 } }, { 0x10, 3, 1, { 0x54494d45 } }, { 0x10, 3, 1, { 0x0badbeef } }, { 0x10, 100, 0, { 0 } },
        { 0x0badbeef, 0, 0, { 0 } }, { 0x54494d45, 0, 1, { 0 } }, { 0x54494d45, 0, 1, { UINT64_MAX } }, { 0x54494d45, 1, 0, { 0 } },
        { 0x735049, 0, 2, { 1, 0 } }, { 0x735049, 0, 2, { 0, UINT64_MAX } }, { 0x735049, 0, 2, { 0, 0 } },
        { 0x52464e43, 0, 2, { 1, 0 } }, { 0x52464e43, 1, 4, { 1, 0, 0x100000000, 0x3000 } }, { 0x52464e43, 1, 4, { 1, 0, 0, UINT64_MAX } },
        { 0x52464e43, 2, 5, { 1, 0, 0x100000000, 0x1000, 3 } }, { 0x48534d, 2, 1, { 0 } }, { 0x48534d, 2, 1, { 99 } }, { 0x53525354, 7, 0, { 0 } },
    };
    unsigned which = random_below(sizeof calls / sizeof calls[0]);
    group_begin(WHOLE);
    for (unsigned i = 0; i < calls[which].arguments; i++)
        emit_constant(A0 + i, calls[which].a[i]);
    emit_constant(A6, calls[which].function);
    emit_constant(A7, calls[which].extension);
    emit32(ECALL);
    group_end();
}

static void group_breakpoint(void)
{
    group_begin(0);
    if (random_one_in(2))
        emit32(EBREAK);
    else
        emit16(C_EBREAK);
    group_end();
}

/* Returns of other modes, hypervisor's accesses and fences, waits, and what is nothing at all. WFI is left out: in S-mode it may wait for ever. */
static void group_system(void)
{
    static const uint32_t known[] = {
        0x00200073, 0x7b200073, 0x70200073, 0x00d00073, 0x01d00073, 0x22000073, 0x62000073, 0x26000073, 0x66000073, 0x60004073,
        0x6c004073, 0x68054573, 0x64154073, 0x10300073, 0x10400073, 0x00000073 | 1 << 7, 0x00100073 | 1 << 15, 0x10200073 | 1 << 7, 0x14000073, MRET, MRET,
    };
    uint32_t bits;
    do
        bits = random_one_in(2) ? known[random_below(sizeof known / sizeof known[0])] : (random_bits() << 20 | SYSTEM);
    while (bits == ECALL || bits == SRET || bits == WFI);
    group_begin(0);
    emit32(bits);
    group_end();
}

/* Opcodes that the harts haven't, or not here: custom ones, vectors, reserved ones. */
static void group_illegal(void)
{
    static const uint8_t opcodes[] = { 0x0b, 0x2b, 0x5b, 0x7b, 0x57, 0x77, 0x6b, 0x1f, 0x3f, 0x5f, 0x7f };
    uint32_t bits = random_bits() << 12 | random_rd() << 7 | opcodes[random_below(sizeof opcodes)];
    group_begin(0);
    emit32(random_one_in(8) ? 0xffffffff : bits);
    group_end();
}

static void group_float(void)
{
    static const uint8_t opcodes[] = { OP_FP, OP_FP, OP_FP, OP_FP, 0x43, 0x47, 0x4b, 0x4f };
    static const uint8_t functions[] = { 0x00, 0x01, 0x04, 0x05, 0x08, 0x09, 0x0c, 0x0d, 0x10, 0x11, 0x14, 0x15, 0x20, 0x21, 0x2c, 0x2d,
                                         0x50, 0x51, 0x60, 0x61, 0x68, 0x69, 0x70, 0x71, 0x78, 0x79 };
    uint32_t bits = random_bits() << 12 | random_rd() << 7 | opcodes[random_below(sizeof opcodes)];
    if (!random_one_in(8))
        bits = (bits & ~(0x7fu << 25)) | (uint32_t)functions[random_below(sizeof functions)] << 25;
    if (!random_one_in(4))
        bits = (bits & ~(7u << 12)) | 7u << 12;
    group_begin(0);
    emit32(bits);
    group_end();
}

static void group_branch(void)
{
    group_begin(0);
    if (random_one_in(3))
        emit_forward((random_one_in(2) ? RA : 0) << 7 | JAL, true);
    else
        emit_forward(random_rs() << 20 | random_rs() << 15 | random_below(8) << 12 | BRANCH, false);
    group_end();
}

static const struct {
    void (*make)(void);
    unsigned weight;
} groups[] = {
    { group_calculation, 8 }, { group_compressed, 6 }, { group_csr, 14 }, { group_counter, 2 }, { group_status, 9 }, { group_interrupts, 5 },
    { group_handler, 2 }, { group_timer, 3 }, { group_wait, 2 }, { group_return, 7 }, { group_call, 4 }, { group_breakpoint, 2 },
    { group_system, 5 }, { group_illegal, 3 }, { group_float, 6 }, { group_branch, 4 }, { group_load_or_store, 24 }, { group_atomic, 4 },
    { group_loop_of_reservation, 1 }, { group_cache_block, 2 }, { group_wild_jump, 5 }, { group_address_space, 7 }, { group_table_entry, 8 },
    { group_fence, 4 }, { group_rewritten_code, 2 },
};
#define GROUPS (sizeof groups / sizeof groups[0])

unsigned make_program(uint64_t *random)
{
    unsigned all = 0, wanted;
    for (unsigned i = 0; i < GROUPS; i++)
        all += groups[i].weight;
    emit_begin(random);
    wanted = 20 + random_below(400);
    for (unsigned i = 0; i < wanted && emit_has_room(); i++) {
        unsigned which = 0;
        for (unsigned draw = random_below(all); draw >= groups[which].weight; which++)
            draw -= groups[which].weight;
        groups[which].make();
    }
    group_begin(0);
    group_end();
    unsigned end = emit_at();
    emit_finish();
    return end;
}
