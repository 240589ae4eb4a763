/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The options of windows.so: window=NAME:NUMBER and out=FILE. */
#define _POSIX_C_SOURCE 200809L
#include "windows.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct window windows[MAX_WINDOWS];
unsigned n_windows;
const char *out_file;

static bool bad(const char *option, const char *why)
{
    fprintf(stderr, "windows: bad option '%s': %s; known: window=NAME:NUMBER (1 to %d), out=FILE\n", option, why, MAX_NUMBER);
    return false;
}

/* Names go into JSON as they are, so they hold nothing that must be escaped. */
static bool is_name(const char *text)
{
    if (!*text) return false;
    for (; *text; text++)
        if (!isalnum((unsigned char)*text) && !strchr("_-.+", *text)) return false;
    return true;
}

static bool read_window(const char *option, const char *value)
{
    char *name = strdup(value), *number = name ? strchr(name, ':') : NULL, *end;
    if (!name) return bad(option, "no memory");
    if (!number) return bad(option, "it has no NUMBER");
    *number++ = 0;
    if (!is_name(name)) return bad(option, "NAME must be of letters, digits and _-.+");
    long k = strtol(number, &end, 10);
    if (!isdigit((unsigned char)*number) || *end || k < 1 || k > MAX_NUMBER) return bad(option, "NUMBER is out of range");
    if (n_windows == MAX_WINDOWS) return bad(option, "there are too many");
    for (unsigned i = 0; i < n_windows; i++)
        if (windows[i].number == k || !strcmp(windows[i].name, name)) return bad(option, "there is such a one already");
    windows[n_windows++] = (struct window){.name = name, .number = (int)k}; /* the name lives as long as QEMU */
    return true;
}

bool read_window_option(const char *option)
{
    if (!strncmp(option, "window=", 7)) return read_window(option, option + 7);
    if (strncmp(option, "out=", 4) != 0) return bad(option, "there is no such option");
    out_file = strdup(option + 4);
    return out_file || bad(option, "no memory");
}
