/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The end of a run, to the instruction. Plugins that count stop their books there. */
#ifndef END_H
#define END_H

#include <stdbool.h>

#include "qemu_plugin_api.h"

/* The symbol that this needs and QEMU doesn't export, or NULL. */
const char *end_missing_symbol(void);

/* The machine has been told to stop: by the guest, by a plugin or from outside. Waits for the lock of QEMU's main
   thread if this thread doesn't hold it. */
bool end_was_asked(void);

/* Has `asked` called in the hart's thread once the guest has told the machine to stop: after the instruction that did,
   and before any other. */
void end_watch(struct qemu_plugin_tb *, void (*asked)(void));

#endif
