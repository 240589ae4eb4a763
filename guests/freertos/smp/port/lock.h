/* The two locks that the SMP kernel asks of a port. */
#pragma once
#include <stdatomic.h>

/* A spin lock that its owner may take again: the kernel does, with its task lock, while it has suspended the scheduler. */
struct port_lock {
    _Alignas(64) atomic_ulong owner; /* 0: nobody, else the core's number and 1 */
    unsigned long depth;             /* how often the owner has taken it; only the owner looks */
};

extern struct port_lock port_task_lock, port_isr_lock;

/* To be called once, before there is a second core. */
void port_locks_init(void);

/* Both with interrupts off. `core`: the one that they are called on. */
void port_lock_take(struct port_lock *lock, unsigned long core);
void port_lock_release(struct port_lock *lock, unsigned long core);
