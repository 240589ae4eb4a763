/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lockstep.so: lockstep virtual time for several harts. Options, start and the last line; README.md tells the rest. */
#include "lockstep.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

PLUGIN_EXPORT int qemu_plugin_version = PLUGIN_API_VERSION;

struct options options = {.quantum = 250, .ns_per_insn = 4, .smooth = true};

static bool parse_number(const char *text, int64_t min, int64_t *value)
{
    char *end;
    errno = 0;
    int64_t number = strtoll(text, &end, 10);
    if (errno || end == text || *end || number < min) return false;
    *value = number;
    return true;
}

static bool parse_switch(const char *text, bool *value)
{
    *value = !strcmp(text, "1") || !strcmp(text, "on");
    return *value || !strcmp(text, "0") || !strcmp(text, "off");
}

static bool parse_option(const char *option)
{
    const char *value = strchr(option, '=');
    if (!value) return false;
    size_t length = (size_t)(value++ - option);
#define IS(name) (length == strlen(name) && !strncmp(option, name, length))
    if (IS("q")) return parse_number(value, 1, &options.quantum);
    if (IS("ns")) return parse_number(value, 1, &options.ns_per_insn);
    if (IS("smooth")) return parse_switch(value, &options.smooth);
    if (IS("trace")) return parse_number(value, 0, &options.trace_rounds);
    if (IS("stop_ns")) return parse_number(value, 0, &options.stop_ns);
#undef IS
    return false;
}

static void on_translate(plugin_id id, struct qemu_plugin_tb *tb)
{
    (void)id;
    schedule_translate(tb);
}

static void on_hart(plugin_id id, unsigned index)
{
    static bool installed;
    if (!installed) {
        /* Not earlier: at the plugin's installation QEMU hasn't chosen its accelerator yet. */
        require_single_threaded_tcg();
        cpus_get_accel()->thread_is_idle = schedule_idle_hook;
        clock_install();
        /* Not earlier either: the callbacks of the plugin that registers last come first, and those of others, such as
           paths.so's, must not see an instruction before which lockstep.so then leaves the block. */
        qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
        watchdog_start();
        installed = true;
    }
    schedule_add_hart((int)index);
}

/* QEMU calls it from exit(), so for every ordinary end: the guest's shutdown, stop_ns, SIGTERM, the monitor's quit. */
static void on_exit_of_qemu(plugin_id id, void *data)
{
    (void)id, (void)data;
    if (schedule_harts() == 0) return; /* refused, or another plugin's options were wrong: nothing ran */
    schedule_finish();
    fprintf(stderr,
            "lockstep: T=%" PRId64 " q=%" PRId64 " ns=%" PRId64 " harts=%d slices=%" PRIu64 " rounds=%" PRIu64
            " jumps=%" PRIu64 " timers=%" PRIu64 " stuck=%" PRIu64 " hash=%016" PRIx64 "\n",
            clock_time(), options.quantum, options.ns_per_insn, schedule_harts(), counts.slices, counts.rounds,
            counts.jumps, timers_run, times_stuck, counts.hash);
}

PLUGIN_EXPORT int qemu_plugin_install(plugin_id id, const struct qemu_info *info, int argc, char **argv)
{
    if (!qemu_is_known(info)) return -1;
    for (int i = 0; i < argc; i++) {
        if (parse_option(argv[i])) continue;
        fprintf(stderr,
                "lockstep: bad option '%s'; known: q=N (instructions, from 1), ns=N (from 1), smooth=on|off, "
                "trace=N (rounds, 0 for off), stop_ns=N (0 for off)\n",
                argv[i]);
        return -1;
    }
    qemu_plugin_register_vcpu_init_cb(id, on_hart);
    qemu_plugin_register_atexit_cb(id, on_exit_of_qemu, NULL);
    return 0;
}
