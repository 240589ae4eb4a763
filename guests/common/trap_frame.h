/* The registers of interrupted code, as `trap_entry` leaves them on its stack. For C and for assembler. */
#pragma once

#define FRAME_SEPC    (0 * 8) /* x0 needs no room: its place holds the program counter */
#define FRAME_X(n)    ((n) * 8)
#define FRAME_SSTATUS (32 * 8)
#define FRAME_BYTES   (34 * 8) /* a multiple of 16, as the ABI wants of sp */

#ifndef __ASSEMBLER__
#include <stdint.h>

struct trap_frame {
    union {
        uint64_t x[32]; /* x[n] is xn, but for x[0] */
        uint64_t sepc;
    };
    uint64_t sstatus;
    uint64_t padding;
};
_Static_assert(sizeof(struct trap_frame) == FRAME_BYTES, "known to the assembler");

#else

.macro FOR_EACH_REGISTER instruction /* all but x0 and sp */
    \instruction x1, FRAME_X(1)(sp)
    .irp n, 3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    \instruction x\n, FRAME_X(\n)(sp)
    .endr
.endm

/* Saves everything to a frame below sp, which then points to it. \extra: room above the frame that stays the caller's. */
.macro SAVE_FRAME extra=0
    addi sp, sp, -(FRAME_BYTES + \extra)
    FOR_EACH_REGISTER sd
    addi t0, sp, FRAME_BYTES + \extra
    sd t0, FRAME_X(2)(sp)
    csrr t0, sepc
    sd t0, FRAME_SEPC(sp)
    csrr t0, sstatus
    sd t0, FRAME_SSTATUS(sp)
.endm

/* Goes on where the frame at sp says. */
.macro RESTORE_FRAME_AND_RETURN extra=0
    ld t0, FRAME_SEPC(sp)
    csrw sepc, t0
    ld t0, FRAME_SSTATUS(sp)
    csrw sstatus, t0
    FOR_EACH_REGISTER ld
    addi sp, sp, FRAME_BYTES + \extra
    sret
.endm
#endif
