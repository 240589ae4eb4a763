/* FreeRTOS on several RISC-V harts in S-mode, or in VS-mode under a hypervisor: types and macros that the SMP kernel asks of a port.
 * See port.c for how it works. */
#pragma once
#include <stdint.h>
#include "core.h"
#include "csr.h"
#include "lock.h"

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

extern struct port_core port_cores[];
#define portGET_CORE_ID() ((BaseType_t)port_core()->id)

/* A software interrupt to oneself. It is taken at once, or when interrupts are on again. */
#define portYIELD()              csr_set(sip, 1ul << IRQ_SOFTWARE)
#define portEND_SWITCHING_ISR(x) do { if (x) portYIELD(); } while (0)
#define portYIELD_FROM_ISR(x)    portEND_SWITCHING_ISR(x)
/* The same to another core, by the SBI. */
void port_yield_core(BaseType_t core);
#define portYIELD_CORE(core)     port_yield_core(core)

#define portDISABLE_INTERRUPTS() interrupts_off()
#define portENABLE_INTERRUPTS()  interrupts_on()

/* Off, and what they were. */
static inline UBaseType_t port_mask_interrupts(void)
{
    UBaseType_t before;
    __asm__ volatile("csrrc %0, sstatus, %1" : "=r"(before) : "rK"(SSTATUS_SIE) : "memory");
    return before & SSTATUS_SIE;
}
#define portSET_INTERRUPT_MASK()        port_mask_interrupts()
#define portCLEAR_INTERRUPT_MASK(state) csr_set(sstatus, state)

/* Handlers run with interrupts off and don't nest. */
#define portSET_INTERRUPT_MASK_FROM_ISR()      0
#define portCLEAR_INTERRUPT_MASK_FROM_ISR(x)   ((void)(x))

/* Always in this order, task lock before ISR lock: that of the kernel. */
#define portGET_TASK_LOCK(core)     port_lock_take(&port_task_lock, core)
#define portRELEASE_TASK_LOCK(core) port_lock_release(&port_task_lock, core)
#define portGET_ISR_LOCK(core)      port_lock_take(&port_isr_lock, core)
#define portRELEASE_ISR_LOCK(core)  port_lock_release(&port_isr_lock, core)

/* The kernel's own, which take these locks. They nest in each core by itself: a task stays on its core while it is in one. */
#define portENTER_CRITICAL()            vTaskEnterCritical()
#define portEXIT_CRITICAL()             vTaskExitCritical()
#define portENTER_CRITICAL_FROM_ISR()   vTaskEnterCriticalFromISR()
#define portEXIT_CRITICAL_FROM_ISR(x)   vTaskExitCriticalFromISR(x)
#define portGET_CRITICAL_NESTING_COUNT(core)        (port_cores[core].critical_nesting)
#define portSET_CRITICAL_NESTING_COUNT(core, count) (port_cores[core].critical_nesting = (count))
#define portINCREMENT_CRITICAL_NESTING_COUNT(core)  (port_cores[core].critical_nesting++)
#define portDECREMENT_CRITICAL_NESTING_COUNT(core)  (port_cores[core].critical_nesting--)

#define portTASK_FUNCTION_PROTO(function, parameter) void function(void *parameter)
#define portTASK_FUNCTION(function, parameter)       void function(void *parameter)
#define portMEMORY_BARRIER() __asm__ volatile("" ::: "memory")
#define portNOP()            __asm__ volatile("nop")
#define portDONT_DISCARD     __attribute__((used))

/* Finds the harts. Ends the guest with a message if there are fewer than cores. Call it once, before anything of the kernel. */
void port_init(void);

/* Sets the length of a tick, in ticks of `time`. Call it once before vTaskStartScheduler. */
void port_set_tick_period(uint64_t period);

/* When the tick number `tick` was due, in `time`: origin + tick x period, whatever happened to its interrupt. */
uint64_t port_tick_deadline(TickType_t tick);
