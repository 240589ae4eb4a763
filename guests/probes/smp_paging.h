/* A small address space (Sv39) that all harts share: memory as it is, and a window that can be moved from page to page. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define PAGING_PAGE   4096ul
#define PAGING_WINDOW (128ul << 30) /* beyond all that is mapped one to one */

/* Builds the tables. Once, before the other harts run. */
void paging_prepare(void);

/* Switches translation on or off on this hart. Returns false if the hart has no Sv39. */
bool paging_on(void);
void paging_off(void);

/* Maps the window to the page of this turn: another one than in the turn before. No hart needs to see it before a fence. */
void paging_map_window(unsigned turn);

/* Whether this hart sees the page of this turn. */
bool paging_window_shows(unsigned turn);

/* The window's page-table entry, which anybody may write. */
volatile uint64_t *paging_window_entry(void);
