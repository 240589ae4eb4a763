/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How many harts a machine may have: as many as the large build of the hypervisor has room for (crates/limits). */
#ifndef HARTS_H
#define HARTS_H

enum { MAX_HARTS = 64 };

#endif
