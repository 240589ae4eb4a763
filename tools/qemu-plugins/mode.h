/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Privilege modes of a hart, and its registers. */
#ifndef MODE_H
#define MODE_H

#include <stdbool.h>
#include <stdint.h>

/* S is HS on a hart with the H extension. */
enum mode { MODE_M, MODE_S, MODE_U, MODE_VS, MODE_VU, MODES };

enum mode mode_of(unsigned privilege, bool virtual);
/* That of the hart that executes, by QEMU's register `priv`; `has_virtual`: it has the H extension. In a callback for a block that is being
   translated it is the block's. Ends QEMU if that doesn't tell V as QEMU 10.0 does. */
enum mode mode_now(void *priv, bool has_virtual);
/* The value of a register of the hart that executes, 0 of one that isn't there (NULL). */
uint64_t read_register(void *handle);

#endif
