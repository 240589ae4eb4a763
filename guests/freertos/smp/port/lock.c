/* Spin locks: test, and test-and-set. They aren't first come, first served: a waiter that has lost its hart to another guest would then keep all behind
 * it waiting, as well as the owner does. */
#include "lock.h"
#include <stdbool.h>
#include <stdint.h>
#include "csr.h"
#include "machine.h"
#include "trap.h"

/* Looks in a row before WRS.NTO: some 12 us in lockstep time, as the longest sections of the kernel, in which it interrupts other cores by the SBI. Where
 * that instruction traps at once, as in QEMU, each one costs the way into a hypervisor and back. */
#define LOOKS 500
/* The kernel's sections are microseconds; an owner may have lost its hart, but one that is away for so long doesn't come back. */
#define PATIENCE_S 60
/* Who hasn't looked for so long has lost its own hart, and didn't wait for the lock meanwhile. */
#define AWAY_MS    1

struct port_lock port_task_lock, port_isr_lock;

static bool has_zawrs;

void port_locks_init(void) { has_zawrs = machine_has("zawrs"); }

/* Returns when the lock looks free. WRS.NTO stalls the hart until somebody writes what LR has read; under a hypervisor it traps sooner or later, which
 * tells that this vCPU spins, so that the one that it waits for can be brought back. */
static void await_free(struct port_lock *lock, unsigned long core)
{
    uint64_t last = read_time(), waited = 0;
    for (unsigned looks = 0;; looks++) {
        unsigned long owner;
        __asm__ volatile("lr.d %0, %1" : "=r"(owner) : "A"(lock->owner) : "memory");
        if (owner == 0)
            return;
        if (looks < LOOKS) {
            pause_hint();
            continue;
        }
        if (has_zawrs)
            __asm__ volatile(".word 0x00d00073" ::: "memory"); /* wrs.nto */
        uint64_t now = read_time();
        if (now - last < AWAY_MS * machine.timebase_hz / 1000)
            waited += now - last;
        last = now;
        if (waited > PATIENCE_S * machine.timebase_hz)
            fail("core %lu has waited for a lock of core %lu for %d s: is a guest with a higher priority always busy on its hart?", core, owner - 1,
                 PATIENCE_S);
    }
}

void port_lock_take(struct port_lock *lock, unsigned long core)
{
    unsigned long me = core + 1;
    if (atomic_load_explicit(&lock->owner, memory_order_relaxed) != me) {
        unsigned long nobody = 0;
        while (!atomic_compare_exchange_weak_explicit(&lock->owner, &nobody, me, memory_order_acquire, memory_order_relaxed)) {
            await_free(lock, core);
            nobody = 0;
        }
    }
    lock->depth++;
}

void port_lock_release(struct port_lock *lock, unsigned long core)
{
    if (atomic_load_explicit(&lock->owner, memory_order_relaxed) != core + 1)
        fail("core %lu releases a lock that it doesn't hold", core);
    if (--lock->depth == 0)
        atomic_store_explicit(&lock->owner, 0, memory_order_release);
}
