/* FreeRTOS on one RISC-V hart in S-mode, or in VS-mode under a hypervisor: types and macros that the kernel asks of a port.
 * See port.c for how it works. */
#pragma once
#include <stdint.h>
#include "csr.h"

#define portSTACK_TYPE  uint64_t
#define portBASE_TYPE   long
typedef portSTACK_TYPE StackType_t;
typedef long           BaseType_t;
typedef unsigned long  UBaseType_t;
typedef uint64_t       TickType_t; /* never wraps around */
#define portMAX_DELAY  UINT64_MAX
#define portTICK_TYPE_IS_ATOMIC 1
#define portPOINTER_SIZE_TYPE   uintptr_t

#define portSTACK_GROWTH   (-1)
#define portBYTE_ALIGNMENT 16
#define portTICK_PERIOD_MS ((TickType_t)1000 / configTICK_RATE_HZ)

/* A software interrupt to oneself. It is taken at once (a write to sip makes the hart look at its interrupts), or, in a critical
 * section, at its end, which is what the kernel expects. `ecall`, which M-mode ports use, belongs to the SBI here. */
#define portYIELD()               csr_set(sip, 1ul << IRQ_SOFTWARE)
#define portEND_SWITCHING_ISR(x)  do { if (x) portYIELD(); } while (0)
#define portYIELD_FROM_ISR(x)     portEND_SWITCHING_ISR(x)

#define portDISABLE_INTERRUPTS()  interrupts_off()
#define portENABLE_INTERRUPTS()   interrupts_on()

/* A task never loses the hart within a critical section, so one counter serves all tasks. It begins at 1: interrupts stay off
 * until the first task runs. */
extern unsigned long port_critical_nesting;
#define portENTER_CRITICAL()                                                                                           \
    do {                                                                                                               \
        portDISABLE_INTERRUPTS();                                                                                      \
        port_critical_nesting++;                                                                                       \
    } while (0)
#define portEXIT_CRITICAL()                                                                                            \
    do {                                                                                                               \
        if (--port_critical_nesting == 0)                                                                              \
            portENABLE_INTERRUPTS();                                                                                   \
    } while (0)

/* Handlers run with interrupts off and don't nest. */
#define portSET_INTERRUPT_MASK_FROM_ISR()      0
#define portCLEAR_INTERRUPT_MASK_FROM_ISR(x)   ((void)(x))

#define portTASK_FUNCTION_PROTO(function, parameter) void function(void *parameter)
#define portTASK_FUNCTION(function, parameter)       void function(void *parameter)
#define portMEMORY_BARRIER() __asm__ volatile("" ::: "memory")
#define portNOP()            __asm__ volatile("nop")
#define portDONT_DISCARD     __attribute__((used))

/* Sets the length of a tick, in ticks of `time`. Call it once before vTaskStartScheduler. */
void port_set_tick_period(uint64_t period);

/* Has `handler` called, with interrupts off, for each external interrupt: it claims and completes. True if the task that it has woken goes first now. Call it
 * from a task. */
void port_on_external(BaseType_t (*handler)(void));

/* When the tick number `tick` was due, in `time`: origin + tick x period, whatever happened to its interrupt. */
uint64_t port_tick_deadline(TickType_t tick);
