/* FreeRTOS's SMP kernel on several RISC-V harts in S-mode on the SBI, or in VS-mode under a hypervisor. As the port for one hart (../../port), and
 * what several need on top of it:
 *
 * - Core 0 is the boot hart. The others are started by the SBI (HSM) when the scheduler starts, in the order of the device tree; harts that are left
 *   over stay stopped.
 * - A yield on another core is an interrupt by the SBI (IPI), which comes there as the software interrupt that a yield is anyway.
 * - Core 0 has the tick, and tells the others if a task of theirs is due. No other core has a timer.
 * - A task may go on where another core has left it as soon as that one has released the kernel's locks. So all of it is in memory before they are
 *   taken: also floating-point registers, which the port for one hart saves only when it switches.
 */
#include "FreeRTOS.h"
#include "task.h"
#include <stdatomic.h>
#include <string.h>
#include "machine.h"
#include "portasm.h"
#include "sbi.h"
#include "trap.h"

/* Most time until all harts have come, seconds. */
#define START_S 10

struct port_core port_cores[configNUMBER_OF_CORES];

/* The kernel's, which it declares nowhere: the task that runs on each core. */
extern void *volatile pxCurrentTCBs[configNUMBER_OF_CORES];

static uint64_t tick_period;
static uint64_t tick_origin;
static uint64_t tick_deadline; /* of the next tick: what core 0's stimecmp holds */

static atomic_uint waiting;    /* cores other than 0 that have come */
static atomic_bool is_started; /* they may run tasks */

void port_start_first_task(void) __attribute__((noreturn));
void port_handle_interrupt(uint64_t scause);

static void wait_for_start(void *core);

static void core_init(unsigned id, uint64_t hart)
{
    struct port_core *core = &port_cores[id];
    core->id = id;
    core->hart = hart;
    core->current = &pxCurrentTCBs[id];
    core->stack_top = core->interrupt_stack + PORT_INTERRUPT_STACK_WORDS;
    /* Handlers aren't called before the first task runs, so the stack is free until then. */
    core->start = (struct secondary){ core->stack_top, wait_for_start, core };
}

void port_init(void)
{
    if (machine.hart_count < configNUMBER_OF_CORES)
        fail("this FreeRTOS is built for %d cores, and has %u hart%s: give it `vcpus = %d`, or take the build for one core", configNUMBER_OF_CORES,
             machine.hart_count, machine.hart_count == 1 ? "" : "s", configNUMBER_OF_CORES);
    core_init(0, machine.boot_hart);
    unsigned id = 1;
    for (unsigned i = 0; i < machine.hart_count && id < configNUMBER_OF_CORES; i++) {
        if (machine.harts[i].id != machine.boot_hart)
            core_init(id++, machine.harts[i].id);
    }
    __asm__ volatile("mv tp, %0" :: "r"(&port_cores[0]) : "memory");
    port_locks_init();
}

void port_set_tick_period(uint64_t period) { tick_period = period; }

uint64_t port_tick_deadline(TickType_t tick) { return tick_origin + tick * tick_period; }

static void task_returned(void) { fail("the function of task \"%s\" returned", pcTaskGetName(NULL)); }

StackType_t *pxPortInitialiseStack(StackType_t *top, TaskFunction_t code, void *parameters)
{
    struct task_frame *frame = (struct task_frame *)((uintptr_t)top & ~(uintptr_t)(portBYTE_ALIGNMENT - 1)) - 1;
    memset(frame, 0, sizeof *frame);
    uint64_t global_pointer;
    __asm__("mv %0, gp" : "=r"(global_pointer));
    frame->trap.x[1] = (uintptr_t)task_returned;
    frame->trap.x[2] = (uintptr_t)(frame + 1);
    frame->trap.x[3] = global_pointer; /* x4, tp, is set by the core that runs it */
    frame->trap.x[10] = (uintptr_t)parameters;
    frame->trap.sepc = (uintptr_t)code;
    frame->trap.sstatus = SSTATUS_SPP | SSTATUS_SPIE | SSTATUS_FS_INITIAL;
    return (StackType_t *)frame;
}

void port_yield_core(BaseType_t core)
{
    long error = sbi_send_ipi(1, port_cores[core].hart);
    if (error != SBI_SUCCESS)
        fail("IPI to hart %lu: error %ld", port_cores[core].hart, error);
}

/* Where the harts of other cores begin, with interrupts off. */
static void wait_for_start(void *core)
{
    (void)core;
    csr_write(sie, 1ul << IRQ_SOFTWARE);
    atomic_fetch_add_explicit(&waiting, 1, memory_order_release);
    port_yield_core(0);
    /* The interrupt that ends the wait stays pending: it is the core's first yield. Bounded: core 0 starts all, or ends the guest. */
    while (!atomic_load_explicit(&is_started, memory_order_acquire))
        wait_for_interrupt();
    port_start_first_task();
}

static void start_other_cores(void)
{
    for (unsigned id = 1; id < configNUMBER_OF_CORES; id++)
        start_hart(port_cores[id].hart, &port_cores[id].start);
    uint64_t limit = read_time() + START_S * machine.timebase_hz;
    csr_write(CSR_STIMECMP, limit);
    csr_write(sie, 1ul << IRQ_SOFTWARE | 1ul << IRQ_TIMER);
    while (atomic_load_explicit(&waiting, memory_order_acquire) < configNUMBER_OF_CORES - 1) {
        if (read_time() >= limit)
            fail("of %d further harts only %u have come within %d s", configNUMBER_OF_CORES - 1, atomic_load(&waiting), START_S);
        wait_for_interrupt();
        csr_clear(sip, 1ul << IRQ_SOFTWARE);
    }
}

BaseType_t xPortStartScheduler(void)
{
    configASSERT(tick_period != 0);
    start_other_cores();
    tick_origin = read_time();
    tick_deadline = tick_origin + tick_period;
    csr_write(CSR_STIMECMP, tick_deadline);
    atomic_store_explicit(&is_started, true, memory_order_release);
    for (unsigned id = 1; id < configNUMBER_OF_CORES; id++)
        port_yield_core(id);
    port_start_first_task();
}

void vPortEndScheduler(void) { fail("vTaskEndScheduler: this port has nowhere to return to; shut down through the SBI"); }

/* Does what a tick interrupt asks for. `now`: `time` at the handler's start. Returns whether this core has to switch. */
static BaseType_t handle_tick(uint64_t now)
{
    /* One that comes before its deadline is none of ours: see ../../port/port.c. */
    if (now < tick_deadline) {
        csr_write(CSR_STIMECMP, tick_deadline);
        return pdFALSE;
    }
    portTICK_TAKEN(tick_deadline, now);
    BaseType_t must_switch = pdFALSE;
    do {
        tick_deadline += tick_period;
        UBaseType_t state = taskENTER_CRITICAL_FROM_ISR();
        must_switch |= xTaskIncrementTick();
        taskEXIT_CRITICAL_FROM_ISR(state);
    } while (now >= tick_deadline);
    csr_write(CSR_STIMECMP, tick_deadline); /* takes the interrupt back, unless the next is due by now */
    return must_switch;
}

/* Called by trap_entry for each interrupt. A change of this core's pxCurrentTCBs makes it switch tasks. */
void port_handle_interrupt(uint64_t scause)
{
    BaseType_t must_switch = pdTRUE;
    if (scause == (SCAUSE_INTERRUPT | IRQ_TIMER)) {
        must_switch = handle_tick(read_time());
    } else if (scause == (SCAUSE_INTERRUPT | IRQ_SOFTWARE)) {
        /* Before the locks are taken: who asks for a switch from now on, asks again. */
        csr_clear(sip, 1ul << IRQ_SOFTWARE);
    } else {
        fail("interrupt without a handler: scause 0x%lx", scause);
    }
    if (must_switch)
        vTaskSwitchContext(portGET_CORE_ID());
}
