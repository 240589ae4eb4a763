/* void way_N(struct registers *registers, const void *code): loads all registers but two, goes to `code`, and when that comes to `arrived_N`, by a jump or by a trap, puts all back
 * into memory. Of the two one points to `registers` meanwhile, the other one to `code`, so neither is one that the instruction there names. The layout is that of fast.c. */

.option norelax
.option norvc

#include "callee_saved.h"

.macro WAY number, pointer, place
.global way_\number, arrived_\number
way_\number:
    la t0, saved
    FOR_CALLEE_SAVED sd
    mv x\pointer, a0
    mv x\place, a1
    .irp n, 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    .if \n != \pointer
    .if \n != \place
    ld x\n, (\n * 8)(x\pointer)
    .endif
    .endif
    .endr
    jr x\place
.balign 4
arrived_\number:
    .irp n, 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    sd x\n, (\n * 8)(x\pointer)
    .endr
    la t0, saved
    FOR_CALLEE_SAVED ld
    ret
.endm

.section .text.ways, "ax"
WAY 0, 31, 30
WAY 1, 29, 28
WAY 2, 27, 26

.section .bss
.balign 8
saved: .space 128
