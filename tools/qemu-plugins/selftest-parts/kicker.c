/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A plugin that kicks harts out of QEMU's loop at random host times, as QEMU's RCU thread does now and then: lockstep
   time must not notice. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../qemu_internals.h"
#include "../qemu_plugin_api.h"

PLUGIN_EXPORT int qemu_plugin_version = PLUGIN_API_VERSION;

static int harts;
static unsigned long kicks;

static void *kick(void *data)
{
    for (unsigned seed = 1;; kicks++) {
        usleep(20 + (unsigned)rand_r(&seed) % 100);
        cpu_exit(qemu_get_cpu(rand_r(&seed) % harts));
    }
    return data;
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
    fprintf(stderr, "kicker: kicks=%lu\n", kicks);
}

PLUGIN_EXPORT int qemu_plugin_install(plugin_id id, const struct qemu_info *info, int argc, char **argv)
{
    (void)argc, (void)argv;
    harts = info->system.smp_vcpus;
    qemu_plugin_register_vcpu_init_cb(id, on_hart);
    qemu_plugin_register_atexit_cb(id, on_exit_of_qemu, NULL);
    return 0;
}
