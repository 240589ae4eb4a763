/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The options of tlb.so, and the sets of sizes that are published. */
#define _POSIX_C_SOURCE 200809L
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tlb.h"

enum { MAX_ENTRIES = 1 << 16, SV39_LEVELS = 3 };

struct options options;

static const struct kind kinds[] = {
    {"as-is", AS_IS, 0},
    {"one-stage", ONE_STAGE, 0},
    {"two-stage-4k", TWO_STAGE, 12},
    {"two-stage-2m", TWO_STAGE, 21},
    {"shadow", SHADOW, 0},
    {"shadow-4k", SHADOW, 12},
    {"shadow-2m", SHADOW, 21},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* What isn't published of a core isn't there: add it with keys. README.md has the sources. */
static const struct {
    const char *name;
    struct sizes sizes;
} published[] = {
    {"p550", {.itlb = {32, 32}, .dtlb = {32, 32}}},
    {"c910", {.itlb = {32, 32}, .dtlb = {17, 17}, .l2 = {1024, 4}}},
    {"cva6", {.itlb = {16, 16}, .dtlb = {16, 16}}},
};
enum { PUBLISHED = sizeof published / sizeof *published };

static bool bad(const char *option, const char *why)
{
    fprintf(stderr,
            "tlb: bad option '%s': %s; known: tlb=NAME[:KEY=ENTRIES[/WAYS]]... (NAME p550, c910, cva6 or another; KEY itlb, "
            "dtlb, l2, walk, walk1 to walk4, second-tlb, second-walk, second-walk1 to second-walk4), model=",
            option, why);
    for (int i = 0; i < KINDS; i++) fprintf(stderr, "%s%s", i ? "|" : "", kinds[i].name);
    fprintf(stderr, ", guest=virtual|supervisor, second=sv39x4|sv48x4|sv57x4, window=NAME:NUMBER, since=NUMBER (1 to 1023), out=FILE\n");
    return false;
}

/* ENTRIES, all in one set, or ENTRIES/WAYS. */
static bool read_size(const char *text, struct size *size)
{
    char *end;
    if (!isdigit((unsigned char)*text)) return false;
    unsigned long entries = strtoul(text, &end, 10), ways = entries;
    if (*end == '/') {
        text = end + 1;
        if (!isdigit((unsigned char)*text)) return false;
        ways = strtoul(text, &end, 10);
    }
    if (*end || entries > MAX_ENTRIES || ways > entries || (entries && (!ways || entries % ways))) return false;
    *size = (struct size){(unsigned)entries, (unsigned)ways};
    return true;
}

/* Page-walk caches and the second stage's TLB have one set. */
static unsigned *find_small(struct sizes *sizes, const char *key)
{
    if (!strcmp(key, "second-tlb")) return &sizes->second_tlb;
    bool second = !strncmp(key, "second-", strlen("second-"));
    if (second) key += strlen("second-");
    if (strncmp(key, "walk", strlen("walk"))) return NULL;
    key += strlen("walk");
    if (!*key) return second ? &sizes->second_walk : &sizes->walk;
    if (*key < '1' || *key >= '0' + MAX_LEVELS || key[1]) return NULL;
    return &(second ? sizes->second_walk_of : sizes->walk_of)[*key - '0'];
}

static bool read_field(struct sizes *sizes, const char *key, const char *value)
{
    struct size size;
    if (!read_size(value, &size)) return false;
    if (!strcmp(key, "itlb")) sizes->itlb = size;
    else if (!strcmp(key, "dtlb")) sizes->dtlb = size;
    else if (!strcmp(key, "l2")) sizes->l2 = size;
    else {
        unsigned *small = find_small(sizes, key);
        if (!small || size.ways != size.entries) return false;
        *small = size.entries;
    }
    return true;
}

static bool both_shared_and_not(unsigned shared, const unsigned *of_level)
{
    for (int level = 1; level < MAX_LEVELS; level++)
        if (shared && of_level[level]) return true;
    return false;
}

/* Names go into JSON as they are, so they hold nothing that must be escaped. */
static bool is_name(const char *text)
{
    if (!*text || strlen(text) >= MAX_NAME) return false;
    for (; *text; text++)
        if (!isalnum((unsigned char)*text) && !strchr("_-.+", *text)) return false;
    return true;
}

static bool read_set(const char *option, const char *value)
{
    if (options.n_sets == MAX_SETS) return bad(option, "too many sets of sizes (at most 16)");
    char text[256], *rest, *name = text;
    if (strlen(value) >= sizeof text) return bad(option, "it is too long");
    strcpy(text, value);
    name = strtok_r(text, ":", &rest);
    if (!name || !is_name(name)) return bad(option, "NAME must be of at most 31 letters, digits and _-.+");
    struct sizes *sizes = &options.sets[options.n_sets].sizes;
    strcpy(options.sets[options.n_sets++].name, name);
    for (int i = 0; i < PUBLISHED; i++)
        if (!strcmp(name, published[i].name)) *sizes = published[i].sizes;
    for (char *field; (field = strtok_r(NULL, ":", &rest));) {
        char *number = strchr(field, '=');
        if (!number) return bad(option, "a KEY has no value");
        *number++ = 0;
        if (!read_field(sizes, field, number))
            return bad(option, "there is no such KEY, or ENTRIES aren't at most 65536 in whole sets of WAYS (only itlb, "
                               "dtlb and l2 have sets)");
    }
    if (!sizes->itlb.entries || !sizes->dtlb.entries)
        return bad(option, "no set of that name is known, so itlb and dtlb are needed");
    if (both_shared_and_not(sizes->walk, sizes->walk_of) ||
        both_shared_and_not(sizes->second_walk, sizes->second_walk_of))
        return bad(option, "a cache is either for all levels (walk) or for one each (walk1 ...)");
    return true;
}

static bool read_kind(const char *option, const char *value)
{
    if (options.n_kinds == MAX_KINDS) return bad(option, "too many models");
    for (int i = 0; i < KINDS; i++)
        if (!strcmp(value, kinds[i].name)) {
            options.kinds[options.n_kinds++] = &kinds[i];
            return true;
        }
    return bad(option, "there is no such model");
}

static bool read_choice(const char *option, const char *value, const char *const *choices, unsigned *which)
{
    for (*which = 0; choices[*which]; ++*which)
        if (!strcmp(value, choices[*which])) return true;
    return bad(option, "there is no such value");
}

bool read_tlb_option(const char *option)
{
    static const char *const guests[] = {"virtual", "supervisor", NULL};
    static const char *const seconds[] = {"sv39x4", "sv48x4", "sv57x4", NULL};
    unsigned which;
    const char *value = strchr(option, '=');
    if (!value) return bad(option, "it has no value");
    size_t length = (size_t)(value++ - option);
#define IS(key) (length == strlen(key) && !strncmp(option, key, length))
    if (IS("tlb")) return read_set(option, value);
    if (IS("model")) return read_kind(option, value);
    if (IS("guest")) {
        if (!read_choice(option, value, guests, &which)) return false;
        options.supervisor_is_guest = which == 1;
        return true;
    }
    if (IS("second")) {
        if (!read_choice(option, value, seconds, &which)) return false;
        options.assumed_levels = SV39_LEVELS + which;
        return true;
    }
    if (IS("window")) {
        const char *wrong = read_window(value);
        return !wrong || bad(option, wrong);
    }
    if (IS("since")) {
        char *end;
        unsigned long number = strtoul(value, &end, 10);
        if (!isdigit((unsigned char)*value) || *end || !number || number > MAX_NUMBER) return bad(option, "NUMBER is out of range");
        options.since = (int)number;
        return true;
    }
    if (IS("out")) {
        options.out_file = strdup(value);
        return options.out_file || bad(option, "no memory");
    }
#undef IS
    return bad(option, "there is no such option");
}

bool finish_tlb_options(void)
{
    if (!options.n_sets) {
        fprintf(stderr, "tlb: refused: there is no tlb=NAME, and no sizes are right for all\n");
        return false;
    }
    if (!options.n_kinds)
        for (int i = 0; i < KINDS; i++) options.kinds[options.n_kinds++] = &kinds[i];
    if (!options.assumed_levels) options.assumed_levels = SV39_LEVELS;
    return true;
}
