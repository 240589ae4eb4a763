/* Traps of programs without an operating system, and the report of a trap that nobody expected. */
#pragma once
#include <stdint.h>
#include "trap_frame.h"

/* Called for each trap, with interrupts off. `scause` as in the CSR. */
void handle_trap(struct trap_frame *frame, uint64_t scause);

/* Each exception; reports it, but in programs that have a function of their own. */
void handle_exception(struct trap_frame *frame, uint64_t scause);

/* The program's own handlers, by interrupt number (IRQ_TIMER, ...). An interrupt without one is reported as unexpected. */
typedef void interrupt_handler(void);
void on_interrupt(unsigned interrupt, interrupt_handler *handler);

/* Prints cause, address and registers, then shuts the guest down with reason failure. */
__attribute__((noreturn)) void report_trap(const struct trap_frame *frame, uint64_t scause);

/* Prints a message in the manner of `print`, then shuts the guest down with reason failure. */
__attribute__((noreturn, format(printf, 1, 2))) void fail(const char *format, ...);
