/* Do floating-point and vector registers and the CSRs of S-mode keep what is in them, whatever this guest and its neighbours do? */
#include "code.h"
#include "csr.h"
#include "kinds.h"
#include "machine.h"
#include "memory.h"
#include "random.h"
#include "sbi.h"
#include "ainori_sbi.h"
#include "timer.h"

#define REGISTERS 32
#define MOST_VECTOR_BYTES 32 /* of a register: what fits into the scratch space below; with longer ones vectors are left out */
#define SENVCFG 0x10a

void fp_load(const uint64_t f[REGISTERS], uint64_t fcsr);
uint64_t fp_store(uint64_t f[REGISTERS]);
void vector_load(const uint8_t *v, uint64_t elements, uint64_t vcsr);
struct vector_state {
    uint64_t vl, vtype, vcsr;
};
void vector_store(uint8_t *v, struct vector_state *state);
uint64_t vector_bytes(void);

/* Older than the register are the harts without Sstc that there are, U54. */
static bool has_environment(void) { return machine.has_sstc; }

static uint64_t vector_length; /* bytes; 0: no vectors */

void keep_prepare(void)
{
    if (!machine_has("v"))
        return;
    csr_set(sstatus, SSTATUS_VS_INITIAL);
    vector_length = vector_bytes();
    if (vector_length > MOST_VECTOR_BYTES)
        vector_length = 0;
}

/* Something that may cost this vCPU its hart. */
static void disturb(struct vcpu *v)
{
    uint64_t r = any(v);
    switch (r & 7) {
    case 0:
        sbi_call(AINORI_EID, AINORI_YIELD, 0, 0, 0);
        break;
    case 1:
        sbi_remote_fence_i(0, UINT64_MAX);
        break;
    case 2:
        sbi_send_ipi(0, UINT64_MAX);
        break;
    case 3: /* the units off, and an instruction that wants them */
        csr_clear(sstatus, SSTATUS_FS | SSTATUS_VS);
        sbi_call(SBI_BASE, 0, 0, 0, 0);
        break;
    case 4:
        timer_set(0);
        break;
    default:
        timer_set(read_time() + (r >> 8 & 255));
        csr_write(sie, 1ul << IRQ_TIMER);
        wait_for_interrupt();
    }
}

static void compare(const char *what, int number, uint64_t found, uint64_t wanted)
{
    if (found != wanted)
        broken("%s%d is 0x%lx, should be 0x%lx", what, number, found, wanted);
}

unsigned try_keep(struct vcpu *v)
{
    uint64_t f[REGISTERS], wanted = any(v), fcsr = (any(v) % 5) << 5 | (any(v) & 0x1f);
    static uint8_t room[64][REGISTERS * MOST_VECTOR_BYTES] __attribute__((aligned(8)));
    uint64_t *vectors = (uint64_t *)room[v->index];
    uint64_t words = REGISTERS * vector_length / 8;
    for (int i = 0; i < REGISTERS; i++)
        f[i] = wanted + i;
    for (uint64_t i = 0; i < words; i++)
        vectors[i] = wanted ^ i << 32;
    csr_set(sstatus, SSTATUS_FS_INITIAL);
    fp_load(f, fcsr);
    if (words) {
        csr_set(sstatus, SSTATUS_VS_INITIAL);
        vector_load(room[v->index], vector_length / 2, wanted & 7);
    }
    csr_write(sepc, wanted & ~1ul);
    csr_write(scause, wanted & 63);
    csr_write(stval, wanted);
    csr_write(sscratch, wanted);
    csr_write(scounteren, wanted & 7);
    if (has_environment())
        csr_write(SENVCFG, wanted & 1);

    disturb(v);

    compare("sepc", 0, csr_read(sepc), wanted & ~1ul);
    compare("scause", 0, csr_read(scause), wanted & 63);
    compare("stval", 0, csr_read(stval), wanted);
    compare("sscratch", 0, csr_read(sscratch), wanted);
    compare("scounteren", 0, csr_read(scounteren), wanted & 7);
    if (has_environment())
        compare("senvcfg", 0, csr_read(SENVCFG), wanted & 1);
    csr_write(scounteren, 7);
    if (has_environment())
        csr_write(SENVCFG, 0xf0);
    csr_set(sstatus, SSTATUS_FS_INITIAL);
    if (words) {
        struct vector_state state;
        csr_set(sstatus, SSTATUS_VS_INITIAL);
        vector_store(room[v->index], &state);
        for (uint64_t i = 0; i < words; i++)
            compare("word of v", i, vectors[i], wanted ^ i << 32);
        compare("vl", 0, state.vl, vector_length / 2);
        compare("vtype", 0, state.vtype, 0x09);
        compare("vcsr", 0, state.vcsr, wanted & 7);
    }
    compare("fcsr", 0, fp_store(f), fcsr);
    for (int i = 0; i < REGISTERS; i++)
        compare("f", i, f[i], wanted + i);
    return 1;
}
