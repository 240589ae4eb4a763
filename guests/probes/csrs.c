/* Which of the 4,096 CSRs can a guest reach, and does each keep what it writes there? It tries them all, leaves patterns that depend on
 * `seed` in all that it can write, and looks at them again and again. Two of these with different seeds that share a hart find
 * each register that the hart has once for both. */
#include "args.h"
#include "console.h"
#include "csr.h"
#include "machine.h"
#include "start.h"
#include "timer.h"

#define CSRS 4096

extern const uint64_t csr_readers[CSRS], csr_writers[CSRS];
extern volatile uint64_t csr_trapped;
void csr_trap(void);

static uint64_t seed;
static bool is_readable[CSRS], is_written[CSRS];
static uint64_t before[CSRS], expected[CSRS];

static uint64_t read_number(unsigned number) { return ((uint64_t (*)(void))(uintptr_t)&csr_readers[number])(); }
static void write_number(unsigned number, uint64_t value) { ((void (*)(uint64_t))(uintptr_t)&csr_writers[number])(value); }

/* They count, or follow what is pending. */
static bool is_volatile(unsigned number) { return (number >= 0xc00 && number < 0xc20) || number == 0xdb0; }

static uint64_t mixed(uint64_t value)
{
    value = (value + seed) * 0x9e3779b97f4a7c15;
    return value ^ value >> 29;
}

/* What to leave in a register. Some take only what this program can live with. */
static uint64_t pattern(unsigned number)
{
    uint64_t any = mixed(number);
    switch (number) {
    case 0x002: return any % 5;                                                     /* frm: a rounding mode */
    case 0x003: return any % 5 << 5 | (any >> 8 & 0x1f);                            /* fcsr */
    case 0x100: return csr_read(sstatus) ^ (any & (1ul << 18 | 1ul << 19));         /* sstatus: SUM, MXR */
    case 0x105: return (uint64_t)(uintptr_t)csr_trap | (seed & 1);                  /* stvec: direct or vectored */
    case 0x14d: return 1ul << 62 | any >> 3;                                        /* stimecmp: far away */
    case 0x180: return 0;                                                           /* satp: no translation */
    default:    return any;
    }
}

static void look_at_all(void)
{
    for (unsigned number = 0; number < CSRS; number++) {
        csr_trapped = 0;
        before[number] = read_number(number);
        is_readable[number] = !csr_trapped;
    }
    /* Bits 11:10 = 3: read-only. */
    for (unsigned number = 0; number < 0xc00; number++) {
        if (!is_readable[number])
            continue;
        csr_trapped = 0;
        write_number(number, pattern(number));
        is_written[number] = !csr_trapped && read_number(number) != before[number];
    }
    /* Only now, as some are parts of others, and traps leave traces. */
    for (unsigned number = 0; number < CSRS; number++)
        expected[number] = is_readable[number] ? read_number(number) : 0;
}

/* Prints as lines of at most 100 numbers. */
static void print_list(const char *name, const bool *is_in)
{
    unsigned printed = 0;
    for (unsigned number = 0; number < CSRS; number++) {
        if (!is_in[number])
            continue;
        if (printed % 100 == 0)
            print("%s@result {\"job\":\"csrs\",\"%s\":[", printed ? "]}\n" : "", name);
        print("%s%u", printed % 100 ? "," : "", number);
        printed++;
    }
    if (printed)
        print("]}\n");
}

bool guest_main(void)
{
    seed = arg_number("seed", 1, 0, UINT64_MAX);
    uint64_t ms = arg_number("ms", 100, 1, 1000000);
    args_finish();
    uint64_t handler = csr_read(stvec);
    csr_set(sstatus, SSTATUS_FS_INITIAL | SSTATUS_VS_INITIAL);
    csr_write(stvec, (uint64_t)(uintptr_t)csr_trap);

    look_at_all();
    uint64_t rounds = 0, changed = CSRS, found = 0;
    csr_trapped = 0;
    for (uint64_t end = read_time() + us_to_ticks(ms * 1000); read_time() < end && changed == CSRS; rounds++) {
        for (unsigned number = 0; number < CSRS; number++) {
            if (!is_readable[number] || is_volatile(number))
                continue;
            uint64_t value = read_number(number);
            if (value != expected[number] || csr_trapped) {
                changed = number;
                found = value;
                break;
            }
        }
    }
    csr_write(stvec, handler);
    csr_write(CSR_STIMECMP, -1ul);
    bool ok = changed == CSRS;
    if (!ok)
        print("CSR 0x%lx was 0x%lx and has become 0x%lx, trap %lu\n", changed, expected[changed], found, csr_trapped);
    print_list("readable", is_readable);
    print_list("written", is_written);
    print("@result {\"job\":\"csrs\",\"rounds\":%lu,\"ok\":%s}\n", rounds, ok ? "true" : "false");
    return ok;
}
