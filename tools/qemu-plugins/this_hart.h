/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which hart executes, for plugins that count by hart. */
#ifndef THIS_HART_H
#define THIS_HART_H

#include "qemu_internals.h"

static bool single_hart; /* the machine has one; set at installation */

/* QEMU's own index only serves with one hart (see qemu_internals.h). */
static inline unsigned this_hart(void)
{
    static __thread CPUState *seen;
    static __thread unsigned index;
    if (single_hart) return 0;
    if (__builtin_expect(seen != current_cpu, 0)) {
        for (index = 0; qemu_get_cpu((int)index) != current_cpu;) index++;
        seen = current_cpu;
    }
    return index;
}

#endif
