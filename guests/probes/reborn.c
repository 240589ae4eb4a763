/* Does a hart that is started again (HSM) find its registers zero, those of its former life and of other guests forgotten? Its first
 * hart starts the second one again and again, which looks at its floating-point and vector registers, looks again a while later, fills them and
 * stops. No C code of ours touches these registers in between. */
#include <stdatomic.h>
#include "args.h"
#include "console.h"
#include "csr.h"
#include "machine.h"
#include "sbi.h"
#include "start.h"
#include "timer.h"
#include "trap.h"

#define REGISTERS 32
#define MAX_VECTOR_BYTES 512 /* a VLEN of 4096 bits */
#define STACK_WORDS 512
#define PATIENCE_MS 1000
#define LEFT 0xa5

struct vector_state {
    uint64_t vl, vtype, vcsr;
};

void fp_load(const uint64_t f[REGISTERS], uint64_t fcsr);
uint64_t fp_store(uint64_t f[REGISTERS]);
void vector_load(const uint8_t *v, uint64_t elements, uint64_t vcsr);
void vector_store(uint8_t *v, struct vector_state *state);
uint64_t vector_bytes(void);

static uint64_t stack[STACK_WORDS] __attribute__((aligned(16)));
static uint64_t f_left[REGISTERS], f_found[REGISTERS];
static uint8_t v_left[REGISTERS * MAX_VECTOR_BYTES] __attribute__((aligned(8)));
static uint8_t v_found[sizeof v_left] __attribute__((aligned(8)));
static bool has_vectors;
static uint64_t pause_us, size;
static atomic_ulong lives;

static void expect_zero(const char *name, uint64_t number, uint64_t found)
{
    if (found == 0)
        return;
    print("@result {\"job\":\"reborn\",\"lives\":%lu,\"ok\":false}\n", atomic_load(&lives));
    fail("life %lu: %s%lu is 0x%lx, should be 0", atomic_load(&lives), name, number, found);
}

static void look(void)
{
    struct vector_state state = { 0 };
    if (has_vectors)
        vector_store(v_found, &state);
    expect_zero("fcsr ", 0, fp_store(f_found));
    for (uint64_t i = 0; i < REGISTERS; i++)
        expect_zero("f", i, f_found[i]);
    for (uint64_t i = 0; i < REGISTERS * size; i += 8)
        expect_zero("v", i / size, *(uint64_t *)(v_found + i));
    expect_zero("vl ", 0, state.vl);
    expect_zero("vtype ", 0, state.vtype);
    expect_zero("vcsr ", 0, state.vcsr);
}

/* Busy: so others get the hart at the end of its time, not between two instructions that it chooses. */
static void let_time_pass(void)
{
    for (uint64_t end = read_time() + us_to_ticks(pause_us); read_time() < end;)
        ;
}

static void live(void *unused)
{
    (void)unused;
    look(); /* a hart is started with these units on */
    let_time_pass();
    look();
    fp_load(f_left, 0x1f);
    if (has_vectors)
        vector_load(v_left, size / 2, 7);
    /* Every other time others take the registers before it ends, and what it has left is written to memory. */
    if (atomic_fetch_add(&lives, 1) % 2 != 0)
        let_time_pass();
    long error = sbi_hart_stop();
    fail("hart_stop returned: error %ld", error);
}

static void wait_until_stopped(uint64_t hart)
{
    for (uint64_t end = read_time() + us_to_ticks(PATIENCE_MS * 1000); sbi_hart_status(hart).value != SBI_HART_STOPPED; sleep_us(100)) {
        if (read_time() > end)
            fail("hart %lu does not stop", hart);
    }
}

bool guest_main(void)
{
    uint64_t n = arg_number("n", 20, 1, 1000000);
    pause_us = arg_number("pause_us", 2000, 0, 1000000);
    args_finish();
    if (machine.hart_count != 2)
        fail("this probe wants 2 harts");
    uint64_t second = machine.harts[machine.harts[0].id == machine.boot_hart].id;
    has_vectors = machine_has("v");
    if (has_vectors) {
        size = vector_bytes();
        if (size > MAX_VECTOR_BYTES)
            fail("vector registers of %lu bytes: this probe has room for %d", size, MAX_VECTOR_BYTES);
    }
    for (uint64_t i = 0; i < REGISTERS; i++)
        f_left[i] = LEFT;
    for (uint64_t i = 0; i < REGISTERS * size; i++)
        v_left[i] = LEFT;

    static struct secondary start = { stack + STACK_WORDS, live, 0 };
    for (uint64_t i = 0; i < n; i++) {
        start_hart(second, &start);
        wait_until_stopped(second);
    }
    print("@result {\"job\":\"reborn\",\"lives\":%lu,\"vector_bits\":%lu,\"ok\":%s}\n", atomic_load(&lives), size * 8,
          atomic_load(&lives) == n ? "true" : "false");
    return atomic_load(&lives) == n;
}
