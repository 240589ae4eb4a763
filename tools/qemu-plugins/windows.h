/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the parts of windows.so share. README.md tells what is counted. */
#ifndef WINDOWS_H
#define WINDOWS_H

#include "mark.h"
#include "mode.h"
#include "qemu_plugin_api.h"

/* Why a hart came to S-mode from below it. */
enum trap {
    EXCEPTIONS = 0, /* by their cause, but for the following */
    INTERRUPTS = 32,
    INSTRUCTION_SATP = 48, /* instructions that may not be executed there, by what they are */
    INSTRUCTION_SFENCE,
    INSTRUCTION_SRET,
    INSTRUCTION_WFI,
    INSTRUCTION_CSR,
    INSTRUCTION_OTHER,
    TRAPS
};

struct counts {
    uint64_t instructions[MODES];
    uint64_t traps[TRAPS];  /* from U, VS or VU to S */
    uint64_t again[TRAPS];  /* those of them after which the same instruction was executed next below S */
    uint64_t firmware;      /* times that a hart came to M-mode */
};

struct window {
    const char *name;
    int number;
    bool open;
    uint64_t completed;
    struct counts begin, sum;
};

/* windows_options.c */
extern struct window windows[MAX_WINDOWS];
extern unsigned n_windows;
extern const char *out_file; /* NULL: standard error */
/* Reads one option; prints what is wrong and returns false if it can't. */
bool read_window_option(const char *option);

/* windows_traps.c */
bool traps_find_registers(void); /* once, in a hart's thread; prints what is missing */
void *traps_privilege(void);     /* the register `priv` */
uint64_t traps_pc(void);         /* where the hart is, at the begin of a block */
bool traps_have_virtual(void);   /* the harts have the H extension */
/* Reads why the hart that executes has just come to S-mode, and where from. */
enum trap trap_now(uint64_t *pc);
/* Its name, for JSON; NULL of a cause that is reserved. */
const char *trap_name(unsigned trap);

#endif
