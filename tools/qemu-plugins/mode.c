/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include "mode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qemu_internals.h"
#include "qemu_plugin_api.h"

uint64_t read_register(void *handle)
{
    static __thread struct g_byte_array *bytes;
    uint64_t value = 0;
    if (!handle) return 0;
    if (!bytes) bytes = g_byte_array_new();
    g_byte_array_set_size(bytes, 0);
    int length = qemu_plugin_read_register(handle, bytes);
    if (length > 0) memcpy(&value, bytes->data, length < 8 ? (size_t)length : 8);
    return value;
}

/* V, from the first line of QEMU's dump: no register tells it. */
static bool is_virtual(void)
{
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    if (!memory) {
        perror("plugin: no memory");
        exit(EXIT_FAILURE);
    }
    cpu_dump_state(current_cpu, memory, 0);
    fclose(memory);
    int v = -1;
    if (sscanf(text, " V = %d", &v) != 1) {
        fprintf(stderr, "plugin: refused: this QEMU doesn't tell V where QEMU 10.0 does\n");
        exit(EXIT_FAILURE);
    }
    free(text);
    return v;
}

enum mode mode_of(unsigned privilege, bool virtual)
{
    if (privilege == 3) return MODE_M;
    if (virtual) return privilege ? MODE_VS : MODE_VU;
    return privilege ? MODE_S : MODE_U;
}

enum mode mode_now(void *priv, bool has_virtual)
{
    unsigned privilege = (unsigned)read_register(priv) & 3;
    return mode_of(privilege, privilege != 3 && has_virtual && is_virtual());
}
