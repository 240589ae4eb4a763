/* The guest's memory: what the tried-out code may touch, and the translations that keep it from the rest. */
#pragma once
#include "vcpu.h"

#define PAGE 4096ul
#define TABLES 16 /* pages for each vCPU's random translations */
#define SCRATCH_PAGES 16 /* a naturally aligned 64 KiB, so that even a NAPOT translation of it stays inside */

#define UART_BASE 0x10000000ul
#define GIVE_WAY_BASE 0x4000000ul

/* U-mode sees code and scratch at other addresses. */
#define USER_OFFSET 0x40000000ul

#define PTE_V 1ul
#define PTE_R 2ul
#define PTE_W 4ul
#define PTE_X 8ul
#define PTE_U 16ul
#define PTE_G 32ul
#define PTE_A 64ul
#define PTE_D 128ul

extern uint8_t *scratch;

/* Lays out the memory for vCPUs of these ids, in order, and makes the fences. */
void memory_prepare(const uint64_t *ids, unsigned count);

/* Pages, with anything in them, for good. */
void *take_pages(unsigned count);

void clear_pages(void *pages, unsigned count);

/* Any address in the scratch area. */
uint64_t scratch_address(struct vcpu *v);

/* New content for some of the scratch area. */
void scratch_refill(struct vcpu *v);

/* satp for code that must reach only scratch and what is this vCPU's own; `devices`: and the interrupt controller and the UART. Mode Sv39, Sv48 or Sv57. */
uint64_t fence_satp(struct vcpu *v, bool devices);

/* satp with a root table of this mode: 8 for Sv39, 9 for Sv48, 10 for Sv57. */
uint64_t satp_of(unsigned mode, const void *root);

/* A page-table entry. */
static inline uint64_t pte(uint64_t address, uint64_t flags) { return address / PAGE << 10 | flags; }

/* The part of each table that must be there, the vCPU's own: entry 2 of a table for 512 GiB. And the same for U-mode: entry 1. */
uint64_t fence_entry(const struct vcpu *v);
uint64_t user_entry(const struct vcpu *v);
