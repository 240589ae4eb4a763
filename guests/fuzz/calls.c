/* SBI calls: every extension and function, with edge arguments. */
#include "ainori_sbi.h"
#include "code.h"
#include "csr.h"
#include "kinds.h"
#include "machine.h"
#include "memory.h"
#include "random.h"
#include "sbi.h"
#include "timer.h"
#include "trap.h"

#define A0 10
#define LEAST_ERROR -14 /* SBI 3.0 */

/* Not among them: HSM, which has a kind of its own. The legacy ones, and all that SBI 3.0 knows. */
static const uint64_t extensions[] = {
    SBI_BASE, SBI_TIME, SBI_IPI, SBI_IPI, SBI_RFENCE, SBI_RFENCE, SBI_RFENCE, SBI_SRST, SBI_DBCN, SBI_DBCN, AINORI_EID,
    SBI_LEGACY_SET_TIMER, SBI_LEGACY_PUTCHAR, SBI_LEGACY_GETCHAR, SBI_LEGACY_CLEAR_IPI, SBI_LEGACY_SEND_IPI, SBI_LEGACY_FENCE_I,
    SBI_LEGACY_VMA, SBI_LEGACY_VMA_ASID, 9, 0xf, 0x504d55 /* PMU */, 0x43505043 /* CPPC */, 0x4e41434c /* NACL */, 0x535441 /* STA */,
    0x535345 /* SSE */, 0x46574654 /* FWFT */, 0x44425452 /* DBTR */, 0x4d505859 /* MPXY */, 0x08000000, 0x09000000, 0x0a000000,
};

/* Hart masks: all, none, some, and those that name harts that aren't there. */
static void fill_mask(struct vcpu *v, uint64_t *mask, uint64_t *base)
{
    uint64_t r = any(v), all = vcpu_count >= 64 ? UINT64_MAX : (1ul << vcpu_count) - 1;
    switch (r & 7) {
    case 0:
        *mask = any(v), *base = UINT64_MAX;
        break;
    case 1:
        *mask = edge_number(v), *base = edge_number(v);
        break;
    case 2:
        *mask = 1, *base = (r >> 8) % vcpu_count;
        break;
    case 3:
        *mask = all, *base = 0;
        break;
    default:
        *mask = any(v) & all, *base = 0;
    }
}

/* Registers a0 to a7. */
static void fill_call(struct vcpu *v, uint64_t *a)
{
    uint64_t extension = once_in(v, 16) ? edge_number(v) : one_of(v, extensions);
    a[7] = extension;
    a[6] = once_in(v, 8) ? edge_number(v) : any(v) & 7;
    for (int i = 0; i < 6; i++)
        a[i] = any(v) & 1 ? edge_number(v) : edge_address(v);
    switch (extension) {
    case SBI_LEGACY_SHUTDOWN:
    case SBI_HSM:
        a[7] = SBI_BASE;
        break;
    case SBI_LEGACY_SEND_IPI:
    case SBI_LEGACY_FENCE_I:
    case SBI_LEGACY_VMA:
    case SBI_LEGACY_VMA_ASID: /* a hart mask in memory, or none; otherwise a fault */
        if (any(v) & 3)
            a[0] = once_in(v, 4) ? 0 : scratch_address(v);
        break;
    case SBI_IPI:
    case SBI_RFENCE:
        fill_mask(v, &a[0], &a[1]);
        a[2] = any(v) & 1 ? edge_number(v) : scratch_address(v);
        a[3] = any(v) & 1 ? edge_number(v) : below(v, 20 * PAGE);
        break;
    case SBI_SRST: /* reserved types, or reserved reasons: neither may end the guest */
        if (any(v) & 1)
            a[0] = 3 + below(v, 0xeffffffc);
        else
            a[1] = 2 + below(v, 0xdffffffd);
        break;
    case AINORI_EID:
        /* It ends with an interrupt that is enabled, as suspension does. */
        if (a[6] == AINORI_GIVE_WAY) {
            timer_set(read_time() + (any(v) & 0xff));
            csr_set(sie, 1ul << IRQ_TIMER);
        }
        break;
    case SBI_DBCN:
        if (a[6] == SBI_DBCN_READ) {
            a[0] = below(v, 64);
            a[1] = (uintptr_t)scratch + (below(v, SCRATCH_PAGES * PAGE) & ~63ul); /* it may write there: not behind the end */
            a[2] = 0;
        } else if (any(v) & 1) {
            a[0] = below(v, 32);
            a[1] = scratch_address(v);
            a[2] = 0;
        }
        break;
    }
}

static bool has_hart_mask(uint64_t extension) { return extension >= SBI_LEGACY_SEND_IPI && extension <= SBI_LEGACY_VMA_ASID; }

/* A legacy call may answer more than whether it has done what it should. */
static void check_answer(const uint64_t *a, long answer)
{
    long most = a[7] == SBI_LEGACY_GETCHAR ? UINT8_MAX : a[7] == SBI_LEGACY_CLEAR_IPI ? 1 : 0;
    if (answer > most || answer < LEAST_ERROR)
        broken("SBI call 0x%lx, function 0x%lx, of 0x%lx, 0x%lx: answer %ld", a[7], a[6], a[0], a[1], answer);
}

/* Through a snippet with all registers filled: none but those of the answer may change, and none in a call that faulted instead. */
static void call_and_compare(struct vcpu *v, const uint64_t *a)
{
    uint64_t before[32], traps = v->traps;
    registers_fill(v);
    for (int i = 0; i < 8; i++)
        v->x[A0 + i] = a[i];
    for (int i = 1; i < 32; i++)
        before[i] = v->x[i];
    code_start(v);
    code_add_exactly(v, ECALL);
    code_run(v, (struct setting){ .interrupts = false, .satp = fence_satp(v, false), .limit_us = 100 });
    /* One trap ends the snippet. */
    bool faulted = v->traps - traps > 1;
    int answers = faulted ? 0 : a[7] <= SBI_LEGACY_SHUTDOWN ? 1 : 2;
    for (int i = 1; i < 32; i++) {
        if ((i < A0 || i >= A0 + answers) && v->x[i] != before[i])
            broken("SBI call 0x%lx, function 0x%lx: x%d was 0x%lx, is 0x%lx", a[7], a[6], i, before[i], v->x[i]);
    }
    if (!faulted)
        check_answer(a, v->x[A0]);
    else if (!has_hart_mask(a[7]))
        broken("SBI call 0x%lx, function 0x%lx, of 0x%lx, 0x%lx faulted", a[7], a[6], a[0], a[1]);
}

unsigned try_calls(struct vcpu *v)
{
    uint64_t a[8];
    fill_call(v, a);
    /* The fuzzer's own code must not fault. */
    if (once_in(v, 8) || has_hart_mask(a[7]))
        call_and_compare(v, a);
    else
        check_answer(a, sbi_call5(a[7], a[6], a[0], a[1], a[2], a[3], a[4]).error);
    return 1;
}
