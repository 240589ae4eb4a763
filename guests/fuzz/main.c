/* Tries out what a guest can do to a hypervisor, at random but repeatably, on all of its vCPUs at once. See README.md. */
#include "args.h"
#include "attacks.h"
#include "console.h"
#include "gate.h"
#include "kinds.h"
#include "machine.h"
#include "memory.h"
#include "random.h"
#include "run.h"
#include "sbi.h"
#include "trap.h"

static const struct {
    const char *name;
    unsigned weight; /* turns of this kind, of all weights together */
} kinds[KINDS] = {
    [KIND_INSTRUCTIONS] = { "instructions", 8 }, [KIND_USER] = { "user", 4 },           [KIND_CSRS] = { "csrs", 4 },
    [KIND_CALLS] = { "calls", 12 },              [KIND_DEVICES] = { "devices", 4 },     [KIND_WILD] = { "wild", 4 },
    [KIND_PAGING] = { "paging", 6 },             [KIND_LIFECYCLE] = { "lifecycle", 6 }, [KIND_PENDING] = { "pending", 4 },
    [KIND_KEEP] = { "keep", 2 },                 [KIND_OUTPUT] = { "output", 1 },
};

#define DEFAULT_KINDS ((1u << KINDS) - 1)

static void list_vcpus(uint64_t *ids)
{
    ids[0] = machine.boot_hart;
    vcpu_count = 1;
    for (unsigned i = 0; i < machine.hart_count; i++) {
        if (machine.harts[i].id != machine.boot_hart)
            ids[vcpu_count++] = machine.harts[i].id;
    }
}

static void list_kinds(void)
{
    for (unsigned kind = 0; kind < KINDS; kind++) {
        for (unsigned i = 0; kind_mask >> kind & 1 && i < kinds[kind].weight; i++)
            plan.kinds[plan.kind_count++] = kind;
    }
}

static void print_result(bool all_done)
{
    uint64_t inputs = 0, traps = 0, watchdogs = 0, lives = 0, from = UINT64_MAX, to = 0;
    for (unsigned i = 0; i < vcpu_count; i++) {
        inputs += vcpus[i]->done;
        traps += vcpus[i]->traps;
        watchdogs += vcpus[i]->watchdogs;
        lives += vcpus[i]->lives;
        if (vcpus[i]->first && vcpus[i]->first < from)
            from = vcpus[i]->first;
        if (vcpus[i]->last > to)
            to = vcpus[i]->last;
    }
    print("\n@result {\"job\":\"fuzz\",\"vcpus\":%u,\"inputs\":%lu,\"traps\":%lu,\"watchdogs\":%lu,\"starts\":%lu,"
          "\"span\":{\"from\":%lu,\"to\":%lu},\"kinds\":{", vcpu_count, inputs, traps, watchdogs, lives, from, to);
    for (unsigned kind = 0; kind < KINDS; kind++) {
        uint64_t count = 0;
        for (unsigned i = 0; i < vcpu_count; i++)
            count += vcpus[i]->counts[kind];
        print("%s\"%s\":%lu", kind ? "," : "", kinds[kind].name, count);
    }
    print("},\"ok\":%s}\n", all_done ? "true" : "false");
    for (unsigned i = 0; i < vcpu_count && !all_done; i++) {
        if (!vcpus[i]->finished)
            print("vCPU %u is stuck after %lu inputs; its status is %ld\n", i, vcpus[i]->done, sbi_hart_status(vcpus[i]->id).value);
    }
}

bool guest_main(void)
{
    uint64_t ids[MAX_HARTS];
    uint64_t start = read_time();
    uint64_t seed = arg_number("seed", 1, 0, UINT64_MAX);
    uint64_t inputs = arg_number("inputs", 10000, 1, UINT64_MAX / 2);
    uint64_t ms = arg_number("ms", 0, 0, 10000000);
    uint64_t patience_ms = arg_number("patience_ms", 1000, 1, 1000000);
    plan.begin = start + us_to_ticks(arg_number("begin_ms", 0, 0, 1000000) * 1000);
    plan.length = us_to_ticks(ms * 1000);
    kind_mask = arg_number("kinds", DEFAULT_KINDS, 1, (1u << KINDS) - 1);
    plan.attack = arg_choice("attack", attack_names);
    plan.phase = us_to_ticks(arg_number("phase_us", 0, 0, 1000));
    args_finish();
    if (plan.attack && ms == 0)
        fail("bootargs: an attack needs ms=, for how long");

    list_vcpus(ids);
    memory_prepare(ids, vcpu_count);
    for (unsigned i = 0; i < vcpu_count; i++) {
        struct vcpu *v = vcpus[i];
        v->start.entry = vcpu_run;
        v->start.argument = v;
        v->random = seed + i * 0x632be59bd9b4e019;
        v->next_csr = any(v);
        v->inputs = inputs / vcpu_count + (i < inputs % vcpu_count);
        wild_prepare(v);
    }
    struct vcpu *v = vcpus[0];
    __asm__ volatile("mv tp, %0" :: "r"(v));
    gate_use(v);
    keep_prepare();
    list_kinds();
    print("%u vCPUs, seed %lu, %s\n", vcpu_count, seed, plan.attack ? attack_names[plan.attack] : "random inputs");

    bool all_done = boot_vcpu_run(us_to_ticks(patience_ms * 1000));
    print_result(all_done);
    return all_done;
}
