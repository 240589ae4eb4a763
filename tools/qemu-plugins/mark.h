/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The instructions by which a program marks windows: SLTI with rd and rs1 of x0, a HINT that the ISA leaves for custom use. It begins the window of the
   immediate's number, or ends that of its negative. */
#ifndef MARK_H
#define MARK_H

enum { MARK = 0x00002013, MARK_MASK = 0x000fffff };
enum { MAX_WINDOWS = 64, MAX_NUMBER = 1023 };

#endif
