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

static bool has_more(const struct vcpu *v) { return v->done < v->inputs && read_time() < plan.end; }

static void turn(struct vcpu *v)
{
    unsigned kind = plan.kinds[below(v, plan.kind_count)];
    /* Counted ahead: a vCPU that stops itself doesn't come back from there. */
    v->counts[kind]++;
    v->done++;
    unsigned more = tries[kind](v) - 1;
    v->counts[kind] += more;
    v->done += more;
}

static void work(struct vcpu *v)
{
    if (plan.attack) {
        attack(v, plan.attack, plan.end);
        return;
    }
    for (unsigned turns = 0; has_more(v); turns++) {
        turn(v);
        if (v->index == 0 && turns % KEEP_GOING == 0)
            start_all();
    }
}

void vcpu_run(void *vcpu)
{
    struct vcpu *v = vcpu;
    gate_use(v);
    v->lives++;
    if (!v->finished)
        work(v);
    v->finished = true;
    for (;;) {
        csr_write(sie, 0);
        sbi_hart_stop();
    }
}

static uint64_t progress(void)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < vcpu_count; i++)
        sum += vcpus[i]->done + vcpus[i]->finished;
    return sum;
}

static bool all_finished(void)
{
    for (unsigned i = 1; i < vcpu_count; i++) {
        if (!vcpus[i]->finished)
            return false;
    }
    return true;
}

bool boot_vcpu_run(uint64_t patience)
{
    struct vcpu *v = vcpus[0];
    start_all();
    work(v);
    v->finished = true;
    uint64_t seen = 0, since = read_time();
    csr_write(sie, 0);
    while (!all_finished()) {
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
