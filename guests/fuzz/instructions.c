/* Random instructions. The list of those that a hypervisor has to do with: RISC-V privileged architecture, "RISC-V Privileged Instruction Set
 * Listings"; CMO, Zawrs and Svinval in volumes I and II. */
#include "code.h"
#include "gate.h"
#include "kinds.h"
#include "memory.h"
#include "random.h"

#define PIECE 8 /* instructions that are tried in one go */

/* A few in S-mode are jumps to where they must do no more than trap (gate.S): random ones seldom get there. */
#define JUMP_ONE_IN   64
#define JUMP_REGISTER 5
#define JUMP          (JUMP_REGISTER << 15 | 0x67u) /* jalr x0, 0(x5) */

/* rs1 and rs2 are filled in where the mask says so. */
#define RS1 (31u << 15)
#define RS2 (31u << 20)
#define RD  (31u << 7)

static const struct {
    uint32_t bits, random;
} privileged[] = {
    { 0x00000073, 0 },         { 0x00100073, 0 },         { 0x10200073, 0 },         { 0x30200073, 0 },         { 0x7b200073, 0 },
    { 0x00200073, 0 },         { 0x70200073, 0 },         { 0x10500073, 0 },         { 0x00d00073, 0 },         { 0x01d00073, 0 },
    { 0x12000073, RS1 | RS2 }, { 0x16000073, RS1 | RS2 }, { 0x18000073, 0 },         { 0x18100073, 0 },         /* SFENCE, SINVAL */
    { 0x22000073, RS1 | RS2 }, { 0x62000073, RS1 | RS2 }, { 0x26000073, RS1 | RS2 }, { 0x66000073, RS1 | RS2 }, /* HFENCE, HINVAL */
    { 0x60004073, RS1 | RD },  { 0x60104073, RS1 | RD },  { 0x64004073, RS1 | RD },  { 0x64104073, RS1 | RD },  /* HLV */
    { 0x64304073, RS1 | RD },  { 0x68004073, RS1 | RD },  { 0x68104073, RS1 | RD },  { 0x68304073, RS1 | RD },
    { 0x6c004073, RS1 | RD },  { 0x62004073, RS1 | RS2 }, { 0x66004073, RS1 | RS2 }, { 0x6a004073, RS1 | RS2 }, /* HSV */
    { 0x6e004073, RS1 | RS2 }, { 0x0000200f, RS1 },       { 0x0010200f, RS1 },       { 0x0020200f, RS1 },       /* CBO */
    { 0x0040200f, RS1 },       { 0x00006013, RS1 },       { 0x00106013, RS1 },       { 0x00306013, RS1 },       /* PREFETCH */
    { 0x0000100f, 0 },         { 0x8330000f, 0 },         { 0x0100000f, 0 },         { 0x0000000f, 0xffu << 20 },
};

static const uint8_t opcodes[] = {
    0x03, 0x07, 0x07, 0x0f, 0x13, 0x17, 0x1b, 0x23, 0x27, 0x27, 0x2f, 0x2f, 0x33, 0x37, 0x3b, 0x43, 0x47, 0x4b, 0x4f,
    0x53, 0x53, 0x57, 0x57, 0x57, 0x63, 0x67, 0x6f, 0x73, 0x73, 0x73, 0x77, 0x0b, 0x2b, 0x5b, 0x7b,
};

/* CSRs that guests do use; the others have a kind of their own. */
static const uint16_t csrs[] = {
    0x001, 0x002, 0x003, 0x008, 0x009, 0x00a, 0x00f, 0x100, 0x104, 0x105, 0x106, 0x10a, 0x140, 0x141, 0x142, 0x143, 0x144, 0x14d,
    0x150, 0x151, 0x15c, 0x180, 0x200, 0x280, 0x5a8, 0x600, 0x643, 0x680, 0x300, 0x304, 0x320, 0xb00, 0xc00, 0xc01, 0xc02, 0xc03,
    0xc20, 0xc21, 0xc22, 0xdb0, 0xe12, 0xf11, 0xf14,
};

static uint32_t any_privileged(struct vcpu *v)
{
    unsigned i = below(v, sizeof privileged / sizeof *privileged);
    return privileged[i].bits | (any(v) & privileged[i].random);
}

/* Widths of floating-point (2, 3, 4) and vector (0, 5, 6, 7) accesses; nf, mop and the rest at random. */
uint32_t any_access(struct vcpu *v, unsigned base, bool simple)
{
    static const uint8_t accesses[] = { 0x03, 0x23, 0x07, 0x27, 0x07, 0x27, 0x2f };
    uint64_t r = any(v);
    uint32_t bits = (uint32_t)(r >> 32) & ~(31u << 15 | 0x7f);
    if (r & 1) { /* compressed, or Zcb: base is x8 to x15 */
        static const uint16_t compressed[] = { 0x4000, 0x6000, 0xc000, 0xe000, 0x8000, 0x8400, 0x8800, 0x8c00 };
        static const uint16_t with_floats[] = { 0x2000, 0xa000 };
        uint16_t form = simple || (r & 6) ? one_of(v, compressed) : one_of(v, with_floats);
        uint16_t offset = form & 0x1c00 || form == 0x8000 ? r >> 8 & 0x60 : r >> 8 & 0x1c60;
        return form | (base & 7) << 7 | (r >> 16 & 0x1c) | (simple ? 0 : offset);
    }
    if (simple) {
        /* ld is the widest load, lwu the last but one; sd the widest store. Offset 0. */
        return r & 2 ? (below(v, 7) << 12 | base << 15 | (bits & RD) | 0x03) : (below(v, 4) << 12 | base << 15 | (bits & RS2) | 0x23);
    }
    uint32_t opcode = one_of(v, accesses);
    if (opcode == 0x2f) /* AMO, LR, SC; Zabha's and Zacas's as well */
        return (bits & ~(7u << 12)) | (r >> 3 & 3) << 12 | base << 15 | opcode;
    return bits | base << 15 | opcode;
}

uint32_t any_instruction(struct vcpu *v)
{
    uint64_t r = any(v);
    uint32_t bits = r >> 32;
    switch (r & 15) {
    case 0:
        return bits | 3; /* anything of four bytes */
    case 1:
    case 2:
        return below(v, 3) | (bits & 0xfffc); /* anything of two */
    case 3:
    case 4:
    case 5:
        return any_privileged(v);
    case 6:
        return (uint32_t)one_of(v, csrs) << 20 | (bits & 0xff000) | (r >> 8 & 0xf80) | 0x73;
    case 7:
    case 8:
    case 9:
        return any_access(v, 8 + (r >> 4 & 7), false);
    default:
        return (bits & ~0x7fu) | one_of(v, opcodes);
    }
}

/* A word of some vCPU's gate or code, its own or another's. */
static uint64_t place_to_jump_to(struct vcpu *v)
{
    uint64_t r = any(v);
    struct vcpu *owner = vcpus[below(v, vcpu_count)];
    return (r & 1 ? (uintptr_t)gate_of(owner) + PAGE : (uintptr_t)owner->code) + (r >> 8 & 15) * 4;
}

unsigned try_instructions(struct vcpu *v)
{
    scratch_refill(v);
    code_start(v);
    for (int i = 0; i < PIECE; i++)
        code_add(v, once_in(v, JUMP_ONE_IN) ? JUMP : any_instruction(v));
    registers_fill(v);
    v->x[JUMP_REGISTER] = place_to_jump_to(v);
    return code_run(v, (struct setting){ .interrupts = true, .satp = fence_satp(v, false), .limit_us = 10 });
}

unsigned try_user(struct vcpu *v)
{
    scratch_refill(v);
    code_start(v);
    for (int i = 0; i < PIECE; i++)
        code_add_exactly(v, any_instruction(v));
    registers_fill(v);
    for (int i = 1; i < 16; i++) {
        if (any(v) & 1)
            v->x[i] -= USER_OFFSET;
    }
    return code_run(v, (struct setting){ .user = true, .interrupts = true, .satp = fence_satp(v, false), .limit_us = 10 });
}
