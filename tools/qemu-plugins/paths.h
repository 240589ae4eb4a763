/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the parts of paths.so share. README.md tells what is counted. */
#ifndef PATHS_H
#define PATHS_H

#include <stdbool.h>
#include <stdint.h>

#include "harts.h"
#include "histogram.h"

enum { MAX_PATHS = 128, MAX_PLACES = 3 * MAX_PATHS };

/* An instruction at which something begins or ends. */
struct place {
    uint64_t address;
    bool physical; /* a physical address in RAM, not a virtual one */
};

enum path_kind {
    PATH,  /* from the last FROM before TO */
    OUTER, /* from the first FROM, however often it occurs again */
    MARK,  /* from the first FROM to the first TO after it, once in a run */
};

struct path {
    char *name;
    enum path_kind kind;
    const struct place *from, *to;
    const struct place *via; /* NULL: any way counts */
    struct {
        bool open;          /* FROM was executed, TO not yet */
        bool passed_via;    /* since FROM */
        uint64_t opened_at; /* this hart's instructions at FROM */
    } on[MAX_HARTS];
    uint64_t begun; /* times that FROM was executed, on any hart */
    uint64_t sum;   /* of the lengths */
    struct histogram lengths;
};

/* path_options.c */
extern struct place places[MAX_PLACES];
extern struct path paths[MAX_PATHS];
extern int n_places, n_paths;
extern const char *out_file; /* NULL: standard error */
/* Reads one option; prints what is wrong and returns false if it can't. */
bool read_path_option(const char *option);

#endif
