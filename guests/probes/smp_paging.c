#include "smp_paging.h"
#include "csr.h"

#define ENTRIES     512
#define GIGABYTES   64 /* mapped one to one: more than QEMU's virt machine uses */
#define PAGES       4  /* that the window shows in turn */
#define SATP_SV39   (8ul << 60)

/* Page-table entries: valid, readable, writable, executable, accessed, dirty. */
#define PTE_TABLE 0x01ul
#define PTE_LEAF  0xcful

static uint64_t root[ENTRIES] __attribute__((aligned(PAGING_PAGE)));
static uint64_t middle[ENTRIES] __attribute__((aligned(PAGING_PAGE)));
static uint64_t last[ENTRIES] __attribute__((aligned(PAGING_PAGE)));
static uint64_t pages[PAGES][ENTRIES] __attribute__((aligned(PAGING_PAGE)));

static uint64_t entry(const void *target, uint64_t flags) { return (uintptr_t)target / PAGING_PAGE << 10 | flags; }

/* The first word of each page tells the pages apart. */
static uint64_t content(unsigned turn) { return 0xa1u + turn % PAGES; }

void paging_prepare(void)
{
    for (uint64_t gigabyte = 0; gigabyte < GIGABYTES; gigabyte++)
        root[gigabyte] = entry((const void *)(gigabyte << 30), PTE_LEAF);
    root[PAGING_WINDOW >> 30] = entry(middle, PTE_TABLE);
    middle[0] = entry(last, PTE_TABLE);
    for (unsigned page = 0; page < PAGES; page++)
        pages[page][0] = content(page);
    paging_map_window(PAGES - 1); /* before the first turn */
}

bool paging_on(void)
{
    uint64_t satp = SATP_SV39 | (uintptr_t)root / PAGING_PAGE;
    __asm__ volatile("sfence.vma" ::: "memory");
    csr_write(satp, satp);
    __asm__ volatile("sfence.vma" ::: "memory");
    return csr_read(satp) == satp;
}

void paging_off(void)
{
    csr_write(satp, 0);
    __asm__ volatile("sfence.vma" ::: "memory");
}

void paging_map_window(unsigned turn)
{
    *(volatile uint64_t *)last = entry(pages[turn % PAGES], PTE_LEAF);
    __asm__ volatile("fence rw, rw" ::: "memory");
}

volatile uint64_t *paging_window_entry(void) { return last; }

bool paging_window_shows(unsigned turn) { return *(const volatile uint64_t *)PAGING_WINDOW == content(turn); }
