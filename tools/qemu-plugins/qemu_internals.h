/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QEMU internals that Debian's binary exports from its dynamic symbol table.
 *
 * Why internals: the public API has qemu_plugin_update_ns(), but in QEMU 10.0 TCG has no set_virtual_clock hook behind
 * it, so that call does nothing. And the vCPU index that QEMU passes to a callback is wrong with thread=single: a
 * block is shared by all harts, but carries the index of the hart that translated it; only current_cpu tells the truth.
 *
 * All are weak: on a QEMU that lacks one, the library still loads, and requirements.c can say what is wrong instead of
 * the dynamic linker's "undefined symbol". They were checked with QEMU 10.0.2.
 */
#ifndef QEMU_INTERNALS_H
#define QEMU_INTERNALS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define WEAK __attribute__((weak))

typedef struct CPUState CPUState; /* one vCPU; never looked into */

/* The vCPU that this host thread executes; NULL in the main thread. */
extern WEAK __thread CPUState *current_cpu;
WEAK CPUState *qemu_get_cpu(int index);

/* Nothing to execute: halted without a pending interrupt, or stopped. Asks AccelOpsClass.thread_is_idle. */
WEAK bool cpu_thread_is_idle(CPUState *);
/* Makes the vCPU leave its execution loop before its next translation block. */
WEAK void cpu_exit(CPUState *);
/* Marks current_cpu as stopped, as for a shutdown, and calls cpu_exit. */
WEAK void cpu_stop_current(void);
/* Leaves the current translation block by longjmp; the guest's pc must be in sync (it is at a slice's first block). */
WEAK _Noreturn void cpu_loop_exit_noexc(CPUState *);
/* The same in the middle of a block: `host_pc` is where the block's code goes on, and tells which instruction is next.
   The guest's registers must be in memory (QEMU_PLUGIN_CB_READS_REGS). */
WEAK _Noreturn void cpu_loop_exit_restore(CPUState *, uintptr_t host_pc);
WEAK void async_run_on_cpu(CPUState *, void (*)(CPUState *, uint64_t), uint64_t);

/* Clocks and timers. */
enum { QEMU_CLOCK_REALTIME = 0, QEMU_CLOCK_VIRTUAL = 1 };
enum { TIMER_ALL_ATTRIBUTES = -1, TIMER_SCALE_MS = 1000000 };
WEAK int64_t qemu_clock_get_ns(int clock);
/* Nanoseconds until the next timer of any list; -1 if there is none; 0 if one is due. */
WEAK int64_t qemu_clock_deadline_ns_all(int clock, int attributes);
/* Runs the due timers of the main context; false if none was due there. Needs the BQL. */
WEAK bool qemu_clock_run_timers(int clock);
WEAK void timer_init_full(void *timer, void *group, int clock, int scale, int attributes, void (*)(void *), void *);
WEAK void timer_mod(void *timer, int64_t expire);

/* A character device by its label; and typing on it: how many bytes it has room for now, and the bytes. */
struct Chardev;
WEAK struct Chardev *qemu_chr_find(const char *label);
WEAK int qemu_chr_be_can_write(struct Chardev *);
WEAK void qemu_chr_be_write(struct Chardev *, const uint8_t *bytes, int length);

/* The big QEMU lock. The TCG thread doesn't hold it while it executes guest code. */
WEAK void bql_lock_impl(const char *file, int line);
WEAK void bql_unlock(void);
WEAK bool bql_locked(void);

/* Physical memory, as a hart's loads see it. */
WEAK void cpu_physical_memory_rw(uint64_t address, void *bytes, uint64_t length, bool is_write);
WEAK bool cpu_physical_memory_is_io(uint64_t address);

/* Writes the vCPU's state as text. With the H extension its first line tells V, which no register does. */
WEAK void cpu_dump_state(CPUState *, FILE *, int flags);

/* The end of a run. */
enum { SHUTDOWN_CAUSE_HOST_QMP_QUIT = 2 };
WEAK void qemu_system_shutdown_request(int cause);
WEAK int qemu_shutdown_requested_get(void);
WEAK bool runstate_is_running(void);

/* Who is it? Both results of qmp_query_version() are allocated for the caller. */
struct qemu_version {
    struct {
        int64_t major, minor, micro;
    } *triple;
    char *package;
};
WEAK struct qemu_version *qmp_query_version(void *error);

/* How the accelerator runs its vCPUs: the layout of QEMU 10.0's struct AccelOpsClass. */
struct accel_ops {
    char parent[96]; /* ObjectClass */
    void *ops_init, *are_resettable, *reset_hold, *create_thread, *kick_thread;
    bool (*thread_is_idle)(CPUState *);
    void *sync_post_reset, *sync_post_init, *sync_state, *sync_pre_loadvm, *sync_pre_resume;
    void *handle_interrupt;
    int64_t (*get_virtual_clock)(void);
    void (*set_virtual_clock)(int64_t);
    int64_t (*get_elapsed_ticks)(void);
};
WEAK struct accel_ops *cpus_get_accel(void);
extern WEAK int use_icount;
/* Their addresses are what accel_ops holds with thread=single and without -icount. */
WEAK void rr_kick_vcpu_thread(CPUState *);
WEAK void rr_start_vcpu_thread(CPUState *);
WEAK void tcg_handle_interrupt(CPUState *, int);

#endif
