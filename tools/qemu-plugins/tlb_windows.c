/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Windows that a program marks, as those of windows.so. What the TLBs hold is not touched by their begin: they are as warm as what was before left them. */
#define _POSIX_C_SOURCE 200809L
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "tlb.h"

struct window *windows;
unsigned n_windows;

/* Names go into JSON as they are, so they hold nothing that must be escaped. */
static bool is_name(const char *text)
{
    if (!*text) return false;
    for (; *text; text++)
        if (!isalnum((unsigned char)*text) && !strchr("_-.+", *text)) return false;
    return true;
}

const char *read_window(const char *text)
{
    char *name = strdup(text), *number = name ? strchr(name, ':') : NULL, *end;
    if (!windows) windows = calloc(MAX_WINDOWS, sizeof *windows);
    if (!name || !windows) return "no memory";
    if (!number) return "it has no NUMBER";
    *number++ = 0;
    if (!is_name(name)) return "NAME must be of letters, digits and _-.+";
    long k = strtol(number, &end, 10);
    if (!isdigit((unsigned char)*number) || *end || k < 1 || k > MAX_NUMBER) return "NUMBER is out of range";
    if (n_windows == MAX_WINDOWS) return "there are too many";
    for (unsigned i = 0; i < n_windows; i++)
        if (windows[i].number == k || !strcmp(windows[i].name, name)) return "there is such a one already";
    windows[n_windows].name = name; /* it lives as long as QEMU */
    windows[n_windows++].number = (int)k;
    return NULL;
}

/* All counts are 64-bit numbers, side by side. */
_Static_assert(sizeof(struct sums) % sizeof(uint64_t) == 0, "nothing else is in there");
static void add_difference(struct sums *sum, const struct sums *from, const struct sums *to)
{
    uint64_t *s = (uint64_t *)sum;
    const uint64_t *a = (const uint64_t *)from, *b = (const uint64_t *)to;
    for (size_t i = 0; i < sizeof *sum / sizeof *s; i++) s[i] += b[i] - a[i];
}

void windows_mark(int number, bool waiting)
{
    static struct sums now;
    for (struct window *w = windows; w < windows + n_windows; w++) {
        if (w->number == number) {
            sum_up(&w->begin);
            w->open = true;
            w->early |= waiting;
        } else if (w->number == -number && w->open) {
            sum_up(&now);
            add_difference(&w->sum, &w->begin, &now);
            w->open = false;
            w->completed++;
        }
    }
}
