/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stands for a QEMU that lockstep.so doesn't know: loads it as QEMU would, and has another version or, built with
   -DNAMELESS, none. Exits with status 1 if the plugin refuses. */
#include <dlfcn.h>
#include <stdio.h>

#include "../qemu_plugin_api.h"

#ifndef NAMELESS
struct version {
    struct {
        int64_t major, minor, micro;
    } *triple;
    const char *package;
};

const struct version *qmp_query_version(void *error);

const struct version *qmp_query_version(void *error)
{
    static struct version version = {.package = "made up"};
    static typeof(*version.triple) triple = {99, 1, 2};
    (void)error;
    version.triple = &triple;
    return &version;
}
#endif

int main(int argc, char **argv)
{
    void *plugin = argc == 2 ? dlopen(argv[1], RTLD_LAZY) : NULL;
    if (!plugin) {
        fprintf(stderr, "other_qemu: %s\n", argc == 2 ? dlerror() : "usage: other_qemu PLUGIN");
        return 2;
    }
    union { /* ISO C has no cast from an object's pointer to a function's */
        void *object;
        typeof(qemu_plugin_install) *function;
    } install = {.object = dlsym(plugin, "qemu_plugin_install")};
    const struct qemu_info info = {.target_name = "riscv64", .system_emulation = true, .system = {1, 1}};
    return install.function(1, &info, 0, NULL) ? 1 : 0;
}
