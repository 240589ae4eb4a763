/* What gate.S calls and offers. */
#pragma once
#include "vcpu.h"

void trap_entry(void);
__attribute__((noreturn)) void unexpected(struct vcpu *v);
