/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What was counted, as JSON. */
#include <inttypes.h>
#include <stdio.h>

#include "tlb.h"

static const char *const modes[MODES] = {"M", "S", "U", "VS", "VU"};
static const char *const fences[FENCE_KINDS] = {"sfence.vma", "hfence.vvma", "hfence.gvma"};
static const char *const scopes[FENCE_SCOPES] = {"all", "address", "space", "address and space"};

static void add(struct counts *sum, const struct counts *c)
{
    sum->misses[UNIT_ITLB] += c->misses[UNIT_ITLB];
    sum->misses[UNIT_DTLB] += c->misses[UNIT_DTLB];
    sum->walks += c->walks;
    for (int level = 0; level < MAX_LEVELS; level++) {
        sum->first[level] += c->first[level];
        sum->second[level] += c->second[level];
    }
}

static uint64_t reads_of(const struct counts *c)
{
    uint64_t reads = 0;
    for (int level = 0; level < MAX_LEVELS; level++) reads += c->first[level] + c->second[level];
    return reads;
}

static void write_levels(FILE *out, const char *stage, const uint64_t *reads)
{
    fprintf(out, ",\"%s\":[", stage);
    for (int level = 0; level < MAX_LEVELS; level++) fprintf(out, "%s%" PRIu64, level ? "," : "", reads[level]);
    fprintf(out, "]");
}

static void write_counts(FILE *out, const struct counts *c, uint64_t instructions)
{
    uint64_t reads = reads_of(c);
    fprintf(out, "\"instructions\":%" PRIu64 ",\"itlb_misses\":%" PRIu64 ",\"dtlb_misses\":%" PRIu64 ",\"walks\":%" PRIu64,
            instructions, c->misses[UNIT_ITLB], c->misses[UNIT_DTLB], c->walks);
    write_levels(out, "first", c->first);
    write_levels(out, "second", c->second);
    fprintf(out, ",\"reads\":%" PRIu64 ",\"reads_per_1000\":", reads);
    if (instructions) fprintf(out, "%.3f", (double)reads * 1000 / (double)instructions);
    else fprintf(out, "null");
}

static void write_size(FILE *out, const char *name, struct size size)
{
    fprintf(out, "%s\"%s\":[%u,%u]", name[0] == 'i' ? "" : ",", name, size.entries, size.ways);
}

static void write_small(FILE *out, const char *name, unsigned shared, const unsigned *of_level)
{
    fprintf(out, ",\"%s\":", name);
    if (shared) fprintf(out, "%u", shared);
    else fprintf(out, "[%u,%u,%u,%u]", of_level[1], of_level[2], of_level[3], of_level[4]);
}

static void write_sets(FILE *out)
{
    fprintf(out, "\"sets\":[");
    for (unsigned i = 0; i < options.n_sets; i++) {
        const struct sizes *s = &options.sets[i].sizes;
        fprintf(out, "%s\n{\"tlb\":\"%s\",", i ? "," : "", options.sets[i].name);
        write_size(out, "itlb", s->itlb);
        write_size(out, "dtlb", s->dtlb);
        write_size(out, "l2", s->l2);
        write_small(out, "walk", s->walk, s->walk_of);
        fprintf(out, ",\"second_tlb\":%u", s->second_tlb);
        write_small(out, "second_walk", s->second_walk, s->second_walk_of);
        fprintf(out, "}");
    }
    fprintf(out, "\n],\n");
}

void sum_up(struct sums *sums)
{
    *sums = (struct sums){0};
    for (int mode = 0; mode < MODES; mode++)
        for (unsigned h = 0; h < n_harts; h++) {
            sums->instructions[mode] += harts[h].instructions[mode];
            for (unsigned i = 0; i < options.n_sets * options.n_kinds; i++)
                add(&sums->models[i], &harts[h].models[i].counts[mode]);
        }
}

static uint64_t instructions_in(enum mode mode)
{
    uint64_t sum = 0;
    for (unsigned h = 0; h < n_harts; h++) sum += harts[h].instructions[mode];
    return sum - before.instructions[mode];
}

/* All, then by the mode that executed, where anything was. */
static void write_model(FILE *out, unsigned set, unsigned kind)
{
    struct counts all = {0}, by_mode[MODES] = {0};
    uint64_t instructions = 0;
    for (int mode = 0; mode < MODES; mode++) {
        for (unsigned h = 0; h < n_harts; h++)
            add(&by_mode[mode], &harts[h].models[set * options.n_kinds + kind].counts[mode]);
        add(&all, &by_mode[mode]);
        instructions += instructions_in(mode);
    }
    fprintf(out, "{\"tlb\":\"%s\",\"model\":\"%s\",", options.sets[set].name, options.kinds[kind]->name);
    write_counts(out, &all, instructions);
    fprintf(out, ",\"modes\":{");
    const char *comma = "";
    for (int mode = 0; mode < MODES; mode++) {
        if (!instructions_in(mode)) continue;
        fprintf(out, "%s\n \"%s\":{", comma, modes[mode]);
        write_counts(out, &by_mode[mode], instructions_in(mode));
        fprintf(out, "}");
        comma = ",";
    }
    fprintf(out, "}}");
}

static void write_fences(FILE *out)
{
    fprintf(out, "\"fences\":[");
    const char *comma = "";
    for (int mode = 0; mode < MODES; mode++)
        for (int kind = 0; kind < FENCE_KINDS; kind++)
            for (int scope = 0; scope < FENCE_SCOPES; scope++) {
                uint64_t count = 0;
                for (unsigned h = 0; h < n_harts; h++) count += harts[h].fences[mode][kind][scope];
                if (!count) continue;
                fprintf(out, "%s\n{\"mode\":\"%s\",\"fence\":\"%s\",\"of\":\"%s\",\"count\":%" PRIu64 "}", comma,
                        modes[mode], fences[kind], scopes[scope], count);
                comma = ",";
            }
    fprintf(out, "\n],\n");
}

static void write_modes(FILE *out)
{
    fprintf(out, "\"modes\":[");
    for (int mode = 0; mode < MODES; mode++) {
        uint64_t accesses = 0;
        for (unsigned h = 0; h < n_harts; h++) accesses += harts[h].accesses[mode];
        fprintf(out, "%s\n{\"mode\":\"%s\",\"instructions\":%" PRIu64 ",\"loads_and_stores\":%" PRIu64 "}", mode ? "," : "",
                modes[mode], instructions_in(mode), accesses);
    }
    fprintf(out, "\n],\n");
}

/* Instructions by mode, then what each model has counted, as in the whole run's `models`; of a window that began before models were asked that isn't known. */
static void write_window(FILE *out, const struct window *w)
{
    uint64_t instructions = 0;
    fprintf(out, "{\"name\":\"%s\",\"completed\":%" PRIu64 ",\"modes\":{", w->name, w->completed);
    for (int mode = 0; mode < MODES; mode++) {
        instructions += w->sum.instructions[mode];
        fprintf(out, "%s\"%s\":%" PRIu64, mode ? "," : "", modes[mode], w->sum.instructions[mode]);
    }
    fprintf(out, "},\"models\":[");
    for (unsigned i = 0; i < options.n_sets * options.n_kinds && !w->early; i++) {
        fprintf(out, "%s\n {\"tlb\":\"%s\",\"model\":\"%s\",", i ? "," : "", options.sets[i / options.n_kinds].name,
                options.kinds[i % options.n_kinds]->name);
        write_counts(out, &w->sum.models[i], instructions);
        fprintf(out, "}");
    }
    fprintf(out, "]}");
}

static void write_windows(FILE *out)
{
    fprintf(out, "\"windows\":[");
    for (unsigned i = 0; i < n_windows; i++) {
        fprintf(out, "%s\n", i ? "," : "");
        write_window(out, &windows[i]);
    }
    fprintf(out, "\n],\n");
}

void report(void)
{
    FILE *out = options.out_file ? fopen(options.out_file, "w") : stderr;
    if (!out) {
        fprintf(stderr, "tlb: can't write the counts to out=%s: ", options.out_file);
        perror(NULL);
        return;
    }
    uint64_t switches = 0, unresolved = 0, checked = 0, wrong = 0;
    for (unsigned h = 0; h < n_harts; h++) {
        switches += harts[h].switches;
        unresolved += harts[h].unresolved;
        checked += harts[h].checked;
        wrong += harts[h].wrong;
    }
    fprintf(out, "{\"guest\":\"%s\",\"switches\":%" PRIu64 ",\"unresolved\":%" PRIu64 ",\"checked\":%" PRIu64
                 ",\"wrong\":%" PRIu64 ",\n",
            options.supervisor_is_guest ? "supervisor" : "virtual", switches, unresolved, checked, wrong);
    write_sets(out);
    write_modes(out);
    write_fences(out);
    write_windows(out);
    fprintf(out, "\"models\":[");
    for (unsigned set = 0; set < options.n_sets; set++)
        for (unsigned kind = 0; kind < options.n_kinds; kind++) {
            fprintf(out, "%s\n", set + kind ? "," : "");
            write_model(out, set, kind);
        }
    fprintf(out, "\n]}\n");
    if (fflush(out) || ferror(out)) fprintf(stderr, "tlb: the counts in out=%s are incomplete\n", options.out_file);
}
