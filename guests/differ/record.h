/* What a program has seen, as one number that is the same on each machine; and in words, for programs that are asked for. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* The records of a program begin. They are printed if `aloud`. */
void record_begin(uint64_t program, bool aloud);

/* One value of a record, with a name without spaces. */
void record(const char *name, uint64_t value);

/* Several values, of which only the sum is printed. */
void record_all(const char *name, const uint64_t *values, unsigned count);

/* Is the program's code printed, too? It isn't part of the sum. */
void record_code(const uint16_t *code, unsigned bytes);

/* Something about the program that isn't part of the sum, with two numbers that say which. */
void record_fact(const char *name, uint64_t which, uint64_t of, uint64_t value);

/* The record ends. */
void record_end(void);

/* All values since the last `record_begin`. */
uint64_t record_sum(void);
