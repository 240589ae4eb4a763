/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs the paths of counted_paths.S, whose instructions the self-test knows, on every hart. */
#include "guest.h"

enum { REPETITIONS = 10, PTE_VALID_RWX_AD = 0xcf, SATP_SV39 = 8 };

void run_paths(void); /* counted_paths.S */
void skip_fault(void);

/* Two identity gigapages, devices and RAM; all else faults. */
static uint64_t page_table[512] __attribute__((aligned(4096))) = {
    [0] = PTE_VALID_RWX_AD,
    [2] = 0x80000000ul >> 12 << 10 | PTE_VALID_RWX_AD,
};
static atomic_int harts_done;

static void run(void)
{
    __asm__ volatile("csrw stvec, %0" ::"r"(skip_fault));
    __asm__ volatile("csrw satp, %0\n sfence.vma" ::"r"((uint64_t)SATP_SV39 << 60 | (uint64_t)page_table >> 12));
    for (int i = 0; i < REPETITIONS; i++) run_paths();
    atomic_fetch_add(&harts_done, 1);
}

void other_hart(long hart)
{
    (void)hart;
    report_ready();
    run();
}

void first_hart(long hart)
{
    int harts = start_others(hart);
    uint64_t begin = read_time();
    run();
    while (atomic_load(&harts_done) < harts);
    print_number("ticks", read_time() - begin);
    shut_down();
}
