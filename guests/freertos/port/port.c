/* FreeRTOS on one RISC-V hart in S-mode on the SBI, or in VS-mode under a hypervisor.
 *
 * - A yield is a software interrupt to oneself (sip.SSIP).
 * - The tick is the Sstc timer. In VS-mode stimecmp is vstimecmp: a tick and a switch cost no exit. (Without Sstc: a call to the SBI.)
 * - Deadlines run free: the next is the previous plus the period, never "now" plus the period. One that comes late counts all that are due.
 * - A task's registers lie on its own stack; handlers run on a stack of their own.
 * - Floating-point registers are saved and loaded only for tasks that have used them (sstatus.FS tells). Handlers
 *   run with FS off: one that used floating point by mistake would be reported, instead of spoiling a task's registers.
 */
#include "FreeRTOS.h"
#include "task.h"
#include <string.h>
#include "own_timer.h"
#include "portasm.h"
#include "trap.h"

unsigned long port_critical_nesting = 1;

/* Handlers' stack. Its end is known to portASM.S. */
uint64_t port_interrupt_stack[512] __attribute__((aligned(16)));

static uint64_t tick_period;
static uint64_t tick_origin;
static uint64_t tick_deadline; /* of the next tick: what stimecmp holds */

static BaseType_t (*external)(void);

void port_start_first_task(void) __attribute__((noreturn));
void port_handle_interrupt(uint64_t scause);

void port_set_tick_period(uint64_t period) { tick_period = period; }

uint64_t port_tick_deadline(TickType_t tick) { return tick_origin + tick * tick_period; }

void port_on_external(BaseType_t (*handler)(void))
{
    external = handler;
    csr_set(sie, 1ul << IRQ_EXTERNAL);
}

static void task_returned(void) { fail("the function of task \"%s\" returned", pcTaskGetName(NULL)); }

StackType_t *pxPortInitialiseStack(StackType_t *top, TaskFunction_t code, void *parameters)
{
    struct task_frame *frame = (struct task_frame *)((uintptr_t)top & ~(uintptr_t)(portBYTE_ALIGNMENT - 1)) - 1;
    memset(frame, 0, sizeof *frame);
    uint64_t global_pointer;
    __asm__("mv %0, gp" : "=r"(global_pointer));
    frame->trap.x[1] = (uintptr_t)task_returned;
    frame->trap.x[2] = (uintptr_t)(frame + 1);
    frame->trap.x[3] = global_pointer;
    frame->trap.x[10] = (uintptr_t)parameters;
    frame->trap.sepc = (uintptr_t)code;
    frame->trap.sstatus = SSTATUS_SPP | SSTATUS_SPIE | SSTATUS_FS_INITIAL;
    return (StackType_t *)frame;
}

BaseType_t xPortStartScheduler(void)
{
    configASSERT(tick_period != 0);
    tick_origin = read_time();
    tick_deadline = tick_origin + tick_period;
    own_timer_set(tick_deadline);
    csr_write(sie, 1ul << IRQ_SOFTWARE | 1ul << IRQ_TIMER);
    port_critical_nesting = 0;
    port_start_first_task();
}

void vPortEndScheduler(void) { fail("vTaskEndScheduler: this port has nowhere to return to; shut down through the SBI"); }

/* Does what a tick interrupt asks for. `now`: `time` at the handler's start. */
static void handle_tick(uint64_t now)
{
    /* An interrupt may come before its deadline: QEMU with a thread per hart can run the timer of a former deadline late, just
     * after stimecmp was moved on, and then it stays pending until stimecmp is written again. It is none of ours; taken for a
     * tick it would make the tick count run ahead of the clock, and delays negative. */
    if (now < tick_deadline) {
        own_timer_set(tick_deadline);
        return;
    }
    portTICK_TAKEN(tick_deadline, now);
    BaseType_t must_switch = pdFALSE;
    do {
        tick_deadline += tick_period;
        must_switch |= xTaskIncrementTick();
    } while (now >= tick_deadline);
    own_timer_set(tick_deadline); /* takes the interrupt back, unless the next is due by now */
    if (must_switch)
        vTaskSwitchContext();
}

/* Called by trap_entry for each interrupt. A change of pxCurrentTCB makes it switch tasks. */
void port_handle_interrupt(uint64_t scause)
{
    if (scause == (SCAUSE_INTERRUPT | IRQ_TIMER)) {
        handle_tick(read_time());
    } else if (scause == (SCAUSE_INTERRUPT | IRQ_SOFTWARE)) {
        csr_clear(sip, 1ul << IRQ_SOFTWARE);
        vTaskSwitchContext();
    } else if (scause == (SCAUSE_INTERRUPT | IRQ_EXTERNAL)) {
        if (external())
            vTaskSwitchContext();
    } else {
        fail("interrupt without a handler: scause 0x%lx", scause);
    }
}
