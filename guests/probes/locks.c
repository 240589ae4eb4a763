/* What does it cost that a lock's holder loses its hart? All harts of the device tree take one spin lock again and again, hold it for a
 * stated number of instructions, and do something else for a while. Where the SBI has Ainori's extension they mark the sections in which they
 * hold it, so that a policy that delays preemptions can let them finish.
 *
 * It is not a ticket lock: there a waiter that lost its hart keeps the others waiting as well, and marks of holders don't help. */
#include <stdatomic.h>
#include "ainori_sbi.h"
#include "args.h"
#include "console.h"
#include "csr.h"
#include "histogram.h"
#include "machine.h"
#include "sbi.h"
#include "start.h"
#include "timer.h"
#include "trap.h"
#include "xorshift.h"

#define STACK_WORDS 512

struct worker {
    struct secondary start;
    uint64_t random;
    uint64_t stack[STACK_WORDS] __attribute__((aligned(16)));
};

static struct worker workers[MAX_HARTS];
static atomic_uint finished;
static uint64_t section, rest; /* instructions */
static uint64_t cut_ticks, end;
static bool marks, says;

/* The lock, with a cache line of its own, and what it guards. */
static struct {
    _Alignas(64) atomic_uint taken;
    _Alignas(64) struct histogram waits, sections;
    uint64_t cut;
} lock;

/* So many instructions, at least two: a loop of two. */
static void compute(uint64_t instructions)
{
    uint64_t turns = instructions / 2;
    __asm__ volatile("1: addi %0, %0, -1; bnez %0, 1b" : "+r"(turns));
}

static void mark(long function)
{
    if (marks)
        sbi_call(AINORI_EID, function, 0, 0, 0);
}

/* Spins until the lock looks free, as Linux does: with WRS.NTO where there is Zawrs, by which a hypervisor can see that this hart spins; or in a plain
 * loop, as Linux's bit spin locks. */
static void await_free(void)
{
    for (;;) {
        unsigned taken;
        __asm__ volatile("lr.w %0, %1" : "=r"(taken) : "A"(lock.taken) : "memory");
        if (!taken)
            return;
        if (says)
            __asm__ volatile(".word 0x00d00073" ::: "memory"); /* wrs.nto */
        else
            pause_hint();
    }
}

/* The mark comes before the lock and goes after it: a hart that holds the lock is marked at every moment. */
static void take(void)
{
    for (;;) {
        await_free();
        mark(AINORI_LOCK_TAKEN);
        if (!atomic_exchange_explicit(&lock.taken, 1, memory_order_acquire))
            return;
        mark(AINORI_LOCK_RELEASED);
    }
}

static void release(void)
{
    atomic_store_explicit(&lock.taken, 0, memory_order_release);
    mark(AINORI_LOCK_RELEASED);
}

static void work(struct worker *me)
{
    while (read_time() < end) {
        /* Of random length, so that the harts, and the ticks of a guest beside this one, meet in all ways. */
        compute(2 + rest / 2 + xorshift(&me->random) % (rest + 1));
        uint64_t wanted = read_time();
        take();
        uint64_t taken = read_time();
        compute(section);
        uint64_t done = read_time();
        histogram_add(&lock.waits, taken - wanted);
        histogram_add(&lock.sections, done - taken);
        lock.cut += done - taken >= cut_ticks;
        release();
    }
    atomic_fetch_add(&finished, 1);
}

static void secondary(void *worker)
{
    work(worker);
    sbi_hart_stop();
}

bool guest_main(void)
{
    uint64_t ms = arg_number("ms", 1000, 1, 1000000);
    section = arg_number("section", 5000, 2, 1000000000);
    rest = arg_number("rest", 50000, 0, 1000000000);
    uint64_t cut_us = arg_number("cut_us", 100, 1, 1000000);
    says = arg_number("says", 1, 0, 1) && machine_has("zawrs");
    marks = arg_number("marks", 1, 0, 1) && sbi_probe(AINORI_EID);
    args_finish();
    cut_ticks = us_to_ticks(cut_us);
    print("%u harts, one lock for %lu instructions each %lu, %s\n", machine.hart_count, section, rest, marks ? "marked" : "not marked");

    end = read_time() + us_to_ticks(ms * 1000);
    struct worker *mine = NULL;
    for (unsigned i = 0; i < machine.hart_count; i++) {
        struct worker *worker = &workers[i];
        worker->random = i + 1;
        if (machine.harts[i].id == machine.boot_hart) {
            mine = worker;
            continue;
        }
        worker->start = (struct secondary){ worker->stack + STACK_WORDS, secondary, worker };
        start_hart(machine.harts[i].id, &worker->start);
    }
    work(mine);
    while (atomic_load(&finished) < machine.hart_count)
        sleep_us(100);

    print("@result {\"job\":\"locks\",\"harts\":%u,\"ms\":%lu,\"section\":%lu,\"rest\":%lu,\"marks\":%s,\"sections\":%lu,\"cut\":%lu,\"wait_ns\":",
          machine.hart_count, ms, section, rest, marks ? "true" : "false", lock.sections.count, lock.cut);
    histogram_print_summary(&lock.waits);
    print(",\"section_ns\":");
    histogram_print_summary(&lock.sections);
    print(",\"ok\":true}\n");
    histogram_print_buckets(&lock.waits, "locks", "wait_ns");
    histogram_print_buckets(&lock.sections, "locks", "section_ns");
    return true;
}
