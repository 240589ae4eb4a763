/* The program's parameters: `key=value` words of /chosen/bootargs, for instance "periods=1000 end=forever". */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* Keeps the text; it must stay in memory. */
void args_read(const char *bootargs);

/* Value of a parameter, decimal or with 0x; `fallback` where it isn't given. Ends the guest with a message if the value is no
 * number, or outside of `least` to `most`. */
uint64_t arg_number(const char *key, uint64_t fallback, uint64_t least, uint64_t most);

/* Numbers of a parameter, separated by commas: `count` of them to `values`. False where it isn't given; ends the guest with a message if
 * these are not so many numbers. */
bool arg_numbers(const char *key, uint64_t values[], unsigned count);

/* Which of the words of `choices` (ended by NULL) the parameter is; 0, the first, where it isn't given. Ends the guest with a message
 * if it is none of them. */
unsigned arg_choice(const char *key, const char *const choices[]);

/* Ends the guest with a message if a word was given that none of the calls before asked for: a misspelt parameter
 * would otherwise be measured with its default. */
void args_finish(void);
