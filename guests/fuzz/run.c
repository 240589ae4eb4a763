#include "run.h"
#include <stdatomic.h>
#include "attacks.h"
#include "console.h"
#include "csr.h"
#include "gate.h"
#include "kinds.h"
#include "machine.h"
#include "random.h"
#include "sbi.h"
#include "timer.h"
#include "trap.h"

#define LOOK_US 100 /* how often the boot vCPU looks whether all are done */
#define KEEP_GOING 64 /* after so many turns it starts again whoever has stopped */

struct plan plan;
unsigned vcpu_count;
unsigned kind_mask;

static try_kind *const tries[KINDS] = {
    [KIND_INSTRUCTIONS] = try_instructions, [KIND_USER] = try_user,         [KIND_CSRS] = try_csrs,
    [KIND_CALLS] = try_calls,               [KIND_DEVICES] = try_devices,   [KIND_WILD] = try_wild,
    [KIND_PAGING] = try_paging,             [KIND_LIFECYCLE] = try_lifecycle, [KIND_PENDING] = try_pending,
    [KIND_KEEP] = try_keep,                 [KIND_OUTPUT] = try_output,
};

void broken(const char *format, ...)
{
    static atomic_uint speaker; /* its index + 1 */
    unsigned me = self()->index + 1, other = 0;
    interrupts_off();
    while (!atomic_compare_exchange_weak(&speaker, &other, me)) {
        /* If the words fail as well, at least the guest ends. */
        if (other == me)
            sbi_shutdown(SBI_REASON_FAILURE);
        other = 0;
        pause_hint();
    }
    va_list arguments;
    print("\n@result {\"job\":\"fuzz\",\"vcpus\":%u,\"ok\":false}\nvCPU %u, input %lu: ", vcpu_count, self()->index, self()->done);
    va_start(arguments, format);
    print_arguments(format, arguments);
    va_end(arguments);
    fail(".");
}

void unexpected(struct vcpu *v)
{
    broken("trap in the fuzzer's own code: cause 0x%lx at 0x%lx, value 0x%lx, sstatus 0x%lx", v->cause, v->pc, v->value, v->status);
}

/* All begin together, so that a neighbour can measure from before the first input until after the last one. */
static void wait_for_begin(void)
{
    csr_write(sie, 0);
    while (plan.end == 0)
        sleep_us(LOOK_US);
}

static bool has_more(const struct vcpu *v) { return v->done < v->inputs && read_time() < plan.end; }

static void turn(struct vcpu *v)
{
    unsigned kind = plan.kinds[below(v, plan.kind_count)];
    /* One is counted ahead: a vCPU that stops itself doesn't come back from there. */
    v->counts[kind]++;
    v->done++;
    uint64_t more = (uint64_t)tries[kind](v) - 1; /* -1 if none was attempted */
    v->counts[kind] += more;
    v->done += more;
}

static void do_inputs(struct vcpu *v)
{
    for (unsigned turns = 0; has_more(v); turns++) {
        turn(v);
        if (v->index == 0 && turns % KEEP_GOING == 0)
            start_all();
    }
}

static void work(struct vcpu *v)
{
    if (v->first == 0)
        v->first = read_time();
    if (plan.attack)
        attack(v, plan.attack, plan.end);
    else
        do_inputs(v);
    v->last = read_time();
    v->finished = true;
}

void vcpu_run(void *vcpu)
{
    struct vcpu *v = vcpu;
    gate_use(v);
    v->lives++;
    wait_for_begin();
    if (!v->finished)
        work(v);
    for (;;) {
        csr_write(sie, 0);
        sbi_hart_stop();
    }
}

static uint64_t progress(void)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < vcpu_count; i++)
        sum += vcpus[i]->done + vcpus[i]->finished + (vcpus[i]->lives > 0);
    return sum;
}

static bool is_there(const struct vcpu *v) { return v->lives > 0; }
static bool is_finished(const struct vcpu *v) { return v->finished; }

static bool all_others(bool (*are)(const struct vcpu *))
{
    for (unsigned i = 1; i < vcpu_count; i++) {
        if (!are(vcpus[i]))
            return false;
    }
    return true;
}

/* Starts the other vCPUs until all of them are so. False if there is no progress for so long. */
static bool wait_for_others(bool (*are)(const struct vcpu *), uint64_t patience)
{
    uint64_t seen = 0, since = read_time();
    csr_write(sie, 0);
    while (!all_others(are)) {
        start_all();
        sleep_us(LOOK_US);
        uint64_t now = progress();
        if (now != seen) {
            seen = now;
            since = read_time();
        } else if (read_time() - since > patience) {
            return false;
        }
    }
    return true;
}

bool boot_vcpu_run(uint64_t patience)
{
    if (!wait_for_others(is_there, patience))
        return false;
    while (read_time() < plan.begin)
        sleep_us(LOOK_US);
    plan.end = plan.length ? read_time() + plan.length : UINT64_MAX;
    work(vcpus[0]);
    return wait_for_others(is_finished, patience);
}
