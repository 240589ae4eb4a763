/* Ainori's SBI vendor extension. A guest may use it; none has to. Probe for it first (sbi_probe): another SBI
 * implementation does not have it. */
#pragma once

/* "AIN" in the vendor range 0x09000000 to 0x09ffffff. */
#define AINORI_EID 0x0941494e

/* Gives the hart to the next vCPU of the same priority, if there is one. No arguments; always succeeds. */
#define AINORI_YIELD 0
/* Writes a mark into the hypervisor's trace. a0: any value, shown in the trace beside the vCPU. */
#define AINORI_MARK  1

/* Functions 2 and 3: this hart has taken a lock, or released its last one. Policies that delay preemption wait for the latter. */
#define AINORI_LOCK_TAKEN    2
#define AINORI_LOCK_RELEASED 3

/* Gives the hart to all other guests, also to less urgent ones, until an interrupt for the caller: one that would end its WFI. No arguments; returns 0, at
 * once if there is such an interrupt already. It is the WFI of a transition task, of whatever priority the task has in its own OS. */
#define AINORI_GIVE_WAY 4
