/* How harts begin. */
#pragma once
#include <stdint.h>

/* The program: called once on the boot hart, on a stack of 16 KiB, with traps going to `trap_entry`, interrupts off, and
 * `machine` and the arguments read. When it returns, the guest shuts down: reason none if it returned true, else failure. */
_Bool guest_main(void);

/* What a further hart starts with; its address is the third argument of sbi_hart_start. The layout is known to entry.S. */
struct secondary {
    void *stack_top;
    void (*entry)(void *argument); /* must not return */
    void *argument;                /* also in tp, so that a trap handler can tell whose hart it is on */
};

/* Address to give to sbi_hart_start. */
void secondary_start(uint64_t hart_id, struct secondary *secondary);

/* Starts a hart; ends the guest with a message if that fails. */
void start_hart(uint64_t id, struct secondary *secondary);
