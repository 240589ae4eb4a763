/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The options of paths.so: KIND=NAME:FROM:TO[:VIA] and out=FILE. */
#define _POSIX_C_SOURCE 200809L
#include "paths.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct place places[MAX_PLACES];
struct path paths[MAX_PATHS];
int n_places, n_paths;
const char *out_file;

static bool bad(const char *option, const char *why)
{
    fprintf(stderr,
            "paths: bad option '%s': %s; known: path=NAME:FROM:TO[:VIA], outer=NAME:FROM:TO[:VIA], "
            "mark=NAME:FROM:TO[:VIA] (addresses in hex, with p in front if physical), out=FILE\n",
            option, why);
    return false;
}

/* The place of that name, the same for each use; NULL if the text isn't an address. */
static const struct place *read_place(const char *text)
{
    bool physical = *text == 'p';
    if (physical) text++;
    char *end;
    errno = 0;
    uint64_t address = strtoull(text, &end, 16);
    if (errno || !isxdigit((unsigned char)*text) || *end) return NULL;
    for (int i = 0; i < n_places; i++)
        if (places[i].address == address && places[i].physical == physical) return &places[i];
    places[n_places] = (struct place){.address = address, .physical = physical};
    return &places[n_places++];
}

/* Names go into JSON as they are, so they hold nothing that must be escaped. */
static bool is_name(const char *text)
{
    if (!*text) return false;
    for (; *text; text++)
        if (!isalnum((unsigned char)*text) && !strchr("_-.+", *text)) return false;
    return true;
}

static bool read_path(const char *option, enum path_kind kind, const char *value)
{
    if (n_paths == MAX_PATHS) return bad(option, "too many paths (at most 128)");
    char *fields = strdup(value), *rest, *name, *from, *to, *via;
    if (!fields) return bad(option, "no memory");
    name = strtok_r(fields, ":", &rest);
    from = strtok_r(NULL, ":", &rest);
    to = strtok_r(NULL, ":", &rest);
    via = strtok_r(NULL, ":", &rest);
    if (!name || !is_name(name)) return bad(option, "NAME must be of letters, digits and _-.+");
    if (!from || !to || strtok_r(NULL, ":", &rest)) return bad(option, "FROM and TO, and at most VIA, are needed");
    struct path *path = &paths[n_paths++];
    path->name = name; /* lives as long as QEMU */
    path->kind = kind;
    path->from = read_place(from);
    path->to = read_place(to);
    path->via = via ? read_place(via) : NULL;
    if (!path->from || !path->to || (via && !path->via)) return bad(option, "an address isn't a hex number");
    return true;
}

bool read_path_option(const char *option)
{
    const char *value = strchr(option, '=');
    if (!value) return bad(option, "it has no value");
    size_t length = (size_t)(value++ - option);
#define IS(key) (length == strlen(key) && !strncmp(option, key, length))
    if (IS("path")) return read_path(option, PATH, value);
    if (IS("outer")) return read_path(option, OUTER, value);
    if (IS("mark")) return read_path(option, MARK, value);
    if (IS("out")) {
        out_file = strdup(value);
        return out_file || bad(option, "no memory");
    }
#undef IS
    return bad(option, "there is no such option");
}
