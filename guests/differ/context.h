/* The registers of a program, as it goes on with them and as its trap left them. For C and for gate.S. */
#pragma once

#define CONTEXT_X(n)    ((n) * 8) /* x0's place holds the program counter */
#define CONTEXT_STATUS  (32 * 8)
#define CONTEXT_SATP    (33 * 8)
#define CONTEXT_VECTOR  (34 * 8)
#define CONTEXT_ENTRY   (35 * 8)
#define CONTEXT_HOME    (36 * 8)
#define CONTEXT_FLOAT(n) ((37 + (n)) * 8)

/* Trap tables, of which a program chooses one: each has an entry for each interrupt; exceptions come to the first. */
#define TABLES  2
#define ENTRIES 16

#ifndef __ASSEMBLER__
#include <stddef.h>
#include <stdint.h>

struct context {
    union {
        uint64_t x[32];
        uint64_t pc;
    };
    uint64_t status; /* sstatus to go on with (SIE is 0), and as it was at the trap */
    uint64_t satp;
    uint64_t vector; /* stvec */
    uint64_t entry;  /* where the trap came in: table * ENTRIES + entry */
    uint64_t home;   /* our own stack */
    uint64_t f[32];
};
_Static_assert(offsetof(struct context, f) == CONTEXT_FLOAT(0), "known to the assembler");

/* The program's; tp leads to it while the program runs, which never writes that. */
extern struct context context;

/* The trap tables. */
extern const char gate_tables[TABLES][ENTRIES * 4];

/* Lets the program go on as `context` says, until its next trap. */
void gate_enter(void);

/* The floating-point registers to `context`, and from there. The unit is on. */
void gate_save_float(void);
void gate_load_float(void);
#endif
