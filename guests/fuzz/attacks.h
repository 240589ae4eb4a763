/* What one guest can do on purpose: a loop of one thing on all vCPUs, for a while. */
#pragma once
#include "vcpu.h"

/* Names for the parameter `attack`, ended by NULL. The first one is none. */
extern const char *const attack_names[];

/* The steps of some, which have their translations on behind them (spaces.c). */
typedef void attack_step(struct vcpu *v, uint64_t turn);
attack_step attack_spaces, attack_changes, attack_windows, attack_views, attack_texts;

/* Does it until `end` (in ticks); counts in v->done. */
void attack(struct vcpu *v, unsigned which, uint64_t end);
