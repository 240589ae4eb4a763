/* Random numbers that are the same each time: xorshift64 (Marsaglia, "Xorshift RNGs"). */
#pragma once
#include <stdint.h>

/* The next one. The state must not be 0. */
static inline uint64_t xorshift(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}
