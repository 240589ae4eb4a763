/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * windows.so: instructions by privilege mode, and traps by cause, between two places that a guest's program marks itself.
 * README.md tells how to use it.
 *
 * Each instruction has a callback of its own, as in paths.so: it counts when it begins. One host thread executes all harts (thread=single, which
 * lockstep.so wants, and icount), so one count is enough for them all. What has to be known of one hart goes by this_hart().
 */
#include "windows.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "end.h"
#include "harts.h"
#include "this_hart.h"

PLUGIN_EXPORT int qemu_plugin_version = PLUGIN_API_VERSION;

static struct counts total;
static bool ended;

static struct {
    bool below, trapped, in_firmware; /* the last block was below S; it came to S from there and hasn't gone back yet; the last one was in M */
    uint64_t pc;
    enum trap trap;
} harts[MAX_HARTS];

/* All counts are 64-bit numbers, side by side. */
_Static_assert(sizeof(struct counts) % sizeof(uint64_t) == 0, "nothing else is in there");
static void add_difference(struct counts *sum, const struct counts *from, const struct counts *to)
{
    uint64_t *s = (uint64_t *)sum;
    const uint64_t *a = (const uint64_t *)from, *b = (const uint64_t *)to;
    for (size_t i = 0; i < sizeof *sum / sizeof *s; i++) s[i] += b[i] - a[i];
}

/* `data` is the count of the instruction's mode. */
static void on_instruction(unsigned vcpu, void *data)
{
    (void)vcpu;
    (*(uint64_t *)data)++;
}

/* `data` is the immediate. */
static void on_mark(unsigned vcpu, void *data)
{
    (void)vcpu;
    int number = (int)(intptr_t)data;
    for (struct window *w = windows; w < windows + n_windows && !ended; w++) {
        if (w->number == number) {
            w->begin = total;
            w->open = true;
        } else if (w->number == -number && w->open) {
            add_difference(&w->sum, &w->begin, &total);
            w->open = false;
            w->completed++;
        }
    }
}

/* Where it is, the hart says: QEMU keeps a block by its physical address, so one that was translated for one process runs for another that has the page elsewhere. */
static void on_block_below(unsigned vcpu, void *data)
{
    (void)vcpu, (void)data;
    unsigned hart = this_hart();
    if (harts[hart].trapped && harts[hart].pc == traps_pc()) total.again[harts[hart].trap]++;
    harts[hart].trapped = harts[hart].in_firmware = false;
    harts[hart].below = true;
}

static void on_block_of_s(unsigned vcpu, void *data)
{
    (void)vcpu, (void)data;
    unsigned hart = this_hart();
    harts[hart].in_firmware = false;
    if (!harts[hart].below) return;
    harts[hart].below = false;
    harts[hart].trapped = true;
    total.traps[harts[hart].trap = trap_now(&harts[hart].pc)]++;
}

static void on_block_of_m(unsigned vcpu, void *data)
{
    (void)vcpu, (void)data;
    unsigned hart = this_hart();
    if (!harts[hart].in_firmware) total.firmware++;
    harts[hart].in_firmware = true;
}

static void end_count(void) { ended = true; }

/* Several threads would count over each other. What executes the harts is known when the first of them does. */
static bool has_one_thread(void)
{
    if (single_hart || cpus_get_accel()->create_thread == (void *)rr_start_vcpu_thread) return true;
    fprintf(stderr, "windows: refused: needs one host thread for all harts: -accel tcg,thread=single\n");
    return false;
}

static void on_translate(plugin_id id, struct qemu_plugin_tb *tb)
{
    static bool found;
    (void)id;
    if (!found && (!traps_find_registers() || !has_one_thread())) exit(EXIT_FAILURE);
    found = true;
    enum mode mode = mode_now(traps_privilege(), traps_have_virtual()); /* a block is for one mode */
    bool user = mode == MODE_U || mode == MODE_VU;
    for (size_t i = 0, n = qemu_plugin_tb_n_insns(tb); i < n; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        uint32_t bytes = 0;
        qemu_plugin_insn_data(insn, &bytes, sizeof bytes);
        if (user && (bytes & MARK_MASK) == MARK)
            qemu_plugin_register_vcpu_insn_exec_cb(insn, on_mark, QEMU_PLUGIN_CB_NO_REGS, (void *)(intptr_t)((int32_t)bytes >> 20));
        qemu_plugin_register_vcpu_insn_exec_cb(insn, on_instruction, QEMU_PLUGIN_CB_NO_REGS, &total.instructions[mode]);
    }
    if (mode == MODE_S) qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block_of_s, QEMU_PLUGIN_CB_READS_REGS, NULL);
    else if (mode == MODE_M) qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block_of_m, QEMU_PLUGIN_CB_NO_REGS, NULL);
    else qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block_below, QEMU_PLUGIN_CB_READS_REGS, NULL);
    end_watch(tb, end_count);
}

static void write_traps(FILE *out, const char *what, const uint64_t *traps)
{
    uint64_t sum = 0;
    fprintf(out, ",\"%s\":{", what);
    for (unsigned i = 0; i < TRAPS; i++) {
        sum += traps[i];
        const char *name = trap_name(i);
        if (!traps[i]) continue;
        if (name) fprintf(out, "\"%s\":%" PRIu64 ",", name, traps[i]);
        else fprintf(out, "\"%s-%u\":%" PRIu64 ",", i < INTERRUPTS ? "exception" : "interrupt", i % INTERRUPTS, traps[i]);
    }
    fprintf(out, "\"all\":%" PRIu64 "}", sum);
}

static void write_window(FILE *out, const struct window *w)
{
    static const char *const modes[MODES] = {"M", "S", "U", "VS", "VU"};
    uint64_t sum = 0;
    fprintf(out, "{\"name\":\"%s\",\"completed\":%" PRIu64 ",\"modes\":{", w->name, w->completed);
    for (int mode = 0; mode < MODES; mode++) {
        sum += w->sum.instructions[mode];
        fprintf(out, "%s\"%s\":%" PRIu64, mode ? "," : "", modes[mode], w->sum.instructions[mode]);
    }
    fprintf(out, "},\"instructions\":%" PRIu64 ",\"firmware\":%" PRIu64, sum, w->sum.firmware);
    write_traps(out, "traps", w->sum.traps);
    write_traps(out, "again", w->sum.again);
    fprintf(out, "}");
}

static void on_exit_of_qemu(plugin_id id, void *data)
{
    (void)id, (void)data;
    FILE *out = out_file ? fopen(out_file, "w") : stderr;
    if (!out) {
        fprintf(stderr, "windows: can't write the counts to out=%s: ", out_file);
        perror(NULL);
        return;
    }
    fprintf(out, "{\"windows\":[");
    for (unsigned i = 0; i < n_windows; i++) {
        fprintf(out, "%s\n", i ? "," : "");
        write_window(out, &windows[i]);
    }
    fprintf(out, "\n]}\n");
    if (fflush(out) || ferror(out)) fprintf(stderr, "windows: the counts in out=%s are incomplete\n", out_file);
}

PLUGIN_EXPORT int qemu_plugin_install(plugin_id id, const struct qemu_info *info, int argc, char **argv)
{
    const char *missing = end_missing_symbol();
    if (!missing && !qemu_get_cpu) missing = "qemu_get_cpu";
    if (!missing && !cpu_dump_state) missing = "cpu_dump_state";
    if (!missing && !cpus_get_accel) missing = "cpus_get_accel";
    if (!missing && !rr_start_vcpu_thread) missing = "rr_start_vcpu_thread";
    if (!info->system_emulation || strcmp(info->target_name, "riscv64") != 0 || info->system.max_vcpus > MAX_HARTS) {
        fprintf(stderr, "windows: refused: needs qemu-system-riscv64 with at most %d harts\n", MAX_HARTS);
        return -1;
    }
    if (missing) {
        fprintf(stderr, "windows: refused: this QEMU doesn't export %s; use QEMU 10.0 as Debian builds it\n", missing);
        return -1;
    }
    for (int i = 0; i < argc; i++)
        if (!read_window_option(argv[i])) return -1;
    if (!n_windows) {
        fprintf(stderr, "windows: refused: no window is given\n");
        return -1;
    }
    single_hart = info->system.max_vcpus == 1;
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
    qemu_plugin_register_atexit_cb(id, on_exit_of_qemu, NULL);
    return 0;
}
