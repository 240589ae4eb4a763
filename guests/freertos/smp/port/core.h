/* A core of FreeRTOS: one hart. While the scheduler runs, each hart's tp points to its own. For C and for assembler. */
#pragma once

#define CORE_CURRENT 0
#define CORE_STACK   8

#ifndef __ASSEMBLER__
#include <stddef.h>
#include <stdint.h>
#include "start.h"

#define PORT_INTERRUPT_STACK_WORDS 512

struct port_core {
    void *volatile *current;  /* the kernel's pxCurrentTCBs of this core */
    void *stack_top;          /* of the stack that its handlers run on */
    unsigned long id;         /* as the kernel counts cores: 0 is the boot hart */
    unsigned long critical_nesting;
    uint64_t hart;            /* as the device tree and the SBI name it */
    struct secondary start;
    /* A line of its own for what its core writes all the time. */
    _Alignas(64) uint64_t interrupt_stack[PORT_INTERRUPT_STACK_WORDS];
};
_Static_assert(offsetof(struct port_core, current) == CORE_CURRENT, "known to the assembler");
_Static_assert(offsetof(struct port_core, stack_top) == CORE_STACK, "known to the assembler");

/* The one that this code runs on. A task reads it with interrupts off, or it may be on another one when it uses it; `volatile`, so that it is
 * read anew behind each place where that can happen. */
static inline struct port_core *port_core(void)
{
    struct port_core *core;
    __asm__ volatile("mv %0, tp" : "=r"(core));
    return core;
}
#endif
