#include "emit.h"
#include "spaces.h"
#include "xorshift.h"

#define HALFWORDS (CODE_BYTES / 2)
/* The longest group, and what ends a program. */
#define RESERVE   512
#define MOST_OPEN 8
#define ZERO      0
#define RA        1
#define TP        4
#define OP_IMM    0x13
#define SYSTEM    0x73

/* A branch whose target isn't known: it is the beginning of the group after so many. */
struct open {
    unsigned at, groups;
    bool is_jump;
};

static uint64_t *numbers;
static unsigned at, begun;
static uint16_t ends[HALFWORDS];
static uint8_t flags_of[HALFWORDS];
static unsigned flags;
static bool is_vectored, goes_bare;
static struct open opens[MOST_OPEN];
static unsigned open_count;

uint64_t random_bits(void) { return xorshift(numbers); }

uint64_t random_below(uint64_t limit) { return (random_bits() >> 8) % limit; }

bool random_one_in(uint64_t of) { return random_below(of) == 0; }

unsigned random_rs(void) { return random_below(32); }

unsigned random_rd(void)
{
    unsigned rd;
    do
        rd = random_below(32);
    while (rd == RA || rd == TP);
    return rd;
}

unsigned random_target(void)
{
    unsigned rd;
    do
        rd = random_rd();
    while (rd == ZERO);
    return rd;
}

void emit_begin(uint64_t *random)
{
    numbers = random;
    at = open_count = 0;
    is_vectored = random_one_in(2);
    goes_bare = random_one_in(2);
}

bool program_goes_bare(void) { return goes_bare; }

bool program_is_vectored(void) { return is_vectored; }

unsigned emit_at(void) { return at * 2; }

bool emit_has_room(void) { return emit_at() + RESERVE < CODE_BYTES; }

void emit16(uint16_t instruction)
{
    flags_of[at] = flags;
    code[at++] = instruction;
}

void emit32(uint32_t instruction)
{
    emit16(instruction);
    emit16(instruction >> 16);
}

static void set32(unsigned place, uint32_t bits)
{
    code[place] |= bits;
    code[place + 1] |= bits >> 16;
}

static void close(struct open *branch)
{
    uint32_t offset = (at - branch->at) * 2;
    if (branch->is_jump)
        set32(branch->at, (offset & 0x7fe) << 20 | (offset >> 11 & 1) << 20 | (offset & 0xff000));
    else
        set32(branch->at, (offset >> 11 & 1) << 7 | (offset >> 1 & 0xf) << 8 | (offset >> 5 & 0x3f) << 25);
}

static void close_all(bool at_end)
{
    unsigned left = 0;
    for (unsigned i = 0; i < open_count; i++) {
        if (at_end || opens[i].groups-- == 0)
            close(&opens[i]);
        else
            opens[left++] = opens[i];
    }
    open_count = left;
}

void group_begin(unsigned new_flags)
{
    close_all(false);
    flags = new_flags;
    begun = at;
}

void group_end(void)
{
    for (unsigned i = begun; i < at; i++)
        ends[i] = at;
}

void emit_forward(uint32_t instruction, bool is_jump)
{
    if (open_count == MOST_OPEN)
        return;
    opens[open_count++] = (struct open){ at, random_below(4), is_jump };
    emit32(instruction);
}

void emit_finish(void)
{
    static const uint32_t ebreak = 0x00100073;
    close_all(true);
    flags = 0;
    for (unsigned i = 0; i < 4; i++)
        emit32(ebreak);
}

void emit_i(unsigned opcode, unsigned funct3, unsigned rd, unsigned rs1, int32_t immediate)
{
    emit32((uint32_t)immediate << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode);
}

void emit_r(unsigned opcode, unsigned funct3, unsigned funct7, unsigned rd, unsigned rs1, unsigned rs2)
{
    emit32((uint32_t)funct7 << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode);
}

void emit_s(unsigned opcode, unsigned funct3, unsigned rs1, unsigned rs2, int32_t immediate)
{
    uint32_t bits = immediate;
    emit32((bits >> 5 & 0x7f) << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | (bits & 0x1f) << 7 | opcode);
}

void emit_csr(unsigned function, unsigned rd, unsigned number, unsigned source) { emit_i(SYSTEM, function, rd, source, number); }

void emit_constant(unsigned rd, uint64_t bits)
{
    int64_t low = (int64_t)(bits << 52) >> 52;
    uint64_t rest = bits - low;
    if (rest == 0) {
        emit_i(OP_IMM, 0, rd, ZERO, low);
        return;
    }
    if ((int64_t)bits == (int32_t)bits && (int64_t)rest == (int32_t)rest) {
        emit32((rest & 0xfffff000) | rd << 7 | 0x37);
        if (low)
            emit_i(0x1b, 0, rd, rd, low); /* ADDIW */
        return;
    }
    unsigned shift = __builtin_ctzl(rest);
    emit_constant(rd, (uint64_t)((int64_t)rest >> shift));
    emit_i(OP_IMM, 1, rd, rd, shift);
    if (low)
        emit_i(OP_IMM, 0, rd, rd, low);
}

void emit_address(unsigned rd, uint64_t address)
{
    emit_i(OP_IMM, 0, rd, ZERO, address >> 33 & 0x7ff);
    for (unsigned shift = 22;; shift -= 11) {
        emit_i(OP_IMM, 1, rd, rd, 11);
        emit_i(OP_IMM, 0, rd, rd, address >> shift & 0x7ff);
        if (shift == 0)
            break;
    }
}

unsigned whole_group_end(unsigned place) { return flags_of[place / 2] & WHOLE ? ends[place / 2] * 2 : 0; }

unsigned group_flags(unsigned place) { return flags_of[place / 2]; }
