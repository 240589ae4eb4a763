/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Refuses every QEMU, and every way to start it, that lockstep time wasn't checked with: a wrong figure is worse than
   none. */
#include "end.h"
#include "lockstep.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KNOWN_MAJOR = 10, KNOWN_MINOR = 0 };

static void refuse(const char *found)
{
    fprintf(stderr,
            "lockstep: refused: found %s; needed: QEMU 10.0 as Debian builds it (checked with 10.0.2), "
            "qemu-system-riscv64 -accel tcg,thread=single, no -icount, at most %d harts\n",
            found, MAX_HARTS);
}

static const char *missing_symbol(void)
{
    /* current_cpu is missing here, because a thread-local's address doesn't tell whether it is defined; it is exported
       together with the others. */
    const struct {
        const char *name;
        const void *address;
    } used[] = {
#define SYMBOL(name) {#name, (const void *)&name}
        SYMBOL(qemu_get_cpu), SYMBOL(cpu_thread_is_idle), SYMBOL(cpu_exit), SYMBOL(cpu_stop_current),
        SYMBOL(cpu_loop_exit_noexc), SYMBOL(cpu_loop_exit_restore), SYMBOL(async_run_on_cpu), SYMBOL(qemu_clock_get_ns),
        SYMBOL(qemu_clock_deadline_ns_all), SYMBOL(qemu_clock_run_timers), SYMBOL(timer_init_full), SYMBOL(timer_mod),
        SYMBOL(bql_lock_impl), SYMBOL(bql_unlock), SYMBOL(bql_locked), SYMBOL(qemu_system_shutdown_request),
        SYMBOL(runstate_is_running), SYMBOL(cpus_get_accel), SYMBOL(use_icount),
        SYMBOL(rr_kick_vcpu_thread), SYMBOL(rr_start_vcpu_thread), SYMBOL(tcg_handle_interrupt),
#undef SYMBOL
    };
    for (size_t i = 0; i < sizeof used / sizeof *used; i++)
        if (!used[i].address) return used[i].name;
    return end_missing_symbol();
}

static bool version_is_known(void)
{
    if (!qmp_query_version) {
        refuse("a QEMU that doesn't export qmp_query_version, so its version is unknown");
        return false;
    }
    const struct qemu_version *version = qmp_query_version(NULL); /* kept: it is asked once per process */
    if (version->triple->major == KNOWN_MAJOR && version->triple->minor == KNOWN_MINOR) return true;
    char found[256];
    snprintf(found, sizeof found, "QEMU %" PRId64 ".%" PRId64 ".%" PRId64 " (%s)", version->triple->major,
             version->triple->minor, version->triple->micro, version->package);
    refuse(found);
    return false;
}

bool qemu_is_known(const struct qemu_info *info)
{
    char found[256];
    if (!version_is_known()) return false;
    const char *missing = missing_symbol();
    if (missing) {
        snprintf(found, sizeof found, "a QEMU that doesn't export %s", missing);
        refuse(found);
        return false;
    }
    if (!info->system_emulation || strcmp(info->target_name, "riscv64") != 0) {
        snprintf(found, sizeof found, "%s emulation of %s", info->system_emulation ? "system" : "user",
                 info->target_name);
        refuse(found);
        return false;
    }
    if (info->system.max_vcpus > MAX_HARTS) {
        snprintf(found, sizeof found, "%d harts", info->system.max_vcpus);
        refuse(found);
        return false;
    }
    return true;
}

void require_single_threaded_tcg(void)
{
    const struct accel_ops *ops = cpus_get_accel();
    const char *found = NULL;
    if (use_icount) found = "-icount, which drives the virtual clock itself";
    else if (ops->create_thread != (void *)rr_start_vcpu_thread || ops->kick_thread != (void *)rr_kick_vcpu_thread)
        found = "an accelerator other than tcg, or a host thread per hart (thread=multi)";
    else if (ops->handle_interrupt != (void *)tcg_handle_interrupt || ops->thread_is_idle || ops->get_virtual_clock ||
             ops->set_virtual_clock || ops->get_elapsed_ticks)
        found = "struct AccelOpsClass with another layout, or another plugin that drives the clock";
    if (!found) return;
    refuse(found);
    exit(EXIT_FAILURE);
}
