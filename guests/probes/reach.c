/* Does a hart reach what its page tables have, and nothing else, wherever that is? Under a hypervisor whose own code is in the tables that the hart walks, as where there is no H extension,
 * an entry of the root is taken by that, and the guest isn't to see it: by no load, store or fetch, and by no call in which the SBI loads for it.
 *
 * It tries the upper half of all addresses, an entry of the root after the other: first without a page there, then with one in each. With Sv39 that is a gigabyte after the other; then
 * with Sv48, where the hart has it, 512 of these; then with the former again.
 *
 * And is an instruction that has been executed often another one as soon as its address is that of another page, with translation and without, though no fence is between them? Is it illegal
 * to a program that comes to the same page? */
#include "args.h"
#include "console.h"
#include "csr.h"
#include "machine.h"
#include "sbi.h"
#include "start.h"
#include "trap.h"

#define PAGE      4096ul
#define ENTRIES   512
#define FIRST     256 /* entry of the upper half */
#define SATP_SV39 (8ul << 60)
#define SATP_SV48 (9ul << 60)
#define GIGABYTE  30 /* its bits */
#define GIGABYTES 39 /* of 512 of them */
#define UART      0x10000000ul
#define MORE      16 /* pages that are looked at */
#define CSR_SEPC  0x141u
#define CSR_STVAL 0x143u
#define CSRR_A0(csr) ((csr) << 20 | 2 << 12 | 10 << 7 | 0x73)

#define ILLEGAL           2
#define FETCH_PAGE_FAULT  12
#define LOAD_PAGE_FAULT   13
#define STORE_PAGE_FAULT  15
#define LOAD_ACCESS_FAULT 5
#define STORE_ACCESS_FAULT 7

enum { V = 1, R = 2, W = 4, X = 8, U = 16, G = 32, A = 64, D = 128 };

static uint64_t root[ENTRIES] __attribute__((aligned(PAGE)));
static uint64_t root48[ENTRIES] __attribute__((aligned(PAGE)));
static uint64_t upper[ENTRIES] __attribute__((aligned(PAGE)));
static uint64_t middle[ENTRIES] __attribute__((aligned(PAGE)));
static uint64_t last[ENTRIES] __attribute__((aligned(PAGE)));
/* What is mapped: the first two pages of each entry. */
static volatile uint64_t pages[2][ENTRIES] __attribute__((aligned(PAGE)));
/* Two pages with a privileged instruction each, and tables that have the first one in all address spaces where the second one is. */
static volatile uint32_t texts[2][PAGE / 4] __attribute__((aligned(PAGE)));
static uint64_t swapped[ENTRIES] __attribute__((aligned(PAGE)));
static uint64_t swapped_middle[ENTRIES] __attribute__((aligned(PAGE)));
static uint64_t swapped_last[ENTRIES] __attribute__((aligned(PAGE)));
static unsigned checks, failures;

struct trap {
    bool came;
    uint64_t cause, value, result;
};

/* Executes instructions (`%[a]`: the address, `%[r]`: a0) whose trap, if they make one, goes behind them. */
#define TRY(instructions, address)                                                                                     \
    ({                                                                                                                 \
        uint64_t came_, old_;                                                                                          \
        register uint64_t result_ __asm__("a0") = 0;                                                                   \
        __asm__ volatile("la %[c], 1f\n csrrw %[o], stvec, %[c]\n li %[c], 0\n" instructions                           \
                         "\n j 2f\n .balign 4\n 1: li %[c], 1\n 2: csrw stvec, %[o]"                                   \
                         : [c] "=&r"(came_), [o] "=&r"(old_), [r] "+&r"(result_)                                       \
                         : [a] "r"((uint64_t)(address))                                                                \
                         : "a1", "a2", "a3", "a4", "a5", "a6", "a7", "t0", "ra", "memory");                            \
        (struct trap){ came_ != 0, csr_read(scause), csr_read(stval), result_ };                                       \
    })

#define LOAD(address)  TRY("ld %[r], 0(%[a])", address)
#define STORE(address) TRY("sd zero, 0(%[a])", address)
#define FETCH(address) TRY("jalr ra, 0(%[a])", address)
/* The legacy call, which loads a set of harts from where it is told to. */
#define CALL(address)  TRY("mv a0, %[a]\n li a6, 0\n li a7, 4\n ecall", address)

static void check(bool condition, const char *what, uint64_t address, struct trap trap)
{
    checks++;
    if (condition)
        return;
    /* One of each kind tells enough. */
    if (failures++ < 16)
        print("failed: %s at %lx: trap %u, scause %lu, stval %lx, result %lx\n", what, address, trap.came, trap.cause, trap.value,
              trap.result);
}

static void faults(struct trap trap, uint64_t cause, const char *what, uint64_t address)
{
    check(trap.came && trap.cause == cause && trap.value == address, what, address, trap);
}

/* Where an entry of the root begins: by the bits of what an entry covers. */
static uint64_t start_of(unsigned entry, unsigned bits) { return -((uint64_t)(ENTRIES - entry) << bits); }

static uint64_t entry(const volatile void *target, uint64_t flags) { return (uintptr_t)target / PAGE << 10 | flags; }

static void fence(void) { __asm__ volatile("sfence.vma" ::: "memory"); }

static void nothing_is_there(uint64_t address)
{
    faults(LOAD(address), LOAD_PAGE_FAULT, "a load", address);
    faults(LOAD(address + PAGE - 8), LOAD_PAGE_FAULT, "a load of a page's end", address + PAGE - 8);
    faults(STORE(address), STORE_PAGE_FAULT, "a store", address);
    faults(FETCH(address), FETCH_PAGE_FAULT, "a fetch", address);
    for (unsigned page = 0; page < MORE; page++, address += PAGE)
        faults(CALL(address), LOAD_PAGE_FAULT, "a load by a call", address);
}

static void a_page_is_there(uint64_t address)
{
    struct trap trap = LOAD(address);
    check(!trap.came && trap.result == pages[0][0], "a load of what is there", address, trap);
    trap = STORE(address + 8 * (ENTRIES - 1));
    check(!trap.came, "a store to what is there", address, trap);
    trap = LOAD(address + PAGE);
    check(!trap.came && trap.result == pages[1][0], "a load of the next page", address, trap);
    trap = FETCH(address + 64);
    check(!trap.came && trap.result == 42, "a fetch of what is there", address, trap);
    /* Of no hart. */
    trap = CALL(address + 128);
    check(!trap.came && trap.result == 0, "a call that loads what is there", address, trap);
    trap = CALL(address + PAGE - 4);
    check(!trap.came && trap.result == 0, "a call that loads from both pages", address, trap);
    faults(LOAD(address + 2 * PAGE), LOAD_PAGE_FAULT, "a load behind what is there", address + 2 * PAGE);
}

/* A load that begins in memory and ends in a device is one that no device takes. */
static void nothing_lies_across(void)
{
    uint64_t page = start_of(FIRST, GIGABYTE);
    last[1] = entry((const void *)UART, V | R | W | A | D);
    fence();
    struct trap trap = TRY("ld %[r], -4(%[a])", page + PAGE);
    check(trap.came && trap.cause == LOAD_ACCESS_FAULT, "a load across the end of memory", page + PAGE - 4, trap);
    trap = TRY("sd zero, -4(%[a])", page + PAGE);
    check(trap.came && trap.cause == STORE_ACCESS_FAULT, "a store across the end of memory", page + PAGE - 4, trap);
    trap = TRY("lbu %[r], 5(%[a])", page + PAGE);
    check(!trap.came, "a load from a device", page + PAGE + 5, trap);
}

static void everywhere(unsigned bits)
{
    for (unsigned i = FIRST; i < ENTRIES; i++)
        a_page_is_there(start_of(i, bits));
}

/* In an address space whose root has an upper half with nothing in it, and then in each entry what leads to the pages. */
static void upper_half(uint64_t *of_root, const void *target, unsigned bits)
{
    for (unsigned i = FIRST; i < ENTRIES; i++)
        nothing_is_there(start_of(i, bits));
    for (unsigned i = FIRST; i < ENTRIES; i++) {
        of_root[i] = entry(target, V);
        fence();
        a_page_is_there(start_of(i, bits));
    }
    /* Now they are everywhere. */
    everywhere(bits);
}

static void executes(const volatile void *text, uint64_t result, const char *what)
{
    struct trap trap = FETCH(text);
    check(!trap.came && trap.result == result, what, (uintptr_t)text, trap);
}

/* A program that executes the first page as well, at another address: to it the instruction is illegal, however often the kernel has executed it. */
static void is_illegal_in_a_program(void)
{
    uint64_t address = (4ul << 30) + 2 * PAGE;
    last[2] = entry(texts[0], V | R | X | U | A | D);
    swapped[4] = entry(middle, V);
    csr_write(satp, SATP_SV39 | (uintptr_t)swapped / PAGE);
    fence();
    for (unsigned i = 0; i < 4; i++) {
        struct trap trap = TRY("csrw sepc, %[a]\n li a1, 0x100\n csrc sstatus, a1\n sret", address);
        bool is_told = trap.value == 0 || trap.value == CSRR_A0(CSR_SEPC); /* not loaded from there */
        check(trap.came && trap.cause == ILLEGAL && is_told && csr_read(sepc) == address, "a privileged instruction of a program", address, trap);
        executes(texts[0], address, "the same of the kernel");
    }
}

/* A change between translation and none needs no fence: what is global is so in address spaces, and without translation there is none. */
static void instructions_are_those_of_their_pages(void)
{
    enum { OF_FIRST = 0x100, OF_SECOND = 0x200, OFTEN = 200 };
    uint64_t leaf = V | R | W | X | G | A | D, at = (uintptr_t)texts[1];
    uint64_t gigabyte = at >> 30 << 30, block = at >> 21 << 21;
    for (unsigned i = 0; i < 2; i++) {
        texts[i][0] = CSRR_A0(i == 0 ? CSR_SEPC : CSR_STVAL);
        texts[i][1] = 0x8067;
    }
    __asm__ volatile("fence.i" ::: "memory");
    csr_write(sepc, OF_FIRST);
    csr_write(stval, OF_SECOND);
    for (uint64_t i = 0; i < 4; i++)
        swapped[i] = entry((const void *)(i << 30), leaf);
    swapped[gigabyte >> 30] = entry(swapped_middle, V);
    for (uint64_t i = 0; i < ENTRIES; i++) {
        swapped_middle[i] = entry((const void *)(gigabyte + (i << 21)), leaf);
        swapped_last[i] = entry((const void *)(block + i * PAGE), leaf);
    }
    swapped_middle[block >> 21 & (ENTRIES - 1)] = entry(swapped_last, V);
    swapped_last[at / PAGE & (ENTRIES - 1)] = entry(texts[0], V | R | X | G | A | D);
    fence();
    for (unsigned i = 0; i < OFTEN; i++) {
        executes(texts[0], OF_FIRST, "an instruction of the first page");
        executes(texts[1], OF_SECOND, "an instruction of the second page");
    }
    is_illegal_in_a_program();
    for (unsigned i = 0; i < 4; i++) {
        csr_write(sepc, OF_FIRST);
        csr_write(stval, OF_SECOND);
        csr_write(satp, SATP_SV39 | (uintptr_t)swapped / PAGE);
        executes(texts[1], OF_FIRST, "an instruction that is another one by a page's table");
        executes(texts[1], OF_FIRST, "the same again");
        csr_write(satp, 0);
        executes(texts[1], OF_SECOND, "an instruction that is itself again without translation");
        executes(texts[1], OF_SECOND, "the same again");
    }
}

static bool goes_to(uint64_t mode, const uint64_t *of_root)
{
    uint64_t wanted = mode | (uintptr_t)of_root / PAGE;
    csr_write(satp, wanted);
    fence();
    return csr_read(satp) == wanted;
}

bool guest_main(void)
{
    bool strict = arg_number("strict", 0, 0, 1);
    args_finish();
    pages[0][0] = 0x1111;
    pages[1][0] = 0x2222ul << 32; /* its lower half is of no hart */
    /* li a0, 42; ret */
    ((volatile uint32_t *)pages[0])[16] = 42 << 20 | 10 << 7 | 0x13;
    ((volatile uint32_t *)pages[0])[17] = 0x8067;
    __asm__ volatile("fence.i" ::: "memory");
    for (uint64_t gigabyte = 0; gigabyte < 4; gigabyte++)
        root[gigabyte] = entry((const void *)(gigabyte << 30), V | R | W | X | A | D);
    middle[0] = entry(last, V);
    last[0] = entry(pages[0], V | R | W | X | A | D);
    last[1] = entry(pages[1], V | R | W | X | A | D);
    upper[0] = entry(middle, V);
    root48[0] = entry(root, V);
    unsigned levels = 3;
    goes_to(SATP_SV39, root);
    upper_half(root, middle, GIGABYTE);
    if (goes_to(SATP_SV48, root48)) {
        levels = 4;
        upper_half(root48, upper, GIGABYTES);
        goes_to(SATP_SV39, root);
        everywhere(GIGABYTE);
    }
    if (strict)
        nothing_lies_across();
    csr_write(satp, 0);
    fence();
    instructions_are_those_of_their_pages();
    print("@result {\"job\":\"reach\",\"checks\":%u,\"levels\":%u,\"ok\":%s}\n", checks, levels, failures == 0 ? "true" : "false");
    return failures == 0;
}
