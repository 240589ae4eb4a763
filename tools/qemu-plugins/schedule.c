/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The schedule: rounds and slices.
 *
 * With thread=single one host thread executes all harts in turn. Here each turn is a slice of `quantum` instructions, to
 * within CHUNK; what a hart ran too far is taken off its next slice. A round is one slice of each hart that can run, by
 * rising number: QEMU's own order also depends on who kicked whom, a hart that it comes to too early gives the turn back.
 * At the round's end the common clock moves on by one quantum, however many harts ran: so they progress in parallel. A
 * round is cut short where the next timer comes due, perhaps to less than what a hart is ahead by; that one has no slice
 * in it. When all harts are halted the clock jumps to the next event.
 */
#include "end.h"
#include "lockstep.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <threads.h>

/* A translation block may have 512 instructions, and a hart looks for interrupts between two blocks only. So a block is
   counted, and left if its slice is over, in chunks of so many instructions: with the default ns less than a tick of
   `time`. */
enum { CHUNK = 16 };

/* So many jumps of the clock, from event to event, and the main thread has a while to itself. */
enum { JUMPS_IN_A_ROW = 4096, MAIN_THREAD_NS = 1000000 };

enum { WFI = 0x10500073, OPCODE_SYSTEM = 0x73, CSR_STIMECMP = 0x14d, CSR_VSTIMECMP = 0x24d };

struct schedule_counts counts = {.hash = 14695981039346656037u}; /* FNV-1a's start value */

static int n_harts;
static struct {
    CPUState *cpu;
    int64_t ran; /* instructions past the round's start */
    bool done;   /* had its slice in this round */
    bool halted; /* when its last slice ended, or when the round began */
} harts[MAX_HARTS];

static int turn = -1;        /* the hart whose slice is open or was open last */
static bool slice_open;      /* if not, the next block opens one */
static bool parked;          /* the open slice reached a WFI, which may or may not have halted the hart */
static bool round_open;      /* if not, the next slice opens one */
static int64_t round_length; /* instructions */
static int64_t round_max;    /* the farthest that a hart came in this round, instructions */
static bool timer_written;   /* the last block may have set a timer */
static bool asleep;          /* atomic: the TCG thread found all harts idle and is going to wait, or waits */
static bool finished;        /* the run is over: nothing moves any more */

void schedule_add_hart(int index)
{
    if (index >= MAX_HARTS) abort(); /* qemu_is_known() has checked it */
    harts[index].cpu = qemu_get_cpu(index);
    if (index >= n_harts) n_harts = index + 1;
}

int schedule_harts(void) { return n_harts; }

int64_t schedule_ahead_ns(void)
{
    /* Also after the slice was closed: its last block is still to be executed, and must not see time go back. */
    if (turn < 0 || !current_cpu || harts[turn].cpu != current_cpu) return 0;
    return harts[turn].ran * options.ns_per_insn;
}

static void mix(uint64_t word) { counts.hash = (counts.hash ^ word) * 1099511628211u; /* FNV's prime */ }

static bool asking; /* is_idle() asks, not QEMU's loop over the harts */

static bool is_idle(int hart)
{
    asking = true;
    bool idle = cpu_thread_is_idle(harts[hart].cpu);
    asking = false;
    return idle;
}

static bool all_idle(void)
{
    for (int i = 0; i < n_harts; i++)
        if (!is_idle(i)) return false;
    return true;
}

enum { NOBODY = -1 };

/* Whose slice comes next in this round: always the lowest number, whatever QEMU's order has come to. */
static int next_in_round(void)
{
    for (int i = 0; i < n_harts; i++)
        if (!harts[i].done && harts[i].ran < round_length && !is_idle(i)) return i;
    return NOBODY;
}

void schedule_finish(void) { finished = true; }

bool schedule_asleep(void) { return __atomic_load_n(&asleep, __ATOMIC_RELAXED); }

static void set_asleep(bool value) { __atomic_store_n(&asleep, value, __ATOMIC_RELAXED); }

/* The books end with the last complete slice before the one that asked for the end. schedule_finish() is called after the
   store with which the guest asks; all else that ends a run is seen here, by whoever is about to close a slice or open one. */
static bool run_has_ended(void)
{
    if (!finished && end_was_asked()) schedule_finish();
    return finished;
}

static void close_slice(void)
{
    if (run_has_ended()) return;
    int64_t ran = harts[turn].ran;
    mix((uint64_t)ran ^ (uint64_t)turn << 56);
    counts.slices++;
    if (ran > round_max) round_max = ran;
    harts[turn].done = true;
    slice_open = false;
    parked = false;
}

static void stop_run(void)
{
    schedule_finish();
    bool locked_before = bql_locked();
    if (!locked_before) bql_lock_impl(__FILE__, __LINE__);
    qemu_system_shutdown_request(SHUTDOWN_CAUSE_HOST_QMP_QUIT);
    if (!locked_before) bql_unlock();
}

/* Moves the clock; false if it must not be moved again at once. */
static bool move_to(int64_t time)
{
    int64_t insns = (time - clock_time()) / options.ns_per_insn;
    for (int i = 0; i < n_harts; i++) harts[i].ran = harts[i].ran > insns ? harts[i].ran - insns : 0;
    bool ours = clock_advance(time);
    mix((uint64_t)time);
    if (options.stop_ns && time >= options.stop_ns) stop_run();
    return ours && !finished;
}

static void end_round(void)
{
    if (!round_open || finished) return;
    round_open = false;
    /* If all harts halted early, less than the round's length has passed. */
    move_to(clock_time() + (round_max < round_length ? round_max : round_length) * options.ns_per_insn);
}

/* A timer must not wait for the end of a whole quantum. */
static void stop_short_at_next_event(void)
{
    int64_t left = clock_next_event() - clock_time();
    if (left <= 0) return;
    int64_t insns = (left + options.ns_per_insn - 1) / options.ns_per_insn;
    if (insns < round_length) round_length = insns;
}

static void begin_round(void)
{
    round_open = true;
    counts.rounds++;
    if (options.trace_rounds && counts.rounds % (uint64_t)options.trace_rounds == 0)
        fprintf(stderr, "lockstep: T=%" PRId64 " hash=%016" PRIx64 "\n", clock_time(), counts.hash);
    for (int i = 0; i < n_harts; i++) {
        harts[i].done = false;
        harts[i].halted = is_idle(i);
    }
    round_max = 0;
    for (int i = 0; i < n_harts; i++)
        if (!harts[i].halted && harts[i].ran > round_max) round_max = harts[i].ran;
    round_length = options.quantum;
    stop_short_at_next_event();
}

/* Gives the turn back before the current block has executed anything. Only for a slice's first block. */
static _Noreturn void leave(void)
{
    cpu_exit(current_cpu);
    cpu_loop_exit_noexc(current_cpu);
}

static void open_slice(void)
{
    if (run_has_ended()) return;
    int hart = 0;
    while (harts[hart].cpu != current_cpu)
        if (++hart == n_harts) abort(); /* every vCPU announced itself before it ran */
    bool time_passed = false;
    while (!round_open || next_in_round() == NOBODY) {
        if (round_open) {
            end_round();
            time_passed = true;
        }
        if (finished) return;
        begin_round();
    }
    /* QEMU will come to it, and to an interrupt of this hart that has come due. */
    if (time_passed || hart != next_in_round()) leave();
    set_asleep(false);
    turn = hart;
    slice_open = true;
    if (harts[hart].halted) { /* another hart woke it in this round: it must not run in that one's past */
        harts[hart].halted = false;
        if (harts[hart].ran < round_max) harts[hart].ran = round_max;
    }
}

/* The machine will stop as soon as the main thread comes to it; until then nothing more is executed. */
static _Noreturn void stop_current_hart(void)
{
    cpu_stop_current();
    leave();
}

/* Another hart runs though the slice of `turn` is open. */
static void settle_open_slice(void)
{
    /* QEMU's other threads (RCU, main loop) kick harts out of their loop at moments that depend on the host. Their
       slice isn't over: nobody else runs before it is. */
    if (!parked && !is_idle(turn)) leave();
    close_slice();
    harts[turn].halted = true;
}

/* The hart whose slice is open is about to execute so many instructions. */
static void count(int64_t n_insns)
{
    harts[turn].ran += n_insns;
    if (harts[turn].ran < round_length) return;
    close_slice();
    if (next_in_round() == NOBODY) end_round();
    cpu_exit(current_cpu);
}

/* Before each translation block; `n_insns` are those of its first chunk. `vcpu` isn't used: see qemu_internals.h. */
static void on_block(unsigned vcpu, void *n_insns)
{
    (void)vcpu;
    if (__builtin_expect(finished, 0)) stop_current_hart();
    if (__builtin_expect(slice_open && harts[turn].cpu != current_cpu, 0)) settle_open_slice();
    if (!slice_open) open_slice();
    if (__builtin_expect(finished, 0)) stop_current_hart();
    parked = false;
    if (__builtin_expect(timer_written, 0)) {
        timer_written = false;
        stop_short_at_next_event();
    }
    count((intptr_t)n_insns);
}

/* In the middle of a block, before each chunk but its first. */
static void on_chunk(unsigned vcpu, void *n_insns)
{
    (void)vcpu;
    if (__builtin_expect(finished || !slice_open, 0))
        cpu_loop_exit_restore(current_cpu, (uintptr_t)__builtin_return_address(0));
    count((intptr_t)n_insns);
}

static void on_wfi(unsigned vcpu, void *data)
{
    (void)vcpu, (void)data;
    parked = slice_open;
}

static void on_timer_write(unsigned vcpu, void *data)
{
    (void)vcpu, (void)data;
    timer_written = slice_open;
}

/* A write of stimecmp or vstimecmp (QEMU ends the block after each CSR write, so the next block sees the timer). */
static bool writes_timer(uint32_t insn)
{
    uint32_t csr = insn >> 20;
    bool csr_insn = (insn & 0x7f) == OPCODE_SYSTEM && (insn >> 12 & 3) != 0;
    return csr_insn && (csr == CSR_STIMECMP || csr == CSR_VSTIMECMP);
}

void schedule_translate(struct qemu_plugin_tb *tb)
{
    size_t n = qemu_plugin_tb_n_insns(tb);
    end_watch(tb, schedule_finish);
    for (size_t i = 0; i < n; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        void *chunk = (void *)(n - i < CHUNK ? n - i : CHUNK);
        if (i == 0) qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, QEMU_PLUGIN_CB_NO_REGS, chunk);
        else if (i % CHUNK == 0)
            qemu_plugin_register_vcpu_insn_exec_cb(insn, on_chunk, QEMU_PLUGIN_CB_READS_REGS, chunk);
        uint32_t word = 0;
        qemu_plugin_insn_data(insn, &word, sizeof word);
        if (word == WFI) qemu_plugin_register_vcpu_insn_exec_cb(insn, on_wfi, QEMU_PLUGIN_CB_NO_REGS, NULL);
        if (writes_timer(word))
            qemu_plugin_register_vcpu_insn_exec_cb(insn, on_timer_write, QEMU_PLUGIN_CB_NO_REGS, NULL);
    }
}

/* All harts may sleep for good while timers go on, as behind the end of a system. What a device has left to the main thread (on
   sifive_u, the rest of the serial port's FIFO) would wait for the lock as long, since a lock that is free for a moment only goes to who
   is running. No timer is due now, so that nothing a guest can see depends on when it comes. */
static void let_main_thread_work(void)
{
    bql_unlock();
    thrd_sleep(&(struct timespec){.tv_nsec = MAIN_THREAD_NS}, NULL);
    bql_lock_impl(__FILE__, __LINE__);
}

/* QEMU asks this about a halted hart without work: in the TCG thread, with the BQL held and outside any block, after
   each pass over the harts. The main thread asks too; it has no current_cpu. */
bool schedule_idle_hook(CPUState *cpu)
{
    if (asking || !current_cpu || run_has_ended()) return true;
    if (slice_open && is_idle(turn)) {
        close_slice();
        harts[turn].halted = true;
        if (next_in_round() == NOBODY) end_round();
    }
    /* The main thread waits for the lock meanwhile, but SIGTERM's handler leaves its request without it. */
    for (unsigned jumps = 1; !run_has_ended() && all_idle(); jumps++) {
        if (jumps % JUMPS_IN_A_ROW == 0) let_main_thread_work();
        end_round();
        int64_t event = clock_next_event();
        if (finished || event < 0 || !all_idle()) break; /* no event: only the outside world can wake a hart */
        counts.jumps++;
        if (!move_to(event)) break;
    }
    set_asleep(all_idle());
    for (int i = 0; i < n_harts; i++)
        if (harts[i].cpu == cpu) return is_idle(i);
    return true;
}
