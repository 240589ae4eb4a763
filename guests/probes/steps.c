/* What does one privileged instruction do? Each step puts a random state into the hart, has it execute a random instruction, as a kernel or as a program of its own, and prints
 * what the state was and has become. What it should have become, whoever reads it knows: `crates/supervisor`, by a test of the emulator.
 *
 * Lines, of numbers in hexadecimal:
 *   @hart COUNTERS SCOUNTEREN SENVCFG UNITS HAS_STIMECMP HAS_SENVCFG HAS_SVINVAL HAS_ZAWRS
 *     counters that a kernel can read, and bits that can be written of scounteren, of senvcfg, and of sstatus.FS and VS
 *   @step MODE BITS CODE BEFORE AFTER BEFORE... AFTER...
 *     how the instruction is come to (enum mode), its bits, where it is, the time before and after; the registers as in `struct step_state`, up to a1, and up to slot */
#include "args.h"
#include "console.h"
#include "csr.h"
#include "machine.h"
#include "start.h"
#include "trap.h"
#include "xorshift.h"

#define SSTATUS_UXL (3ul << 32)
/* Where a hypervisor sees a guest's interrupts. QEMU 10.0 takes these bits of a guest's sie and sip for those of its own. */
#define GUEST_INTERRUPTS (1ul << 2 | 1ul << 6 | 1ul << 10)
#define NOP         0x00000013
#define EBREAK      0x00100073
#define SRET        0x10200073
#define WFI         0x10500073
#define JUMP_T6     0x000f8067
#define CSRR_A0     0x00002573

/* Known to steps_run.S. */
struct step_state {
    uint64_t sstatus, sie, stvec, sscratch, sepc, scause, stval, sip, stimecmp, scounteren, senvcfg, a0, a1;
    uint64_t slot; /* behind the jump to which the trap went; 0 without a trap */
    uint64_t has_stimecmp, has_senvcfg;
};

enum mode { KERNEL, PROGRAM, RETURN };

void run(struct step_state *state, const uint32_t *code);
extern const uint32_t step_vector[], step_sret[];

static uint64_t seed;
static uint32_t code[4];
static bool has_stimecmp, has_senvcfg;

static const uint32_t kernels_registers[] = {0x100, 0x100, 0x104, 0x105, 0x106, 0x10a, 0x140, 0x141, 0x142, 0x143, 0x144, 0x14d};
static const uint32_t others_registers[] = {0x001, 0x002, 0x003, 0x008, 0x009, 0x00a, 0x00f, 0x180, 0xc00, 0xc01, 0xc02, 0xc03, 0xc12, 0xc13, 0xc1f, 0xc20, 0xc22};
static const uint32_t instructions[] = {
    SRET, WFI, NOP,
    0x12000073, 0x12b50073, 0x16b50073, 0x18000073, 0x18100073, /* sfence.vma, with registers, sinval.vma, sfence.w.inval, sfence.inval.ir */
    0x00d00073, 0x01d00073,                                     /* wrs.nto, wrs.sto */
    0x22000073, 0x62000073, 0x102000f3, 0x120000f3, 0x10508073, /* hfence.vvma, hfence.gvma; sret, sfence.vma and wfi with registers */
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static uint64_t below(uint64_t n) { return (xorshift(&seed) >> 11) % n; }

/* Few bits, as well as many. */
static uint64_t value(void)
{
    switch (below(6)) {
    case 0:  return 0;
    case 1:  return -1ul;
    case 2:  return 1ul << below(64);
    case 3:  return 1ul << below(64) | 1ul << below(64);
    case 4:  return below(1024);
    default: return xorshift(&seed);
    }
}

static bool is_csr(uint32_t bits) { return (bits & 0x7f) == 0x73 && (bits >> 12 & 3) != 0; }
static bool has_source(uint32_t bits) { return (bits >> 14 & 1) == 0; }

/* One of Zicsr: on a register of the kernel, on another one, or on any number. */
static uint32_t csr_instruction(void)
{
    static const uint32_t operations[] = {1, 2, 3, 5, 6, 7};
    uint64_t kind = below(8);
    uint32_t number = kind == 0 ? below(4096)
                    : kind == 1 ? others_registers[below(COUNT(others_registers))]
                                : kernels_registers[below(COUNT(kernels_registers))];
    uint32_t operation = operations[below(COUNT(operations))];
    uint32_t operand = operation > 3 ? below(32) : below(3) ? 11 : 0;
    uint32_t rd = below(3) ? 10 : 0;
    uint32_t bits = number << 20 | operand << 15 | operation << 12 | rd << 7 | 0x73;
    /* This program lives without translation, and no longer if it were switched on. */
    return number == 0x180 && operand != 0 ? csr_instruction() : bits;
}

static struct step_state random_state(enum mode mode, uint32_t bits)
{
    static const uint64_t deadlines[] = {0, 1, -1ul, -1ul, 1ul << 62};
    /* Firmware that hands on an illegal instruction may not know of vectors: these have to be legal. */
    bool is_legal = mode == RETURN;
    for (unsigned i = 0; i < COUNT(kernels_registers); i++)
        is_legal |= mode == KERNEL && is_csr(bits) && bits >> 20 == kernels_registers[i];
    is_legal &= (bits >> 20 != 0x14d || has_stimecmp) && (bits >> 20 != 0x10a || has_senvcfg);
    uintptr_t at = (uintptr_t)code;
    struct step_state state = {
        .sstatus = (value() & ~SSTATUS_UXL) | 2ul << 32,
        .sie = value() & ~GUEST_INTERRUPTS,
        .stvec = (uintptr_t)step_vector | (is_legal ? below(2) : 0),
        .sscratch = value(),
        .sepc = mode == PROGRAM ? at : at + 8,
        .scause = value(),
        .stval = value(),
        .sip = value() & ~GUEST_INTERRUPTS,
        .stimecmp = has_stimecmp ? deadlines[below(COUNT(deadlines))] : -1ul,
        .scounteren = value(),
        .senvcfg = value(),
        .a0 = 0x5555,
        .a1 = value(),
        .has_stimecmp = has_stimecmp,
        .has_senvcfg = has_senvcfg,
    };
    if (mode == PROGRAM)
        state.sstatus &= ~SSTATUS_SPP;
    if (bits == WFI)
        state.sie = state.sip = 2; /* so that it ends */
    bool timer = state.stimecmp <= read_time();
    if (state.sie & ((state.sip & 2) | (timer ? 1 << IRQ_TIMER : 0)))
        state.sstatus &= ~SSTATUS_SIE; /* else the interrupt would come before the instruction */
    if (is_csr(bits) && has_source(bits)) {
        if (bits >> 20 == 0x100)
            state.a1 &= ~SSTATUS_UXL;
        if (bits >> 20 == 0x104 || bits >> 20 == 0x144)
            state.a1 &= ~GUEST_INTERRUPTS;
        if (bits >> 20 == 0x141)
            state.a1 &= ~1ul; /* QEMU 10.0 keeps it */
    }
    return state;
}

static void print_state(const struct step_state *state, unsigned count)
{
    const uint64_t *registers = (const uint64_t *)state;
    for (unsigned i = 0; i < count; i++)
        print(" %lx", registers[i]);
}

/* Has the hart execute an instruction. Afterwards it goes to `arrived` by a jump, or, where that isn't sure to be a kernel's address, by a breakpoint. */
static void execute(struct step_state *state, enum mode mode, uint32_t bits)
{
    code[0] = bits;
    code[1] = mode == KERNEL ? JUMP_T6 : EBREAK;
    code[2] = EBREAK; /* where SRET goes */
    __asm__ volatile("fence.i" ::: "memory");
    run(state, mode == PROGRAM ? step_sret : code);
}

/* Does a kernel execute it without a trap? The hart is as it was then. */
static bool is_there(uint32_t bits)
{
    struct step_state state = {.stvec = (uintptr_t)step_vector, .sstatus = csr_read(sstatus), .stimecmp = -1ul, .a0 = 0};
    execute(&state, KERNEL, bits);
    return state.slot == 0;
}

static void print_hart(void)
{
    uint64_t counters = 0;
    for (unsigned n = 0; n < 32; n++)
        counters |= (uint64_t)is_there((0xc00 + n) << 20 | CSRR_A0) << n;
    struct step_state all = {.sstatus = SSTATUS_FS | SSTATUS_VS | 2ul << 32, .stvec = (uintptr_t)step_vector, .stimecmp = -1ul, .scounteren = -1ul, .senvcfg = -1ul,
                             .has_stimecmp = has_stimecmp, .has_senvcfg = has_senvcfg};
    execute(&all, KERNEL, NOP);
    print("@hart %lx %lx %lx %lx %x %x %x %x\n", counters, all.scounteren, all.senvcfg, all.sstatus & (SSTATUS_FS | SSTATUS_VS),
          has_stimecmp, has_senvcfg, machine_has("svinval"), machine_has("zawrs"));
}

bool guest_main(void)
{
    seed = arg_number("seed", 1, 1, UINT64_MAX);
    uint64_t n = arg_number("n", 1000, 1, 1000000);
    args_finish();
    uint64_t handler = csr_read(stvec), counters = csr_read(scounteren);
    has_stimecmp = machine.has_sstc;
    has_senvcfg = is_there(0x10a << 20 | CSRR_A0);
    print_hart();
    for (uint64_t i = 0; i < n; i++) {
        enum mode mode = below(4) == 0 ? PROGRAM : below(4) == 0 ? RETURN : KERNEL;
        uint32_t bits = mode == RETURN ? SRET : below(6) == 0 ? instructions[below(COUNT(instructions))] : csr_instruction();
        struct step_state before = random_state(mode, bits), after = before;
        uint64_t begin = read_time();
        execute(&after, mode, bits);
        uint64_t end = read_time();
        csr_write(stvec, handler);
        csr_write(scounteren, counters);
        print("@step %x %x %lx %lx %lx", mode, bits, (uint64_t)(uintptr_t)code, begin, end);
        print_state(&before, 13);
        print_state(&after, 14);
        print("\n");
    }
    print("@result {\"job\":\"steps\",\"n\":%lu,\"ok\":true}\n", n);
    return true;
}
