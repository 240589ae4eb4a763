/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the parts of tlb.so share. README.md tells what is counted. */
#ifndef TLB_H
#define TLB_H

#include "harts.h"
#include "mark.h"
#include "qemu_plugin_api.h"
#include "tlb_model.h"

enum { MAX_SETS = 16, MAX_KINDS = 8, MAX_NAME = 32 };

/* tlb_options.c: what is to be modelled; each set of sizes with each kind. */
struct options {
    struct {
        char name[MAX_NAME];
        struct sizes sizes;
    } sets[MAX_SETS];
    unsigned n_sets;
    const struct kind *kinds[MAX_KINDS];
    unsigned n_kinds;
    bool supervisor_is_guest; /* of a run without a hypervisor: what its S- and U-mode would be as a guest */
    unsigned assumed_levels;  /* of a second stage where the machine has none */
    int since;                /* nothing is modelled before this window begins for the first time; 0: from the start */
    const char *out_file;     /* NULL: standard error */
};
extern struct options options;
/* Reads one option; prints what is wrong and returns false if it can't. */
bool read_tlb_option(const char *option);
/* Whether the options together make sense; fills in the defaults. */
bool finish_tlb_options(void);

/* What a fence is for: bit 0: one address, bit 1: one ASID or VMID. */
enum { FENCE_SCOPES = 4 };

struct hart {
    bool registers_stale; /* one of the following may have been written */
    uint64_t satp, vsatp, hgatp;
    uint64_t moved;       /* by how much the block is executed above where it was translated */
    uint64_t last[2];     /* page that the ITLB and the DTLB were asked for last; it is the last that leaves them */
    struct model *models; /* kind by kind for the first set, then for the next */
    uint64_t instructions[MODES], accesses[MODES], fences[MODES][FENCE_KINDS][FENCE_SCOPES];
    uint64_t switches;    /* times that satp, vsatp or hgatp had changed */
    uint64_t unresolved;  /* accesses to pages that the tables didn't have any more */
    uint64_t checked, wrong; /* walks compared with where QEMU's access went, and those that went elsewhere */
};
extern struct hart harts[MAX_HARTS];
extern unsigned n_harts;

/* tlb_machine.c: the hart that executes, as it is now. Only in its thread. */
const char *machine_missing_symbol(void);
bool machine_find_registers(void); /* once; prints what is missing */
enum mode machine_mode(void);      /* in a callback for a block that is being translated: that of the block */
void machine_read_translation(struct hart *, bool virtual);
bool machine_fence_traps(enum fence_kind, enum mode);
uint64_t machine_pc(void); /* at a block's begin */
uint64_t machine_general_register(unsigned number);
bool machine_read_memory(uint64_t physical, uint64_t *value);
/* The privilege and V that an access was made with, by a plain load or store or by another. */
enum mode machine_access_mode(qemu_plugin_access);

/* tlb_decode.c */
bool is_fence(uint32_t insn, enum fence_kind *);
bool writes_translation(uint32_t insn); /* may write satp, vsatp or hgatp */

/* What all harts have come to: instructions by mode, and the counts of each model, all modes together. */
struct sums {
    uint64_t instructions[MODES];
    struct counts models[MAX_SETS * MAX_KINDS];
};
void sum_up(struct sums *);
extern struct sums before; /* the same when models began to be asked, which is at the start if options.since is 0 */

struct window {
    const char *name;
    int number;
    bool open;
    bool early; /* it was begun before models were asked: only its instructions are known */
    uint64_t completed;
    struct sums begin, sum;
};

/* tlb_windows.c: what is counted between two places that a program marks, beside the counts of the whole run. */
extern struct window *windows;
extern unsigned n_windows;
/* Reads NAME:NUMBER; returns what is wrong with it, or NULL. */
const char *read_window(const char *text);
/* `number` is a mark's immediate: a window's begin, or its end if it is negative. `waiting`: models aren't asked yet. */
void windows_mark(int number, bool waiting);

/* tlb_report.c */
void report(void);

#endif
