#include "code.h"
#include "csr.h"
#include "gate.h"
#include "machine.h"
#include "memory.h"
#include "random.h"
#include "sbi.h"
#include "ainori_sbi.h"
#include "timer.h"

#define EBREAK 0x00100073u
#define C_NOP  0x0001u
#define SYSTEM 0x73u
#define JAL    0x6fu
#define JALR   0x67u
#define BRANCH 0x63u
#define SRET   0x10200073u
/* These have the opcodes of floating-point ones, and other widths. */
#define VECTOR_LOAD  0x07u
#define VECTOR_STORE 0x27u
#define UNIT_STRIDE  0u
#define STRIDED      2u

#define SSTATUS_SUM (1ul << 18)
#define SSTATUS_MXR (1ul << 19)

/* A snippet of N instructions traps at most so often, if nothing interrupts it; one that loops is ended. */
#define MOST_TRAPS 32

/* Most that the way in is reckoned to take. */
#define MOST_WAY_US 400

void code_start(struct vcpu *v)
{
    v->length = 0;
    v->to_try = 0;
    v->tried = 0;
}

static void put16(struct vcpu *v, uint16_t bits)
{
    *(uint16_t *)(v->code + v->length) = bits;
    v->length += 2;
}

void code_add_own(struct vcpu *v, uint32_t bits)
{
    put16(v, bits);
    if ((bits & 3) == 3)
        put16(v, bits >> 16);
}

static void mark_input(struct vcpu *v) { v->to_try |= 1ul << v->length / 2; }

/* QEMU 10.0 ends itself where a vector access of consecutive elements crosses a page (an assertion in its probe_access_flags, mended later): such a
 * one gets a stride instead. `keep` has those of whole registers. */
static uint32_t spare_emulator(uint32_t bits)
{
    unsigned opcode = bits & 0x7f, width = bits >> 12 & 7, addressing = bits >> 26 & 3;
    bool is_vector = (opcode == VECTOR_LOAD || opcode == VECTOR_STORE) && (width == 0 || width > 4);
    return is_vector && addressing == UNIT_STRIDE ? bits | STRIDED << 26 : bits;
}

void code_add_exactly(struct vcpu *v, uint32_t bits)
{
    mark_input(v);
    code_add_own(v, spare_emulator(bits));
}

static bool is_vital(unsigned csr)
{
    switch (csr) {
    case 0x100: /* sstatus */
    case 0x104: /* sie */
    case 0x105: /* stvec */
    case CSR_STIMECMP:
    case 0x180: /* satp */
        return true;
    default:
        return false;
    }
}

/* Each instruction begins a word, or stands in the second half of one: then jumps by multiples of four reach beginnings only. */
void code_add(struct vcpu *v, uint32_t bits)
{
    /* Where the destination stands in all formats that have any register there; in compressed loads and stores it's half an address. */
    if ((bits & 3) != 0 && (bits >> 7 & 31) == A7)
        bits ^= 1u << 7;
    if ((bits & 3) != 3) {
        unsigned operation = (bits & 3) << 3 | (bits >> 13 & 7);
        put16(v, C_NOP);
        mark_input(v);
        /* c.j, c.beqz, c.bnez: bit 3 is bit 1 of the offset. */
        put16(v, operation >= (1 << 3 | 5) && operation <= (1 << 3 | 7) ? bits | 1u << 3 : bits);
        return;
    }
    switch (bits & 0x7f) {
    case SYSTEM:
        if ((bits >> 12 & 3) && is_vital(bits >> 20))
            bits = (bits & ~(7u << 12 | 31u << 15)) | 2u << 12; /* csrrs rd, csr, x0 only reads */
        break;
    case JAL:
        bits &= ~(1u << 21);
        break;
    case JALR:
        bits &= ~(3u << 20);
        break;
    case BRANCH:
        bits &= ~(1u << 8);
        break;
    }
    code_add_exactly(v, bits);
}

/* Length of the tried-out instruction at `offset`. */
static unsigned length_at(const struct vcpu *v, uint64_t offset) { return (v->code[offset] & 3) == 3 ? 4 : 2; }

/* What comes after it in memory may not be what is run after it. */
static bool may_jump(const struct vcpu *v, uint64_t offset)
{
    const uint16_t *code = (const uint16_t *)(v->code + offset);
    uint16_t low = code[0];
    if ((low & 3) == 3) {
        unsigned opcode = low & 0x7f;
        return opcode == JAL || opcode == JALR || opcode == BRANCH || (low | (uint32_t)code[1] << 16) == SRET;
    }
    unsigned operation = (low & 3) << 3 | low >> 13;
    bool through_register = operation == (2 << 3 | 4) && !(low & 31u << 2); /* c.jr, c.jalr */
    return through_register || (operation >= (1 << 3 | 5) && operation <= (1 << 3 | 7));
}

/* Notes what is known to have been tried when the code, run from `at`, came to `stop`: all in between, or up to the first that may jump. */
static void note_tried(struct vcpu *v, uint64_t at, uint64_t stop, uint64_t end)
{
    while (at < end && at != stop) {
        v->tried |= 1ul << at / 2;
        if (may_jump(v, at))
            return;
        at += length_at(v, at);
    }
}

/* The watchdog has come before anything was tried. With two stages the way in takes some hundred instructions; where a hypervisor shadows the tables it takes a trap for each page of the code, and for `satp`. */
static void learn_way(struct vcpu *v)
{
    uint64_t most = us_to_ticks(MOST_WAY_US), longer = 2 * v->way + us_to_ticks(5);
    v->way = longer < most ? longer : most;
}

static void run(struct vcpu *v, struct setting setting)
{
    uint64_t base = (uintptr_t)v->code - (setting.user ? USER_OFFSET : 0);
    uint64_t end = v->length;
    code_add_own(v, EBREAK);
    code_add_own(v, EBREAK); /* for an instruction before it that was cut short */
    uint64_t status = (any(v) & (SSTATUS_SUM | SSTATUS_MXR | SSTATUS_FS | SSTATUS_VS)) | (setting.user ? 0 : SSTATUS_SPP)
        | (setting.interrupts ? SSTATUS_SPIE : 0);
    v->satp = setting.satp;
    v->sie = 1ul << IRQ_TIMER | (any(v) & (1ul << IRQ_SOFTWARE | 1ul << IRQ_EXTERNAL));
    v->pc = base;
    for (unsigned traps = 0; traps < MOST_TRAPS; traps++) {
        uint64_t from = v->pc - base;
        /* From each trap anew: what the hypervisor and the neighbours took isn't the code's. */
        uint64_t limit = read_time() + v->way + us_to_ticks(setting.limit_us);
        timer_set(limit);
        v->status = status;
        run_code(v);
        v->traps++;
        uint64_t offset = v->pc - base;
        note_tried(v, from, offset, end);
        if (v->cause & SCAUSE_INTERRUPT) {
            switch (v->cause & 63) {
            case IRQ_SOFTWARE:
                csr_clear(sip, 1ul << IRQ_SOFTWARE);
                v->ipis++;
                break;
            case IRQ_EXTERNAL:
                v->sie &= ~(1ul << IRQ_EXTERNAL);
                break;
            default:
                if (read_time() >= limit) {
                    v->watchdogs++;
                    if (offset == from)
                        learn_way(v);
                    return;
                }
            }
            /* Where it was interrupted it may be in U-mode by an sret of its own; then it can't go on as if it were not. */
            if (!setting.user && !(v->status & SSTATUS_SPP))
                return;
            continue;
        }
        v->way -= v->way / 16;
        if (offset >= end)
            return;
        v->tried |= 1ul << offset / 2;
        v->pc += length_at(v, offset);
    }
}

unsigned code_run(struct vcpu *v, struct setting setting)
{
    run(v, setting);
    /* Later code that jumps beyond its end must not find this, which was made for other registers or for U-mode. */
    for (unsigned at = 0; at < v->length; at += 4)
        *(uint32_t *)(v->code + at) = EBREAK;
    return __builtin_popcountll(v->to_try & v->tried);
}

void registers_fill(struct vcpu *v)
{
    /* None with which a random call could stop a vCPU or the guest, or put the watchdog off: those have kinds of their own. */
    static const uint64_t extensions[] = {
        SBI_BASE, SBI_IPI, SBI_RFENCE, SBI_DBCN, AINORI_EID, SBI_LEGACY_PUTCHAR, SBI_LEGACY_SEND_IPI, SBI_LEGACY_VMA, 9,
    };
    for (int i = 1; i < 32; i++) {
        uint64_t r = any(v);
        v->x[i] = r & 1 ? scratch_address(v) - (r & 2 ? 0 : 0x800) + (r >> 8 & 0xfff & -(r >> 2 & 1))
            : r & 4 ? edge_number(v) : any(v);
    }
    v->x[16] = any(v) & 7;
    v->x[A7] = one_of(v, extensions);
}
