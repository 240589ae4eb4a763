/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The instructions that translation depends on. */
#include "tlb.h"

enum { SYSTEM = 0x73, SATP = 0x180, VSATP = 0x280, HGATP = 0x680 };

/* Those of Svinval are taken for the fences that they are parts of: the translations are gone by the end of the sequence,
   and nothing else should be executed in between. */
bool is_fence(uint32_t insn, enum fence_kind *kind)
{
    if ((insn & 0x7fff) != SYSTEM) return false; /* funct3 and rd are 0 */
    switch (insn >> 25) {
    case 0x09: /* SFENCE.VMA */
    case 0x0b: /* SINVAL.VMA */
        *kind = SFENCE_VMA;
        return true;
    case 0x11: /* HFENCE.VVMA */
    case 0x13: /* HINVAL.VVMA */
        *kind = HFENCE_VVMA;
        return true;
    case 0x31: /* HFENCE.GVMA */
    case 0x33: /* HINVAL.GVMA */
        *kind = HFENCE_GVMA;
        return true;
    }
    return false;
}

bool writes_translation(uint32_t insn)
{
    uint32_t csr = insn >> 20;
    bool accesses_csr = (insn & 0x7f) == SYSTEM && (insn >> 12 & 3) != 0;
    return accesses_csr && (csr == SATP || csr == VSATP || csr == HGATP);
}
