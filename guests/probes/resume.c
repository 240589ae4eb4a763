/* Does a hart that suspends itself without keeping its registers (SBI HSM, default non-retentive suspension; and SUSP, with all the machine) sleep until
 * an interrupt that it has enabled, and resume where it has said: with its id, without translation, with interrupts off, and these still enabled? */
#include <stddef.h>
#include "args.h"
#include "console.h"
#include "csr.h"
#include "machine.h"
#include "sbi.h"
#include "start.h"
#include "timer.h"
#include "trap.h"

#define STACK_WORDS 256
#define NON_RETENTIVE 0x80000000ul
#define TO_RAM 0
#define GIB (1ul << 30)
#define SATP_SV39 (8ul << 60)
#define PTE_ALL 0xcful /* valid, readable, writable, executable, accessed, dirty */
#define NO_ADDRESS (1ul << 60)

void resume_entry(void);

/* What `resume_entry` finds in a1. */
static struct resumption {
    struct secondary start;
    uint64_t satp, sstatus, sie, sip, time, hart;
} found;
_Static_assert(offsetof(struct resumption, satp) == 24 && offsetof(struct resumption, hart) == 64, "resume_entry.S knows it");

static uint64_t stack[STACK_WORDS] __attribute__((aligned(16)));
static uint64_t root[512] __attribute__((aligned(4096)));
static void *before[5];
static unsigned failures;

static void check(bool holds, const char *what, uint64_t value)
{
    if (!holds) {
        print("failed: %s (0x%lx)\n", what, value);
        failures++;
    }
}

static __attribute__((noreturn)) void go_back(void *argument)
{
    (void)argument;
    __builtin_longjmp(before, 1);
}

/* Suspends, with translation on, and looks at what it finds when it goes on. */
static void suspend(bool machine_too, uint64_t cause)
{
    found = (struct resumption){ { &stack[STACK_WORDS], go_back, NULL }, 1, SSTATUS_SIE, 0, 0, 0, UINT64_MAX };
    csr_write(sie, cause);
    csr_write(satp, SATP_SV39 | (uintptr_t)root >> 12);
    __asm__ volatile("sfence.vma" ::: "memory");
    volatile long error = SBI_SUCCESS;
    if (__builtin_setjmp(before) == 0) {
        uint64_t at = (uintptr_t)resume_entry, opaque = (uintptr_t)&found;
        error = machine_too ? sbi_call(SBI_SUSP, SBI_SUSP_SUSPEND, TO_RAM, at, opaque).error
                            : sbi_call(SBI_HSM, SBI_HSM_SUSPEND, NON_RETENTIVE, at, opaque).error;
        csr_write(satp, 0);
        check(false, "a suspension that is accepted doesn't return", error);
        return;
    }
    check(found.satp == 0, "satp", found.satp);
    check(!(found.sstatus & SSTATUS_SIE), "sstatus", found.sstatus);
    check(found.sie == cause, "sie", found.sie);
    check(found.sip & cause, "sip", found.sip);
    check(found.hart == machine.boot_hart, "the hart's id", found.hart);
}

static volatile uint64_t deadline;

/* It was kept from its hart, and comes before it has suspended itself: then it is to be woken later. */
static void too_soon(void)
{
    deadline = read_time() + us_to_ticks(20000);
    timer_set(deadline);
}

/* With interrupts on. */
static void by_timer(bool machine_too, uint64_t us)
{
    deadline = read_time() + us_to_ticks(us);
    timer_set(deadline);
    interrupts_on();
    suspend(machine_too, 1ul << IRQ_TIMER);
    check(found.time >= deadline, "it sleeps until its timer", deadline - found.time);
    timer_set(NEVER);
}

static void by_pending(bool machine_too)
{
    timer_set(NEVER);
    sbi_send_ipi(1, machine.boot_hart);
    suspend(machine_too, 1ul << IRQ_SOFTWARE);
    csr_clear(sip, 1ul << IRQ_SOFTWARE);
}

static struct secondary waker;
static uint64_t waker_stack[STACK_WORDS] __attribute__((aligned(16)));
static uint64_t wake_at;

static __attribute__((noreturn)) void wake_and_stop(void *argument)
{
    (void)argument;
    while (read_time() < wake_at)
        ;
    sbi_send_ipi(1, machine.boot_hart);
    sbi_hart_stop();
    for (;;)
        ;
}

/* Another hart wakes it; and while that one runs the machine can't be suspended. */
static void by_other(uint64_t id)
{
    wake_at = read_time() + us_to_ticks(3000);
    waker = (struct secondary){ &waker_stack[STACK_WORDS], wake_and_stop, NULL };
    start_hart(id, &waker);
    while (sbi_hart_status(id).value != SBI_HART_STARTED)
        ;
    long error = sbi_call(SBI_SUSP, SBI_SUSP_SUSPEND, TO_RAM, (uintptr_t)resume_entry, 0).error;
    check(error == SBI_ERR_DENIED, "the machine isn't suspended while another hart runs", error);
    suspend(false, 1ul << IRQ_SOFTWARE);
    check(found.time >= wake_at, "it sleeps until it is woken", wake_at - found.time);
    csr_clear(sip, 1ul << IRQ_SOFTWARE);
    while (sbi_hart_status(id).value != SBI_HART_STOPPED)
        ;
}

bool guest_main(void)
{
    uint64_t n = arg_number("n", 10, 1, 1000);
    args_finish();
    for (uint64_t gib = 0; gib <= machine.memory_base / GIB; gib++)
        root[gib] = gib * GIB >> 12 << 10 | PTE_ALL;
    on_interrupt(IRQ_TIMER, too_soon);
    long error = sbi_call(SBI_HSM, SBI_HSM_SUSPEND, NON_RETENTIVE, NO_ADDRESS, 0).error;
    check(error == SBI_ERR_INVALID_ADDRESS, "a resume address outside of memory is refused", error);
    check(sbi_probe(SBI_SUSP), "SUSP is there", 0);
    for (uint64_t i = 0; failures == 0 && i < n; i++) {
        by_timer(i % 2, 100 + 97 * i);
        by_pending(i % 2);
    }
    for (unsigned i = 0; i < machine.hart_count; i++)
        if (machine.harts[i].id != machine.boot_hart)
            by_other(machine.harts[i].id);
    print("@result {\"job\":\"resume\",\"failures\":%u,\"ok\":%s}\n", failures, failures == 0 ? "true" : "false");
    return failures == 0;
}
