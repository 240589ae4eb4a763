/* Do several harts work together? All harts of the device tree are started, and go through the same phases: atomic counting, IPIs between each
 * two and to all, remote fences whose effect is looked at, stop and start again. The first thing that doesn't add up ends the guest. */
#include <stdatomic.h>
#include "args.h"
#include "console.h"
#include "csr.h"
#include "machine.h"
#include "sbi.h"
#include "smp_paging.h"
#include "start.h"
#include "timer.h"
#include "trap.h"
#include "worker.h"

#define STACK_WORDS 512
#define ADDITIONS   10000 /* of each hart */
#define TURNS       10    /* remote fences per hart, in each phase */
#define RESTARTS    3
#define ALL_HARTS   UINT64_MAX /* hart mask base: the mask doesn't matter */

struct worker {
    struct secondary start;
    unsigned index;
    uint64_t id;
    volatile uint64_t received; /* IPIs; only this hart writes it */
    uint64_t expected;          /* IPIs that others sent to it */
    uint64_t stack[STACK_WORDS] __attribute__((aligned(16)));
};

static struct worker workers[MAX_HARTS];
static unsigned worker_count;
static uint64_t rounds, patience_ms;

static atomic_ulong arrived;  /* at barriers, since the start */
static atomic_ulong sum;
static atomic_ulong restarted;

/* Only the first hart that finds something wrong speaks. */
#define CHECK(condition, ...)                                                                                          \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            interrupts_off();                                                                                          \
            while (atomic_flag_test_and_set(&failing))                                                                 \
                wait_for_interrupt();                                                                                  \
            print("@result {\"job\":\"smp\",\"harts\":%u,\"ok\":false}\n", worker_count);                              \
            fail(__VA_ARGS__);                                                                                         \
        }                                                                                                              \
    } while (0)

static void software(void)
{
    csr_clear(sip, 1ul << IRQ_SOFTWARE);
    self()->received++;
}

/* Waits until all harts are here. Spins a little, then sleeps in short pieces: where harts are shared, spinning would only keep the others
 * from getting here. */
static void barrier(const char *phase)
{
    unsigned long mine = atomic_fetch_add(&arrived, 1);
    unsigned long all = (mine / worker_count + 1) * worker_count;
    uint64_t start = read_time();
    for (unsigned spins = 0; atomic_load(&arrived) < all; spins++) {
        if (spins < 1000)
            pause_hint();
        else
            sleep_us(100);
        CHECK(read_time() - start < us_to_ticks(patience_ms * 1000), "hart %lu waits in vain for the others: %s", self()->id, phase);
    }
}

static void count_in_parallel(void)
{
    for (int i = 0; i < ADDITIONS; i++)
        atomic_fetch_add(&sum, 1);
    barrier("counting");
    CHECK(atomic_load(&sum) == (unsigned long)ADDITIONS * worker_count, "%u harts added %d each, the sum is %lu", worker_count, ADDITIONS,
          atomic_load(&sum));
}

static void send(struct worker *to)
{
    long error = sbi_send_ipi(1, to->id);
    CHECK(error == SBI_SUCCESS, "IPI from hart %lu to %lu: error %ld", self()->id, to->id, error);
}

/* Waits for one more IPI than were expected so far. */
static void receive(const char *from)
{
    struct worker *me = self();
    me->expected++;
    CHECK(wait_for_count(&me->received, me->expected, patience_ms), "hart %lu got %lu IPIs instead of %lu: %s", me->id, me->received,
          me->expected, from);
    CHECK(me->received == me->expected, "hart %lu got %lu IPIs instead of %lu: %s", me->id, me->received, me->expected, from);
}

/* Between each two harts: a ping, its answer, and so on. */
static void ping_pong(void)
{
    struct worker *me = self();
    for (unsigned i = 0; i < worker_count; i++) {
        for (unsigned j = i + 1; j < worker_count; j++) {
            barrier("ping-pong");
            for (uint64_t round = 0; round < rounds; round++) {
                if (me->index == i) {
                    send(&workers[j]);
                    receive("the answer to a ping is missing");
                } else if (me->index == j) {
                    receive("a ping is missing");
                    send(&workers[i]);
                }
            }
        }
    }
    barrier("after ping-pong");
    CHECK(me->received == me->expected, "hart %lu got %lu IPIs instead of %lu", me->id, me->received, me->expected);
}

/* Each hart in turn sends one IPI to all, itself included. */
static void broadcast(void)
{
    for (unsigned i = 0; i < worker_count; i++) {
        barrier("IPI to all");
        if (self()->index == i) {
            long error = sbi_send_ipi(0, ALL_HARTS);
            CHECK(error == SBI_SUCCESS, "IPI from hart %lu to all: error %ld", self()->id, error);
        }
        receive("an IPI to all is missing");
    }
}

/* Each hart in turn changes a function; after remote_fence_i all must run the new one. */
static void fence_instructions(void)
{
    static uint32_t code[2] __attribute__((aligned(8)));
    long (*volatile function)(void) = (long (*)(void))(uintptr_t)code;
    for (unsigned turn = 0; turn < TURNS * worker_count; turn++) {
        barrier("before remote_fence_i");
        if (self()->index == turn % worker_count) {
            code[0] = turn << 20 | 0x00000513; /* li a0, turn */
            code[1] = 0x00008067;              /* ret */
            long error = sbi_remote_fence_i(0, ALL_HARTS);
            CHECK(error == SBI_SUCCESS, "remote_fence_i of hart %lu: error %ld", self()->id, error);
        }
        barrier("after remote_fence_i");
        long result = function();
        CHECK(result == turn, "hart %lu runs old code (%ld) after remote_fence_i of turn %u", self()->id, result, turn);
    }
}

/* Each hart in turn maps another page to the same address; after remote_sfence_vma all must see it. */
static void fence_addresses(void)
{
    for (unsigned turn = 0; turn < TURNS * worker_count; turn++) {
        barrier("before remote_sfence_vma");
        if (self()->index == turn % worker_count) {
            paging_map_window(turn);
            /* Now the page alone, now everything. */
            long error = turn / worker_count % 2 ? sbi_remote_sfence_vma(0, ALL_HARTS, 0, UINT64_MAX)
                                                 : sbi_remote_sfence_vma(0, ALL_HARTS, PAGING_WINDOW, PAGING_PAGE);
            CHECK(error == SBI_SUCCESS, "remote_sfence_vma of hart %lu: error %ld", self()->id, error);
        }
        barrier("after remote_sfence_vma");
        CHECK(paging_window_shows(turn), "hart %lu sees the old page after remote_sfence_vma of turn %u", self()->id, turn);
    }
    /* All at once: nobody may wait for another for ever. */
    for (unsigned i = 0; i < TURNS; i++) {
        long error = sbi_remote_sfence_vma(0, ALL_HARTS, 0, UINT64_MAX);
        CHECK(error == SBI_SUCCESS, "remote_sfence_vma of hart %lu beside the others': error %ld", self()->id, error);
    }
    barrier("after remote_sfence_vma of all at once");
}

static bool has_paging;

static void work(void)
{
    csr_write(sie, 1ul << IRQ_SOFTWARE);
    interrupts_off();
    barrier("start");
    count_in_parallel();
    ping_pong();
    broadcast();
    fence_instructions();
    if (has_paging) {
        CHECK(paging_on(), "hart %lu has no Sv39, though its device tree has an mmu-type", self()->id);
        fence_addresses();
        paging_off();
    }
    barrier("end");
}

static __attribute__((noreturn)) void stop(void)
{
    csr_write(sie, 0);
    long error = sbi_hart_stop();
    CHECK(false, "hart_stop of hart %lu returned: error %ld", self()->id, error);
    __builtin_unreachable();
}

static void first_start(void *unused)
{
    (void)unused;
    work();
    stop();
}

static void start_again(void *unused)
{
    (void)unused;
    atomic_fetch_add(&restarted, 1);
    stop();
}

static void start(struct worker *worker, void (*entry)(void *))
{
    worker->start = (struct secondary){ worker->stack + STACK_WORDS, entry, worker };
    long error = sbi_hart_start(worker->id, (uintptr_t)secondary_start, (uintptr_t)&worker->start);
    CHECK(error == SBI_SUCCESS, "hart_start of hart %lu: error %ld", worker->id, error);
}

static void wait_until_stopped(struct worker *worker)
{
    uint64_t begin = read_time();
    for (struct sbi_result status; (status = sbi_hart_status(worker->id)).value != SBI_HART_STOPPED; sleep_us(100)) {
        CHECK(status.error == SBI_SUCCESS, "status of hart %lu: error %ld", worker->id, status.error);
        CHECK(read_time() - begin < us_to_ticks(patience_ms * 1000), "hart %lu does not stop: its status is %ld", worker->id, status.value);
    }
}

bool guest_main(void)
{
    rounds = arg_number("rounds", 100, 1, 1000000);
    patience_ms = arg_number("patience_ms", 10000, 1, 1000000);
    args_finish();
    has_paging = fdt_string(&machine.fdt, &machine.boot_cpu, "mmu-type") != NULL;
    paging_prepare();
    on_interrupt(IRQ_SOFTWARE, software);

    /* The boot hart is the first worker, whatever its place in the tree. */
    workers[0].id = machine.boot_hart;
    worker_count = 1;
    for (unsigned i = 0; i < machine.hart_count; i++) {
        if (machine.harts[i].id != machine.boot_hart)
            workers[worker_count++].id = machine.harts[i].id;
    }
    for (unsigned i = 0; i < worker_count; i++)
        workers[i].index = i;
    __asm__ volatile("mv tp, %0" :: "r"(&workers[0]));
    print("%u harts, %lu pings between each two\n", worker_count, rounds);

    for (unsigned i = 1; i < worker_count; i++)
        start(&workers[i], first_start);
    work();
    for (unsigned restart = 0; restart < RESTARTS; restart++) {
        for (unsigned i = 1; i < worker_count; i++) {
            wait_until_stopped(&workers[i]);
            start(&workers[i], start_again);
        }
    }
    for (unsigned i = 1; i < worker_count; i++)
        wait_until_stopped(&workers[i]);
    CHECK(atomic_load(&restarted) == (unsigned long)RESTARTS * (worker_count - 1), "harts were started again %d times, and came back %lu times",
          RESTARTS * (worker_count - 1), atomic_load(&restarted));

    uint64_t received = 0;
    for (unsigned i = 0; i < worker_count; i++)
        received += workers[i].received;
    print("@result {\"job\":\"smp\",\"harts\":%u,\"additions\":%lu,\"ipis\":%lu,\"paging\":%s,\"restarts\":%lu,\"ok\":true}\n", worker_count,
          atomic_load(&sum), received, has_paging ? "true" : "false", atomic_load(&restarted));
    return true;
}
