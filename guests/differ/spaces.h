/* What a program finds in memory: pages of data, and the address spaces among which it chooses. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define PAGE   4096ul
#define LARGE  (2ul << 20)
#define GIANT  (1ul << 30)
#define MEMORY 0x80000000ul

#define SPACES 3
/* Pages of data. In each, the first half and the last bytes are data, and the rest is code that traps at once: a program stores to the former and jumps to the latter. */
#define DATA_PAGES 16
#define TRAPS_FROM 2048
#define TRAPS_TO   4088

/* Entries of page tables that are random, and that a program changes. The last ones are the same in all spaces, and global. */
#define SLOTS        26
#define FIRST_GLOBAL 20
/* The first ones never lead to where nothing is. */
#define SURELY_MEMORY 8

/* The program's code: where it is, and where its user mode has it in each address space. */
#define CODE_BYTES (4 * PAGE)
#define USER_CODE  0x180000000ul
extern uint16_t code[CODE_BYTES / 2];

extern uint8_t data[LARGE];

/* Makes data and tables anew, from these random numbers. */
void spaces_fill(uint64_t *random);

/* Its satp. */
uint64_t space_satp(unsigned space);

/* Its ASID. */
uint64_t space_asid(unsigned space);

/* What is at this entry: an address that it translates, in one of the pages of data if it leads there. */
uint64_t slot_address(unsigned slot, uint64_t *random);

/* May it lead to where nothing is? */
bool slot_may_be_nowhere(unsigned slot);

/* May an access go from this page to the next one? Not where one of these may be where nothing is: which of two pages' faults it is then, each hart decides. */
bool can_be_crossed(uint64_t page);

/* Where the entry is. */
uint64_t slot_place(unsigned space, unsigned slot);

/* Something that the entry may hold. */
uint64_t slot_value(unsigned space, unsigned slot, uint64_t *random);

/* Does it lead to a table? A fence of one address says nothing of it then. */
bool slot_is_pointer(unsigned slot);
