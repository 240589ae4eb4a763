/* Does a privileged instruction do the same when the one behind it is carried out together with it, and when the kernel goes from one address space to another? Where the kernel runs in user mode, a
 * hypervisor may do both within a few instructions, by what it remembers: so rows of instructions are executed amid which an interrupt comes, or which go from one page to the next, whose memory is then
 * another. And the kernel goes between more address spaces than are remembered, some with ASIDs that end alike, while tables are changed and fenced, an ASID gets another root, and translation is off for a while;
 * text isn't the same in all of them at one address. */
#include <string.h>
#include "args.h"
#include "console.h"
#include "csr.h"
#include "machine.h"
#include "sbi.h"
#include "start.h"
#include "trap.h"
#include "xorshift.h"

#define PAGE         4096ul
#define ENTRIES      512
#define GIB          (1ul << 30)
#define LARGE        (2ul << 20)
#define SATP_SV39    (8ul << 60)
#define ASID(number) ((number) + 1ul)
#define SSTATUS_SUM  (1ul << 18)
#define SOFTWARE     (1ul << IRQ_SOFTWARE)

#define SPACES       10            /* more than a hypervisor may remember by the ends of their ASIDs */
#define OWN          (GIB + LARGE) /* where each address space has a page of data, and one of text, of its own */
#define OWN_TEXT     (OWN + PAGE)
#define SHARED_TEXT  (OWN + 2 * PAGE) /* where all have the same page, and then another one */
#define SHARED_PLACE 32               /* the word of it where its row begins */

enum { V = 1, R = 2, W = 4, X = 8, G = 32, A = 64, D = 128 };

/* Instructions of rows, and their registers. */
enum { SSCRATCH = 0x140, SEPC = 0x141, SCAUSE = 0x142, STVAL = 0x143, A3 = 13, A4, A5, A6, A7 };
#define JR_T6        0x000f8067
#define LI_A4_7      0x00700713
#define CSRRS_A4_A2  0x10062773 /* csrrs a4, sstatus, a2 */
#define CSRRC_A4_A2  0x10063773
#define CSRW_SATP_A2 0x18061073

static uint32_t csrr(unsigned to, unsigned number) { return number << 20 | 2 << 12 | to << 7 | 0x73; }

static struct space {
    uint64_t root[ENTRIES] __attribute__((aligned(PAGE))), middle[ENTRIES], last[ENTRIES], data[2][ENTRIES];
    uint32_t text[PAGE / 4];
    unsigned shown; /* which of data is there */
} spaces[SPACES];
static uint32_t pages[4][PAGE / 4] __attribute__((aligned(PAGE)));

static uint64_t seed;
static uint64_t lines; /* interrupts that are on while a row is executed */
static uint64_t executed;

static uint64_t below(uint64_t n) { return (xorshift(&seed) >> 11) % n; }

extern const uint8_t trap_entry[];

#define CHECK(condition, ...)                                                                                          \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            print("@result {\"job\":\"rows\",\"ok\":false}\n");                                                        \
            fail(__VA_ARGS__);                                                                                         \
        }                                                                                                              \
    } while (0)

static void fence_text(void) { __asm__ volatile("fence.i" ::: "memory"); }
static void fence_all(void) { __asm__ volatile("sfence.vma" ::: "memory"); }

/* What a row has left in registers, and sepc. */
struct seen {
    uint64_t a3, a4, a5, a6, a7, pc;
};

/* Goes to a row, with this in a2, and the marker in those that it may write, until it jumps to t6 or something traps. */
static struct seen execute(const void *row, uint64_t operand, uint64_t marker)
{
    register uint64_t a2 __asm__("a2") = operand;
    register uint64_t a3 __asm__("a3") = marker;
    register uint64_t a4 __asm__("a4") = marker;
    register uint64_t a5 __asm__("a5") = marker;
    register uint64_t a6 __asm__("a6") = marker;
    register uint64_t a7 __asm__("a7") = marker;
    register uint64_t place __asm__("t1") = (uintptr_t)row;
    __asm__ volatile(".option push\n.option norvc\nla t0, 2f\ncsrw stvec, t0\nmv t6, t0\ncsrw sie, %[lines]\njr t1\n.option pop\n.balign 4\n2: csrw sie, zero"
                     : "+r"(a2), "+r"(a3), "+r"(a4), "+r"(a5), "+r"(a6), "+r"(a7), "+r"(place)
                     : [lines] "r"(lines)
                     : "t0", "t6", "memory");
    struct seen seen = {a3, a4, a5, a6, a7, csr_read(sepc)};
    csr_write(stvec, trap_entry);
    executed++;
    return seen;
}

/* The beginning of a handler of traps, as kernels have it; and a row that lets an interrupt come. */
static void look_at_rows(uint64_t times)
{
    const uint32_t handler[] = {csrr(A3, SSCRATCH), CSRRC_A4_A2, csrr(A5, SEPC), csrr(A6, SCAUSE), csrr(A7, STVAL), JR_T6};
    const uint32_t enables[] = {csrr(A3, SSCRATCH), CSRRS_A4_A2, csrr(A5, SSCRATCH), csrr(A6, SSCRATCH), JR_T6};
    uint32_t *first = pages[0], *second = pages[0] + 16;
    memcpy(first, handler, sizeof handler);
    memcpy(second, enables, sizeof enables);
    fence_text();
    csr_clear(sstatus, SSTATUS_SIE);
    for (uint64_t i = 0; i < times; i++) {
        uint64_t scratch = xorshift(&seed), pc = xorshift(&seed) & ~1ul, cause = xorshift(&seed), value = xorshift(&seed), marker = xorshift(&seed);
        csr_write(sscratch, scratch);
        csr_write(sepc, pc);
        csr_write(scause, cause);
        csr_write(stval, value);
        csr_set(sstatus, SSTATUS_SUM);
        uint64_t before = csr_read(sstatus);
        struct seen seen = execute(first, SSTATUS_SUM, marker);
        CHECK(seen.a3 == scratch && seen.a4 == before && seen.a5 == pc && seen.a6 == cause && seen.a7 == value,
              "a row read 0x%lx, 0x%lx, 0x%lx, 0x%lx and 0x%lx", seen.a3, seen.a4, seen.a5, seen.a6, seen.a7);
        CHECK(csr_read(sstatus) == (before & ~SSTATUS_SUM), "sstatus is 0x%lx behind a row", csr_read(sstatus));

        bool is_pending = i % 3 == 2;
        if (is_pending)
            csr_set(sip, SOFTWARE);
        lines = SOFTWARE;
        seen = execute(second, SSTATUS_SIE, marker);
        lines = 0;
        csr_clear(sstatus, SSTATUS_SIE);
        csr_clear(sip, SOFTWARE);
        CHECK(seen.a3 == scratch && seen.a4 == (before & ~SSTATUS_SUM), "a row that lets an interrupt come read 0x%lx and 0x%lx", seen.a3, seen.a4);
        CHECK(seen.pc == (is_pending ? (uintptr_t)&second[2] : pc), "a row is interrupted at 0x%lx", seen.pc);
        CHECK(seen.a5 == (is_pending ? marker : scratch) && seen.a6 == seen.a5, "a row went on with 0x%lx and 0x%lx behind its interrupt", seen.a5, seen.a6);
    }
}

/* A row goes from one page, which stays as it is, to the next, where something else is stored now and then. */
static void look_at_page_end(uint64_t times)
{
    uint32_t *last = &pages[2][PAGE / 4 - 1], *first = pages[3];
    const uint32_t texts[] = {csrr(A4, SSCRATCH), LI_A4_7, csrr(A4, SSCRATCH), csrr(A4, SEPC)};
    *last = csrr(A3, SSCRATCH);
    for (unsigned round = 0; round < 4; round++) {
        first[0] = texts[round];
        first[1] = JR_T6;
        fence_text();
        for (uint64_t i = 0; i < times; i++) {
            uint64_t scratch = xorshift(&seed), pc = xorshift(&seed) & ~1ul;
            csr_write(sscratch, scratch);
            csr_write(sepc, pc);
            struct seen seen = execute(last, 0, 0);
            uint64_t expected = round == 1 ? 7 : round == 3 ? pc : scratch;
            CHECK(seen.a3 == scratch && seen.a4 == expected, "behind a page's end a4 is 0x%lx, not 0x%lx", seen.a4, expected);
        }
    }
}

static uint64_t satp_of(unsigned asid_of, unsigned root_of) { return SATP_SV39 | ASID(asid_of) << 44 | (uintptr_t)spaces[root_of].root / PAGE; }

static void fence_own(unsigned number)
{
    switch (below(3)) {
    case 0:  __asm__ volatile("sfence.vma %0, %1" ::"r"(OWN), "r"(ASID(number)) : "memory"); break;
    case 1:  __asm__ volatile("sfence.vma x0, %0" ::"r"(ASID(number)) : "memory"); break;
    default: fence_all(); break;
    }
}

static void make_spaces(void)
{
    uint64_t here = machine.memory_base / GIB;
    for (unsigned i = 0; i < SPACES; i++) {
        struct space *it = &spaces[i];
        it->root[here] = here * GIB / PAGE << 10 | V | R | W | X | G | A | D;
        it->root[OWN / GIB] = (uintptr_t)it->middle / PAGE << 10 | V;
        it->middle[OWN % GIB / LARGE] = (uintptr_t)it->last / PAGE << 10 | V;
        it->last[0] = (uintptr_t)it->data[0] / PAGE << 10 | V | R | W | A | D;
        it->last[1] = (uintptr_t)it->text / PAGE << 10 | V | R | W | X | A | D;
        it->last[2] = (uintptr_t)pages[2] / PAGE << 10 | V | R | W | X | G | A | D;
        it->data[0][0] = i;
        it->data[1][0] = SPACES + i;
        it->text[0] = csrr(A3, i % 2 ? SSCRATCH : SEPC);
        it->text[1] = csrr(A4, i % 3 ? SSCRATCH : SEPC);
        it->text[2] = JR_T6;
    }
    for (unsigned i = 0; i < 2; i++) {
        uint32_t *text = &pages[2 + i][SHARED_PLACE];
        text[0] = csrr(A3, SSCRATCH);
        text[1] = i ? LI_A4_7 : csrr(A4, SSCRATCH);
        text[2] = JR_T6;
    }
    fence_text();
    fence_all();
}

static uint64_t data_there(void) { return *(volatile uint64_t *)OWN; }

/* `go`: where the row lies that changes the address space. `own_text`: whether text is executed that each has of its own. */
static void look_at_spaces(uint64_t times, uint32_t *go, bool own_text)
{
    const uint32_t change[] = {CSRW_SATP_A2, JR_T6};
    memcpy(go, change, sizeof change);
    fence_text();
    unsigned is_replaced = 0;
    for (uint64_t i = 0; i < times; i++) {
        unsigned number = below(SPACES), other = below(SPACES);
        struct space *it = &spaces[number];
        execute(go, satp_of(number, number), 0);
        uint64_t scratch = xorshift(&seed), pc = xorshift(&seed) & ~1ul;
        csr_write(sscratch, scratch);
        CHECK(data_there() == number + SPACES * it->shown, "address space %u has the page of %lu", number, data_there());
        csr_write(sepc, pc);
        if (own_text && below(4)) {
            struct seen seen = execute((void *)OWN_TEXT, 0, 0);
            CHECK(seen.a3 == (number % 2 ? scratch : pc) && seen.a4 == (number % 3 ? scratch : pc), "address space %u executes what another has", number);
        }
        if (below(2)) {
            struct seen seen = execute((void *)(SHARED_TEXT + 4 * SHARED_PLACE), 0, 0);
            CHECK(seen.a3 == scratch && seen.a4 == (is_replaced ? 7 : scratch), "the page of text that is there now isn't executed: a4 is 0x%lx", seen.a4);
        }
        if (below(8) == 0)
            CHECK(csr_read(satp) == satp_of(number, number), "satp is 0x%lx, not 0x%lx", csr_read(satp), satp_of(number, number));
        if (below(64) == 0) {
            spaces[other].shown ^= 1;
            spaces[other].last[0] = (uintptr_t)spaces[other].data[spaces[other].shown] / PAGE << 10 | V | R | W | A | D;
            fence_own(other);
        }
        if (below(256) == 0) {
            is_replaced ^= 1;
            for (unsigned k = 0; k < SPACES; k++)
                spaces[k].last[2] = (uintptr_t)pages[2 + is_replaced] / PAGE << 10 | V | R | W | X | G | A | D;
            __asm__ volatile("sfence.vma %0, x0" ::"r"(SHARED_TEXT) : "memory");
        }
        /* The ASID gets another root, and its own back. */
        if (below(128) == 0) {
            execute(go, satp_of(number, other), 0);
            __asm__ volatile("sfence.vma x0, %0" ::"r"(ASID(number)) : "memory");
            CHECK(data_there() == other + SPACES * spaces[other].shown, "with another root it has the page of %lu", data_there());
            execute(go, satp_of(number, number), 0);
            __asm__ volatile("sfence.vma x0, %0" ::"r"(ASID(number)) : "memory");
            CHECK(data_there() == number + SPACES * it->shown, "with its own root again it has the page of %lu", data_there());
        }
        if (below(128) == 0) {
            execute(go, 0, 0);
            CHECK(csr_read(satp) == 0 && *(volatile uint64_t *)it->data[1] == SPACES + number, "translation isn't off");
        }
    }
    execute(go, 0, 0);
    if (is_replaced) {
        for (unsigned k = 0; k < SPACES; k++)
            spaces[k].last[2] = (uintptr_t)pages[2] / PAGE << 10 | V | R | W | X | G | A | D;
        fence_all();
    }
}

/* Text that firmware stores to, by calls that read what is typed: first a space, then "&". Each makes another instruction of the second one of a row. */
static void look_at_typed_text(void)
{
    static const struct {
        unsigned byte; /* of the instruction */
        char key;
        bool reads_cause; /* into a4: else it doesn't reach that */
    } changes[] = {{2, ' ', true}, {1, '&', false}};
    for (unsigned i = 0; i < 2; i++) {
        const uint32_t text[] = {csrr(A3, SSCRATCH), csrr(A4, SSCRATCH), JR_T6};
        uint32_t *row = &pages[1][64 * i];
        memcpy(row, text, sizeof text);
        fence_text();
        csr_write(sscratch, 1ul);
        csr_write(scause, 2ul);
        for (unsigned k = 0; k < 400; k++)
            CHECK(execute(row, 0, 3).a4 == 1, "a row reads something else");
        char *to = (char *)&row[1] + changes[i].byte;
        struct sbi_result result;
        print("type a key\n");
        do
            result = sbi_call(SBI_DBCN, SBI_DBCN_READ, 1, (uintptr_t)to, 0);
        while (result.error == SBI_SUCCESS && result.value == 0);
        fence_text();
        csr_write(scause, 2ul);
        uint64_t a4 = execute(row, 0, 3).a4, expected = changes[i].reads_cause ? 2 : 3;
        CHECK(a4 == expected && *to == changes[i].key, "a4 is %lu, not %lu, with 0x%x typed", a4, expected, (unsigned)*to);
    }
}

bool guest_main(void)
{
    seed = arg_number("seed", 1, 1, UINT64_MAX);
    uint64_t times = arg_number("times", 2000, 1, 1000000);
    bool typed = arg_number("typed", 0, 0, 1);
    args_finish();
    csr_write(sie, 0);
    if (typed)
        look_at_typed_text();
    look_at_rows(times / 8);
    look_at_page_end(times / 8);
    make_spaces();
    /* In a large page without other text. */
    uint32_t *go = (uint32_t *)(machine.memory_base + 4 * LARGE);
    look_at_spaces(times, go, false);
    look_at_spaces(times, go + 16, true);
    /* Once more, in an address space. */
    execute(go, satp_of(0, 0), 0);
    look_at_rows(times / 8);
    look_at_page_end(times / 8);
    print("@result {\"job\":\"rows\",\"executed\":%lu,\"ok\":true}\n", executed);
    return true;
}
