/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A plugin that does to a run what a busy host may do to it, and neither time nor counts may notice.
 *
 * - Another thread kicks harts out of QEMU's loop at random moments, as QEMU's RCU thread does now and then.
 * - late=harts: when the guest has asked for shutdown, its harts go on only once QEMU's main thread has stopped them.
 * - late=main: the main thread, about to stop the machine, lets the harts run for LATE_US first.
 * - late=idle: after the WFI number LATE_WFI, for HALTED_US, QEMU doesn't come to see whether all harts are idle.
 *
 * How many kicks there were goes to the file `kicks`.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../qemu_internals.h"
#include "../qemu_plugin_api.h"

PLUGIN_EXPORT int qemu_plugin_version = PLUGIN_API_VERSION;

/* There is a kick for so many blocks at least, however seldom the host lets the other thread run. */
enum { BLOCKS_PER_KICK = 2000 };
enum { LATE_US = 20000, MAX_WAITS = 1000, LATE_WFI = 20, HALTED_US = 900000, WFI = 0x10500073 };

/* QEMU's, for whoever wants to know that the machine is about to stop. */
struct notifier {
    void (*notify)(struct notifier *, void *);
    void *links[2];
};
void qemu_register_shutdown_notifier(struct notifier *);

/* QEMU's, for those who want to measure how it waits for its big lock. */
typedef void lock_function(void *lock, const char *file, int line);
extern lock_function *bql_mutex_lock_func;

static lock_function *lock_bql;
static int harts;
static unsigned long kicks, blocks; /* kicks: atomic */

static unsigned long kicks_so_far(void) { return __atomic_load_n(&kicks, __ATOMIC_RELAXED); }

static void *kick(void *data)
{
    for (unsigned seed = (unsigned)getpid();; __atomic_fetch_add(&kicks, 1, __ATOMIC_RELAXED)) {
        usleep(50 + (unsigned)rand_r(&seed) % 400);
        cpu_exit(qemu_get_cpu(rand_r(&seed) % harts));
    }
    return data;
}

static void on_block(unsigned vcpu, void *data)
{
    (void)vcpu, (void)data;
    if (++blocks % BLOCKS_PER_KICK == 0)
        while (kicks_so_far() < blocks / BLOCKS_PER_KICK) usleep(10);
}

static void wait_for_stop(unsigned vcpu, uint32_t access, uint64_t address, void *data)
{
    (void)vcpu, (void)access, (void)address, (void)data;
    if (qemu_shutdown_requested_get())
        for (int i = 0; i < MAX_WAITS && runstate_is_running(); i++) usleep(1000);
}

static bool halting; /* a WFI is being executed */

static void lock_late(void *lock, const char *file, int line)
{
    static int n_wfis;
    if (current_cpu && halting) {
        halting = false;
        if (++n_wfis == LATE_WFI) usleep(HALTED_US);
    }
    lock_bql(lock, file, line);
}

static void on_wfi(unsigned vcpu, void *data)
{
    (void)vcpu, (void)data;
    halting = true;
}

static void wait_for_harts(struct notifier *notifier, void *data)
{
    (void)notifier, (void)data;
    usleep(LATE_US);
}

static enum { HARTS, MAIN, IDLE } late;

static void on_translate(plugin_id id, struct qemu_plugin_tb *tb)
{
    (void)id;
    size_t n = qemu_plugin_tb_n_insns(tb);
    qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, QEMU_PLUGIN_CB_NO_REGS, NULL);
    if (late == HARTS) /* the store that asks is the last of its block (see end.c) */
        qemu_plugin_register_vcpu_mem_cb(qemu_plugin_tb_get_insn(tb, n - 1), wait_for_stop, QEMU_PLUGIN_CB_NO_REGS,
                                         QEMU_PLUGIN_MEM_WRITES, NULL);
    for (size_t i = 0; late == IDLE && i < n; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        uint32_t word = 0;
        qemu_plugin_insn_data(insn, &word, sizeof word);
        if (word == WFI) qemu_plugin_register_vcpu_insn_exec_cb(insn, on_wfi, QEMU_PLUGIN_CB_NO_REGS, NULL);
    }
}

static void on_hart(plugin_id id, unsigned index)
{
    (void)id;
    pthread_t thread;
    if ((int)index == harts - 1 && pthread_create(&thread, NULL, kick, NULL)) abort();
}

static void on_exit_of_qemu(plugin_id id, void *data)
{
    (void)id, (void)data;
    FILE *out = fopen("kicks", "w");
    if (!out || fprintf(out, "%lu\n", kicks_so_far()) < 0 || fclose(out)) perror("disturber: can't write `kicks`");
}

PLUGIN_EXPORT int qemu_plugin_install(plugin_id id, const struct qemu_info *info, int argc, char **argv)
{
    static struct notifier about_to_stop = {.notify = wait_for_harts};
    const char *option = argc == 1 ? argv[0] : "";
    if (!strcmp(option, "late=harts")) late = HARTS;
    else if (!strcmp(option, "late=main")) late = MAIN;
    else if (!strcmp(option, "late=idle")) late = IDLE;
    else {
        fprintf(stderr, "disturber: needs late=harts, late=main or late=idle\n");
        return -1;
    }
    if (late == MAIN) qemu_register_shutdown_notifier(&about_to_stop);
    if (late == IDLE) {
        lock_bql = bql_mutex_lock_func;
        bql_mutex_lock_func = lock_late;
    }
    harts = info->system.smp_vcpus;
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
    qemu_plugin_register_vcpu_init_cb(id, on_hart);
    qemu_plugin_register_atexit_cb(id, on_exit_of_qemu, NULL);
    return 0;
}
