/* The kinds of inputs. Each function tries out some inputs and returns how many, as far as that is known. */
#pragma once
#include "vcpu.h"

typedef unsigned try_kind(struct vcpu *v);

try_kind try_instructions, try_user, try_csrs, try_calls, try_devices, try_wild, try_paging, try_lifecycle, try_pending, try_keep,
    try_output;

/* Prepares what a kind needs, on the boot hart: for each vCPU, and once for all. */
void wild_prepare(struct vcpu *v);
void keep_prepare(void);

/* Some instruction, biased towards those that a hypervisor has to do with. */
uint32_t any_instruction(struct vcpu *v);

/* Some instruction that accesses memory through register `base`; `simple`: an integer load or store. */
uint32_t any_access(struct vcpu *v, unsigned base, bool simple);

/* Where a vCPU begins after hart_start. */
uint64_t start_address(void);
unsigned start_all(void); /* returns how many calls that took */
