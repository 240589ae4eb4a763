/* Numbers that look random, and values that tend to be at some edge. All from the vCPU's own seed. */
#pragma once
#include "vcpu.h"

uint64_t any(struct vcpu *v);

/* 0 to `below` - 1. */
static inline uint64_t below(struct vcpu *v, uint64_t limit) { return any(v) % limit; }

/* True once in so many times. */
static inline bool once_in(struct vcpu *v, uint64_t times) { return below(v, times) == 0; }

/* One of a list. */
#define one_of(v, list) ((list)[below(v, sizeof(list) / sizeof *(list))])

/* A number at some edge: small, near a power of two, all ones, or anything. */
uint64_t edge_number(struct vcpu *v);

/* A guest-physical address at some edge: of memory, of devices, of what hardware has, or anything. */
uint64_t edge_address(struct vcpu *v);
