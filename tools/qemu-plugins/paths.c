/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * paths.so: exact instruction counts of paths through guest code, per hart. README.md tells how to use it.
 *
 * Each instruction has a callback of its own that counts it. A count per translation block would be wrong where a trap
 * or an MMIO access leaves a block in the middle, and QEMU's inline additions are wrong with thread=single and several
 * harts (see qemu_internals.h). QEMU executes an MMIO instruction in the middle of a block twice, but has no callbacks
 * the second time, so it is counted once.
 */
#include "paths.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "end.h"
#include "qemu_plugin_api.h"
#include "this_hart.h"

PLUGIN_EXPORT int qemu_plugin_version = PLUGIN_API_VERSION;

static const uint64_t RAM_BASE = 0x80000000; /* of QEMU's virt machine */

static uint64_t executed[MAX_HARTS];
static bool ended;     /* nothing counts any more, though a few instructions may still be executed */
static uint64_t total; /* over all harts, once the run has ended */
static pthread_mutex_t paths_lock = PTHREAD_MUTEX_INITIALIZER; /* for `paths`, with a host thread per hart */

static void on_instruction(unsigned vcpu, void *data)
{
    (void)vcpu, (void)data;
    executed[this_hart()]++;
}

static void end_count(void)
{
    if (ended) return;
    ended = true;
    for (int hart = 0; hart < MAX_HARTS; hart++) total += executed[hart];
}

static void reach_to(struct path *path, unsigned hart)
{
    if (!path->on[hart].open) return;
    path->on[hart].open = false;
    if (path->via && !path->on[hart].passed_via) return;
    if (path->kind == MARK && path->lengths.used) return;
    uint64_t length = executed[hart] - path->on[hart].opened_at;
    path->sum += length;
    histogram_add(&path->lengths, length);
}

static void reach_from(struct path *path, unsigned hart)
{
    path->begun++;
    if (path->on[hart].open && path->kind != PATH) return;
    path->on[hart].open = true;
    path->on[hart].passed_via = false;
    path->on[hart].opened_at = executed[hart];
}

/* Before the instruction at a place, and before on_instruction counts it: so FROM is in the length, TO isn't. */
static void on_place(unsigned vcpu, void *place)
{
    (void)vcpu;
    if (ended) return;
    unsigned hart = this_hart();
    pthread_mutex_lock(&paths_lock);
    for (struct path *path = paths; path < paths + n_paths; path++) {
        if (path->via == place) path->on[hart].passed_via = true;
        /* TO first: where it is FROM too, one turn of a loop ends and the next begins. */
        if (path->to == place) reach_to(path, hart);
        if (path->from == place) reach_from(path, hart);
    }
    pthread_mutex_unlock(&paths_lock);
}

/* The physical address of an instruction in RAM; 0 elsewhere. The firmware's first instruction in RAM is at RAM_BASE,
   executed in machine mode, where virtual is physical: it tells where RAM is in QEMU's memory. */
static uint64_t physical_address(const struct qemu_plugin_insn *insn)
{
    static uintptr_t ram; /* host address of RAM_BASE */
    uintptr_t host = (uintptr_t)qemu_plugin_insn_haddr(insn);
    if (!host) return 0;
    if (!ram && qemu_plugin_insn_vaddr(insn) >= RAM_BASE) ram = host - (qemu_plugin_insn_vaddr(insn) - RAM_BASE);
    return ram && host >= ram ? RAM_BASE + (host - ram) : 0;
}

static void on_translate(plugin_id id, struct qemu_plugin_tb *tb)
{
    (void)id;
    size_t n = qemu_plugin_tb_n_insns(tb);
    end_watch(tb, end_count);
    for (size_t i = 0; i < n; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        uint64_t virtual = qemu_plugin_insn_vaddr(insn), physical = physical_address(insn);
        for (struct place *place = places; place < places + n_places; place++)
            if (place->address == (place->physical ? physical : virtual))
                qemu_plugin_register_vcpu_insn_exec_cb(insn, on_place, QEMU_PLUGIN_CB_NO_REGS, place);
        qemu_plugin_register_vcpu_insn_exec_cb(insn, on_instruction, QEMU_PLUGIN_CB_NO_REGS, NULL);
    }
}

static void write_path(FILE *out, struct path *path)
{
    const struct histogram_bin *bins = histogram_sort(&path->lengths);
    size_t n = path->lengths.used;
    uint64_t count = 0;
    for (size_t i = 0; i < n; i++) count += bins[i].occurrences;
    fprintf(out, "{\"name\":\"%s\",\"begun\":%" PRIu64 ",\"count\":%" PRIu64, path->name, path->begun, count);
    if (count)
        fprintf(out, ",\"min\":%" PRIu64 ",\"max\":%" PRIu64 ",\"mean\":%.3f", bins[0].value, bins[n - 1].value,
                (double)path->sum / (double)count);
    else
        fprintf(out, ",\"min\":null,\"max\":null,\"mean\":null");
    fprintf(out, ",\"histogram\":[");
    for (size_t i = 0; i < n; i++)
        fprintf(out, "%s[%" PRIu64 ",%" PRIu64 "]", i ? "," : "", bins[i].value, bins[i].occurrences);
    fprintf(out, "]}");
}

static void on_exit_of_qemu(plugin_id id, void *data)
{
    (void)id, (void)data;
    end_count();
    FILE *out = out_file ? fopen(out_file, "w") : stderr;
    if (!out) {
        fprintf(stderr, "paths: can't write the counts to out=%s: ", out_file);
        perror(NULL);
        return;
    }
    fprintf(out, "{\"paths\":[");
    for (int i = 0; i < n_paths; i++) {
        fprintf(out, "%s\n", i ? "," : "");
        write_path(out, &paths[i]);
    }
    fprintf(out, "\n],\"instructions\":%" PRIu64 "}\n", total);
    if (fflush(out) || ferror(out)) fprintf(stderr, "paths: the counts in out=%s are incomplete\n", out_file);
}

PLUGIN_EXPORT int qemu_plugin_install(plugin_id id, const struct qemu_info *info, int argc, char **argv)
{
    if (!info->system_emulation || info->system.max_vcpus > MAX_HARTS) {
        fprintf(stderr, "paths: refused: needs system emulation with at most %d harts\n", MAX_HARTS);
        return -1;
    }
    single_hart = info->system.max_vcpus == 1;
    if (!single_hart && !qemu_get_cpu) {
        fprintf(stderr, "paths: refused: this QEMU doesn't export qemu_get_cpu, so harts can't be told apart; use one "
                        "hart, or QEMU 10.0 as Debian builds it\n");
        return -1;
    }
    if (end_missing_symbol()) {
        fprintf(stderr, "paths: refused: this QEMU doesn't export %s, so it can't be told where a run ends; use QEMU "
                        "10.0 as Debian builds it\n", end_missing_symbol());
        return -1;
    }
    for (int i = 0; i < argc; i++)
        if (!read_path_option(argv[i])) return -1;
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
    qemu_plugin_register_atexit_cb(id, on_exit_of_qemu, NULL);
    return 0;
}
