/* The trap entry of programs without an operating system. An RTOS brings a `trap_entry` of its own. */
#include "trap_frame.h"

.section .text.trap_entry, "ax"
.balign 4
.weak trap_entry
trap_entry:
    SAVE_FRAME
    mv a0, sp
    csrr a1, scause
    call handle_trap
    RESTORE_FRAME_AND_RETURN
