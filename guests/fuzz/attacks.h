/* What one guest can do on purpose: a loop of one thing on all vCPUs, for a while. */
#pragma once
#include "vcpu.h"

/* Names for the parameter `attack`, ended by NULL. The first one is none. */
extern const char *const attack_names[];

/* Does it until `end` (in ticks); counts in v->done. */
void attack(struct vcpu *v, unsigned which, uint64_t end);
