/* Do floating-point and vector registers keep what is in them, whoever else uses the hart? Fills them with a pattern, lets time and
 * timer interrupts pass, busy or asleep, and looks again. No C code of ours touches these registers in between. */
#include "args.h"
#include "console.h"
#include "csr.h"
#include "machine.h"
#include "start.h"
#include "timer.h"
#include "trap.h"
#include "xorshift.h"

#define REGISTERS 32
#define MAX_VECTOR_BYTES 512 /* a VLEN of 4096 bits */

struct vector_state {
    uint64_t vl, vtype, vcsr;
};

void fp_load(const uint64_t f[REGISTERS], uint64_t fcsr);
uint64_t fp_store(uint64_t f[REGISTERS]);
void fp_load_single(const uint64_t f[REGISTERS], uint64_t fcsr);
uint64_t fp_store_single(uint64_t f[REGISTERS]);
void vector_load(const uint8_t *v, uint64_t elements, uint64_t vcsr);
void vector_store(uint8_t *v, struct vector_state *state);
uint64_t vector_bytes(void);

#define VTYPE_E16_M2 0x09 /* what vector_load sets: 16-bit elements in groups of two registers */

static uint64_t period, due, latest;
static volatile uint64_t ticks;
static uint64_t random_state;

static uint64_t f_wanted[REGISTERS], f_found[REGISTERS];
static uint8_t v_wanted[REGISTERS * MAX_VECTOR_BYTES] __attribute__((aligned(8)));
static uint8_t v_found[sizeof v_wanted] __attribute__((aligned(8)));

static void tick(void)
{
    uint64_t now = read_time();
    if (now - due > latest)
        latest = now - due;
    due = now + period;
    timer_set(due);
    ticks++;
}

/* Lets two timer interrupts pass. */
static void let_time_pass(bool asleep)
{
    uint64_t enough = ticks + 2;
    while (ticks < enough) {
        if (asleep)
            wait_for_interrupt();
        interrupts_on();
        interrupts_off();
    }
}

static void check_value(const char *name, uint64_t round, uint64_t found, uint64_t wanted)
{
    if (found == wanted)
        return;
    print("@result {\"job\":\"fpkeep\",\"checks\":%lu,\"ok\":false}\n", round);
    fail("round %lu: %s is 0x%lx, should be 0x%lx", round, name, found, wanted);
}

static void check_registers(const char *kind, uint64_t round, const uint8_t *found, const uint8_t *wanted, uint64_t size)
{
    for (uint64_t i = 0; i < REGISTERS * size; i++) {
        if (found[i] == wanted[i])
            continue;
        print("@result {\"job\":\"fpkeep\",\"checks\":%lu,\"ok\":false}\n", round);
        fail("round %lu: byte %lu of %s%lu is 0x%x, should be 0x%x", round, i % size, kind, i / size, found[i], wanted[i]);
    }
}

bool guest_main(void)
{
    random_state = arg_number("seed", 1, 1, UINT64_MAX);
    uint64_t ms = arg_number("ms", 2000, 1, 10000000);
    period = us_to_ticks(arg_number("period_us", 500, 50, 1000000));
    args_finish();

    csr_set(sstatus, SSTATUS_FS_INITIAL);
    bool is_double = machine_has("d");
    bool has_vectors = machine_has("v") || machine_has("zve32x");
    uint64_t size = 0;
    if (has_vectors) {
        csr_set(sstatus, SSTATUS_VS_INITIAL);
        size = vector_bytes();
        if (size > MAX_VECTOR_BYTES)
            fail("vector registers of %lu bytes: this probe has room for %d", size, MAX_VECTOR_BYTES);
    }
    print("keeping f0 to f31%s for %lu ms\n", has_vectors ? " and v0 to v31" : "", ms);

    on_interrupt(IRQ_TIMER, tick);
    due = read_time() + period;
    timer_set(due);
    csr_write(sie, 1ul << IRQ_TIMER);
    uint64_t round = 0;
    for (uint64_t end = read_time() + us_to_ticks(ms * 1000); read_time() < end; round++) {
        for (int i = 0; i < REGISTERS; i++)
            f_wanted[i] = xorshift(&random_state) & (is_double ? UINT64_MAX : UINT32_MAX);
        uint64_t fcsr = round % 5 << 5 | (xorshift(&random_state) & 0x1f); /* the five rounding modes that there are, and any flags */
        for (uint64_t i = 0; i < REGISTERS * size; i += 8)
            *(uint64_t *)(v_wanted + i) = xorshift(&random_state);
        uint64_t vl = size / 2, vcsr = xorshift(&random_state) & 7;

        (is_double ? fp_load : fp_load_single)(f_wanted, fcsr);
        if (has_vectors)
            vector_load(v_wanted, vl, vcsr);
        let_time_pass(round % 2 != 0);
        struct vector_state state = { 0 };
        if (has_vectors)
            vector_store(v_found, &state);
        uint64_t fcsr_found = (is_double ? fp_store : fp_store_single)(f_found);

        check_registers("f", round, (const uint8_t *)f_found, (const uint8_t *)f_wanted, 8);
        check_value("fcsr", round, fcsr_found, fcsr);
        if (has_vectors) {
            check_registers("v", round, v_found, v_wanted, size);
            check_value("vl", round, state.vl, vl);
            check_value("vtype", round, state.vtype, VTYPE_E16_M2);
            check_value("vcsr", round, state.vcsr, vcsr);
        }
    }
    print("@result {\"job\":\"fpkeep\",\"checks\":%lu,\"ticks\":%lu,\"tick_delay_ns\":%lu,\"vector_bits\":%lu,\"ok\":true}\n", round, ticks,
          ticks_to_ns(latest), size * 8);
    return true;
}
