/* Carries programs out. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* Makes a program of these random numbers, runs it to its end, and records what it has seen. How many traps it took. */
unsigned run_program(uint64_t random);
