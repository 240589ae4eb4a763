/* What programs consist of. */
#pragma once
#include <stdint.h>

/* Makes a program. It ends at this byte of its code. */
unsigned make_program(uint64_t *random);

/* Groups about memory and what it is translated by. */
void group_load_or_store(void);
void group_atomic(void);
void group_loop_of_reservation(void);
void group_cache_block(void);
void group_wild_jump(void);
void group_address_space(void);
void group_table_entry(void);
void group_fence(void);
void group_rewritten_code(void);

/* One instruction of 32 bits that does nothing but to registers. */
uint32_t calculation(void);

/* An address in one of the pages of data, or of none, such as programs use them. */
uint64_t any_page(void);
