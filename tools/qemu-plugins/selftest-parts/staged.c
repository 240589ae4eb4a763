/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Two stages of translation: HS-mode has leaves of 4 KiB in the second. CASE chooses what VS-mode touches; tlb.sh
   says what that comes to. */
#include "translated.h"

enum { HSTATUS_SPVP = 1 << 8, HSTATUS_VTVM = 1 << 20 };

static table second_root[4] __attribute__((aligned(4 * PAGE))), second_1, second_0;

POSSIBLE fence(void) { __asm__ volatile("sfence.vma" ::: "memory"); }
POSSIBLE fence_first(void) { __asm__ volatile(".insn r 0x73, 0, 0x11, x0, x0, x0" ::: "memory"); } /* hfence.vvma */
POSSIBLE fence_second(void) { __asm__ volatile(".insn r 0x73, 0, 0x31, x0, x0, x0" ::: "memory"); } /* hfence.gvma */
POSSIBLE fence_second_address(const void *p)
{
    __asm__ volatile(".insn r 0x73, 0, 0x31, x0, %0, x0" ::"r"((uint64_t)p >> 2) : "memory");
}

static void set_guest(uint64_t vmid)
{
    uint64_t hgatp = 8ul << 60 | vmid << 44 | number_of(second_root);
    __asm__ volatile("csrw 0x680, %0" ::"r"(hgatp) : "memory");
}

POSSIBLE touch_small(void) { touch_in_vs(atp(0), SMALL, PAGE, 4, 1); }

POSSIBLE cold(void) { touch_in_vs(atp(0), SMALL, PAGE, 8, 1); }
POSSIBLE large(void) { touch_in_vs(atp(0), LARGE, PAGE, 8, 1); }

/* VU-mode needs pages of its own. */
POSSIBLE window(void)
{
    root[2] |= PTE_U;
    for (int i = 0; i < ENTRIES; i++) small[i] |= PTE_U;
    touch_in_window(atp(0), SMALL, PAGE, 8, 1);
}

POSSIBLE fences(void)
{
    touch_small();
    fence(); /* of HS-mode's own translations */
    touch_small();
    fence_first();
    touch_small();
    fence_second();
    touch_small();
    set_guest(1);
    touch_small();
    fence_first(); /* of this VMID */
    set_guest(0);
    touch_small();
    fence_second_address(page);
    touch_small();
}

/* A fence that traps drops nothing. */
POSSIBLE traps(void)
{
    touch_small();
    __asm__ volatile("csrs 0x600, %0" ::"r"(HSTATUS_VTVM));
    fence_in_vs(atp(0));
    touch_small();
    __asm__ volatile("csrc 0x600, %0" ::"r"(HSTATUS_VTVM));
    fence_in_vs(atp(0));
    touch_small();
}

/* HS-mode loads as VS-mode would. */
POSSIBLE hypervisor_load(void)
{
    __asm__ volatile("csrs 0x600, %0" ::"r"(HSTATUS_SPVP));
    __asm__ volatile("csrw 0x280, %0\n .insn r 0x73, 4, 0x36, x0, %1, x0\n csrw 0x280, zero" /* hlv.d */
                     ::"r"(atp(0)), "r"(SMALL));
    touch_small();
}

void other_hart(long hart) { (void)hart; }

void first_hart(long hart)
{
    (void)hart;
    make_tables();
    second_root[0][2] = pte(number_of(second_1), PTE_V);
    second_1[1] = pte(number_of(second_0), PTE_V);
    for (uint64_t i = 0; i < ENTRIES; i++) second_0[i] = pte(PROGRAM + i, PTE_RWX_AD | PTE_U); /* all of VS is U to it */
    set_guest(0);
    CASE();
    shut_down();
}
