    // The code of the window (window.rs): its text is one template of `global_asm!`, so what is in braces is named there.

    // To the view of the kernel that SUM in `flags` asks for, if that is up to date; `temporary` is lost.
    .macro enter_view flags, temporary, usual, fence:vararg
    slli    \temporary, \flags, 63 - {SUM_SHIFT}
    bltz    \temporary, 11f
    ld      \temporary, {WALKED_KERNEL}(a0)
    beqz    \temporary, \usual
    csrw    satp, \temporary
    \fence
    j       12f
11: ld      \temporary, {WALKED_SUM}(a0)
    beqz    \temporary, \usual
    csrw    satp, \temporary
    \fence
12:
    .endm

    // One more that is told of in reports; `temporary` is lost.
    .macro count temporary
    ld      \temporary, {COUNT}(a0)
    addi    \temporary, \temporary, 1
    sd      \temporary, {COUNT}(a0)
    .endm

    // Goes on at sepc.
    .macro leave
    ld      t0, {T0}(a0)
    ld      t1, {T1}(a0)
    ld      t2, {T2}(a0)
    csrrw   a0, sscratch, a0
    sret
    .endm

    // Goes on behind the instruction.
    .macro finish
    csrr    t1, sepc
    addi    t1, t1, 4
    csrw    sepc, t1
    leave
    .endm

    // The hart's sstatus, t1, has a unit that was written to: so has the guest's, and that isn't forgotten, whatever becomes of the unit's state. t0 and t1 are lost.
    .macro note_units
    sd      t3, {T3}(a0)
    ld      t0, {SSTATUS}(a0)
    ld      t3, {LOADED}(a0)
    and     t1, t1, t3
    not     t3, t3
    and     t0, t0, t3
    or      t0, t0, t1
    ld      t3, {WRITTEN}(a0)
    or      t3, t3, t1
    sd      t3, {WRITTEN}(a0)
    li      t1, 1
    slli    t1, t1, 63
    or      t0, t0, t1
    sd      t0, {SSTATUS}(a0)
    ld      t3, {T3}(a0)
    .endm

    // What a general register of the guest has, into t0.
    .macro fetch number
    .if     \number == 5
    ld      t0, {T0}(a0)
    .elseif \number == 6
    ld      t0, {T1}(a0)
    .elseif \number == 7
    ld      t0, {T2}(a0)
    .elseif \number == 10
    csrr    t0, sscratch
    .else
    mv      t0, x\number
    .endif
    .endm

    // The other way round.
    .macro put_into number
    .if     \number == 5
    sd      t0, {T0}(a0)
    .elseif \number == 6
    sd      t0, {T1}(a0)
    .elseif \number == 7
    sd      t0, {T2}(a0)
    .elseif \number == 10
    csrw    sscratch, t0
    .else
    mv      x\number, t0
    .endif
    .endm

    // Goes to the handler of what is known to be at t0, by the stamp t1. If nothing is, goes on here.
    .macro go_to_known
    andi    t2, t0, ({PLACES} - 1) << 1
    slli    t2, t2, 4
    xor     t0, t0, t1
    add     t2, t2, a0
    ld      t1, {ENTRY_TAG}(t2)
    bne     t0, t1, 16f
17: lh      t1, {ENTRY_HANDLER}(t2)
    add     t1, t1, a0
    jr      t1
16: addi    t2, t2, {ENTRY_SIZE}
    ld      t1, {ENTRY_TAG}(t2)
    beq     t0, t1, 17b
    .endm

    // SUM alone, t0, which is t1 as well, is switched: to the view that has it so. Else goes on at `others`.
    .macro switch_sum walked, change, others, usual, fence:vararg
    lui     t0, 1 << ({SUM_SHIFT} - 12)
    bne     t0, t1, \others
    ld      t1, \walked(a0)
    beqz    t1, \usual
    csrw    satp, t1
    \fence
    ld      t1, {SSTATUS}(a0)
    \change  t1, t1, t0
    sd      t1, {SSTATUS}(a0)
    finish
    .endm

    // By the handler that is for all, as if its first three instructions had led here.
    .macro others_by_handler place
    csrr    t1, sstatus
    bgez    t1, 19f
    note_units
19: j       \place + 12
    .endm

    // The same twice: for harts that tell address spaces apart, and for those that forget all at each change.
    //
    // In the window of a vCPU its page is behind the code. While the guest runs, sscratch has the address of that, which is in a0 from here on.
    .macro window name, fence:vararg
    .balign 4096
    .global \name
\name:
    // A trap. sscratch is 0 if it is one of the hypervisor itself.
    csrrw   a0, sscratch, a0
    beqz    a0, \name\()_own
    sd      t0, {T0}(a0)
    sd      t1, {T1}(a0)
    sd      t2, {T2}(a0)
    csrr    t0, scause
    addi    t1, t0, -{BREAKPOINT}
    bnez    t1, \name\()_other
    // A breakpoint. What it stands for is in the place for its address, if it is known, and the guest is in its kernel.
    csrr    t0, sepc
    ld      t1, {STAMP}(a0)
    go_to_known
    // The usual way.
    .org    \name + {USUAL}
\name\()_usual:
    ld      t0, {T0}(a0)
    ld      t1, {T1}(a0)
    ld      t2, {T2}(a0)
    ld      a0, {KERNEL}(a0)
    csrw    satp, a0
    \fence
    ld      a0, {CONTEXT}(zero)
    for_all_but_a0 sd
    ld      t1, {TAKEN}(zero)
    jr      t1

    // To the guest, with its context in a0.
    .org    \name + {LEAVE}
    ld      t0, 10*8(a0)
    csrw    sscratch, t0
    for_all_but_a0 ld
    ld      a0, {WALKED}(zero)
    csrw    satp, a0
    \fence
    lla     a0, \name + {CODE}
    csrrw   a0, sscratch, a0
    sret

    // Reads memory of the guest: a0 is the address, a1 its satp, a2 what is set in sstatus for it, a4 is 0 for a doubleword and 1 for a halfword. The result is
    // in a1; a0 is 0, or 1 if there was a fault. Changes a3 and t0.
    .org    \name + {READ}
    csrrw   a3, satp, a1
    \fence
    csrs    sstatus, a2
    bnez    a4, 2f
1:  ld      a1, (a0)
    j       3f
2:  lhu     a1, (a0)
3:  li      a0, 0
4:  csrc    sstatus, a2
    csrw    satp, a3
    \fence
    ret

    // A trap of the hypervisor itself: the guest's memory was not there, or it is a bug.
\name\()_own:
    csrrw   a0, sscratch, a0
    csrr    a0, sepc
    lla     t0, 1b
    beq     a0, t0, 5f
    lla     t0, 2b
    beq     a0, t0, 5f
    ld      t0, {BUG}(zero)
    jr      t0
5:  li      a0, 1
    j       4b

    // No breakpoint.
\name\()_other:
    addi    t1, t0, -{CALL}
    beqz    t1, \name\()_call
    bltz    t0, \name\()_interrupt
    j       \name\()_usual

    // The instruction has been carried out, and the one behind it was known, and is a breakpoint perhaps: so it is carried out likewise, if it is known still.
\name\()_go_on:
    csrr    t0, sepc
    ld      t1, {STAMP}(a0)
    addi    t0, t0, 4
    csrw    sepc, t0
    go_to_known
    leave

    // From here on t2 is as far from the start of the entry as a0 is from that of all entries. Who needs t3 and t4 saves them, and has them back before `set` and `_usual`, and not lost
    // before `get_source`.

    // A program's register into t0, by its number there; t1 is lost.
    .macro get_source
    lbu     t0, {ENTRY_SOURCE}(t2)
    add     t0, t0, a0
    jalr    t1, {GET}(t0)
    .endm

    // The target of the instruction is to become t0, and the guest goes on behind it.
    .macro set
    lbu     t1, {ENTRY_TARGET}(t2)
    add     t1, t1, a0
    jr      {PUT}(t1)
    .endm

    // In t1 is the hart's sstatus. If it has seen a unit written since the guest's was looked at, that becomes known first; then the handler goes on behind its first three instructions, which
    // are these. (A branch doesn't reach that from everywhere.)
    .macro know_units
    csrr    t1, sstatus
    bgez    t1, 19f
    j       \name\()_know_units
19:
    .endm

    .org    \name + {SWAP}
    get_source
    ld      t1, {SSCRATCH}(a0)
    sd      t0, {SSCRATCH}(a0)
    mv      t0, t1
    set

    .org    \name + {READ_STATUS}
    know_units
    ld      t0, {SSTATUS}(a0)
    set

    // SIE alone is switched on: is there an interrupt?
    .org    \name + {ENABLE}
    know_units
    ld      t0, {LINES}(a0)
    ld      t1, {SIE}(a0)
    and     t0, t0, t1
    bnez    t0, \name\()_usual
    ld      t0, {SSTATUS}(a0)
    ori     t1, t0, {SIE_BIT}
    sd      t1, {SSTATUS}(a0)
    set

    // The same where nobody wants to know what it was.
    .org    \name + {ENABLE_ONLY}
\name\()_enable:
    ld      t0, {LINES}(a0)
    ld      t1, {SIE}(a0)
    and     t0, t0, t1
    bnez    t0, \name\()_usual
    ld      t0, {SSTATUS}(a0)
    ori     t0, t0, {SIE_BIT}
    sd      t0, {SSTATUS}(a0)
\name\()_done:
    finish

    .org    \name + {STATUS_SET}
    know_units
    get_source
    sd      t3, {T3}(a0)
    ld      t3, {SSTATUS}(a0)
    or      t0, t0, t3
    j       \name\()_status

    .org    \name + {STATUS_CLEAR}
    know_units
    get_source
    sd      t3, {T3}(a0)
    ld      t3, {SSTATUS}(a0)
    not     t0, t0
    and     t0, t0, t3
    j       \name\()_status

    .org    \name + {STATUS_WRITE}
    know_units
    get_source
    sd      t3, {T3}(a0)
    ld      t3, {SSTATUS}(a0)

    // sstatus is to become t0, and was t3. Until the first thing of it is changed the way to _usual is open.
\name\()_status:
    ld      t1, {CHANGES}(a0)
    xor     t0, t0, t3
    and     t0, t0, t1
    andi    t1, t0, {SIE_BIT}
    bnez    t1, 6f
7:  srli    t1, t0, {UNITS_SHIFT}
    xor     t0, t0, t3
    bnez    t1, 8f
5:  lbu     t1, {ENTRY_TARGET}(t2)
    lbu     t2, {ENTRY_HANDLER}(t2)
    sd      t0, {SSTATUS}(a0)
    add     t1, t1, a0
    andi    t2, t2, {GOES_ON}
    mv      t0, t3
    ld      t3, {T3}(a0)
    bnez    t2, 13f
    jr      {PUT}(t1)
13: jr      {PUT_ON}(t1)

    // Interrupts are switched off, or on: is there one?
6:  and     t1, t1, t3
    bnez    t1, 7b
    sd      t4, {T4}(a0)
    ld      t1, {LINES}(a0)
    ld      t4, {SIE}(a0)
    and     t1, t1, t4
    ld      t4, {T4}(a0)
    beqz    t1, 7b
\name\()_usual_with_t3:
    ld      t3, {T3}(a0)
    j       \name\()_usual

    // Units, or what is above these: the view.
8:  srli    t1, t1, {SUM_SHIFT} - {UNITS_SHIFT}
    bnez    t1, 9f
    // Units have another state. SD is on if both bits of one are.
10: srli    t1, t0, 1
    slli    t0, t0, 1
    srli    t0, t0, 1
    and     t1, t1, t0
    srli    t1, t1, {UNITS_SHIFT}
    andi    t1, t1, {BOTH_MASK}
    beqz    t1, 12f
    li      t1, 1
    slli    t1, t1, 63
    or      t0, t0, t1
12: ld      t1, {LOADED}(a0)
    beqz    t1, 5b
    // Those that are loaded have it in the hart as well.
    csrc    sstatus, t1
    and     t1, t1, t0
    csrs    sstatus, t1
    j       5b

    // Not MXR.
9:  addi    t1, t1, -1
    bnez    t1, \name\()_usual_with_t3
    // SUM changes, and so does the view.
    enter_view t0, t1, \name\()_usual_with_t3, \fence
    xor     t1, t0, t3
    srli    t1, t1, {UNITS_SHIFT}
    andi    t1, t1, {UNITS_MASK}
    beqz    t1, 5b
    j       10b

\name\()_know_units:
    note_units
    lh      t0, {ENTRY_HANDLER}(t2)
    add     t0, t0, a0
    jr      12(t0)

    // Bits of sstatus are to be set: t0, of which t1 aren't yet. One alone is for each of the two that are switched most.
\name\()_set:
    and     t1, t0, t1
    beqz    t1, \name\()_done
    addi    t0, t1, -{SIE_BIT}
    beqz    t0, \name\()_enable
    switch_sum {WALKED_SUM}, or, \name\()_set_others, \name\()_usual, \fence
\name\()_set_others:
    others_by_handler \name + {STATUS_SET}

    // Likewise cleared: t0, of which t1 are set.
\name\()_clear:
    beqz    t1, \name\()_done
    switch_sum {WALKED_KERNEL}, xor, \name\()_clear_others, \name\()_usual, \fence
\name\()_clear_others:
    others_by_handler \name + {STATUS_CLEAR}

    // The guest's timer: one that is due at once goes the usual way.
    .org    \name + {WRITE_TIMER}
    get_source
    csrr    t1, time
    bgeu    t1, t0, \name\()_usual
    ld      t1, {LINES}(a0)
    sd      t0, {DEADLINE}(a0)
    andi    t1, t1, ~{TIMER_BIT}
    ld      t2, {SIE}(a0)
    sd      t1, {LINES}(a0)
    ld      t1, {ALARM}(a0)
    andi    t2, t2, {TIMER_BIT}
    beqz    t2, 13f
    bgeu    t0, t1, 13f
    mv      t1, t0
13: csrw    {STIMECMP}, t1
    j       \name\()_done

    // A software interrupt is taken back.
    .org    \name + {CLEAR_PENDING}
    get_source
    ld      t1, {LINES}(a0)
    andi    t0, t0, {SOFTWARE_BIT}
    not     t0, t0
    and     t1, t1, t0
    sd      t1, {LINES}(a0)
    j       \name\()_done

    .org    \name + {CLEAR_PENDING_NUMBER}
    ld      t1, {LINES}(a0)
    andi    t1, t1, ~{SOFTWARE_BIT}
    sd      t1, {LINES}(a0)
    j       \name\()_done

\name\()_leave:
    count   t1
    leave

    // A software interrupt of its own: it is there at once, if it may be.
    .org    \name + {SET_PENDING}
    get_source
    andi    t0, t0, {SOFTWARE_BIT}
    beqz    t0, \name\()_done
    .org    \name + {SET_PENDING_NUMBER}
    ld      t0, {LINES}(a0)
    ld      t1, {SIE}(a0)
    ld      t2, {SSTATUS}(a0)
    ori     t0, t0, {SOFTWARE_BIT}
    and     t1, t1, t0
    andi    t2, t2, {SIE_BIT}
    beqz    t1, 18f
    beqz    t2, 18f
    addi    t1, t1, -{SOFTWARE_BIT}
    // Another interrupt is due as well.
    bnez    t1, \name\()_usual
    sd      t0, {LINES}(a0)
    ld      t1, {STVEC}(a0)
    csrr    t0, sepc
    andi    t2, t1, 1
    andi    t1, t1, -4
    slli    t2, t2, 2
    add     t1, t1, t2
    addi    t0, t0, 4
    csrw    sepc, t1
    sd      t0, {SEPC}(a0)
    ld      t1, {SSTATUS}(a0)
    li      t0, 1
    slli    t0, t0, 63
    addi    t0, t0, {SOFTWARE}
    andi    t1, t1, ~{SIE_BIT}
    sd      t0, {SCAUSE}(a0)
    ori     t1, t1, {SPIE_BIT} | {SPP_BIT}
    sd      zero, {STVAL}(a0)
    sd      t1, {SSTATUS}(a0)
    j       \name\()_leave
18: sd      t0, {LINES}(a0)
    j       \name\()_done

    .org    \name + {RETURN}
    ld      t1, {WATCHES}(a0)
    ld      t2, {SSTATUS}(a0)
    bnez    t1, \name\()_usual
    andi    t1, t2, {SPIE_BIT}
    andi    t0, t2, ~({SIE_BIT} | {SPP_BIT})
    srli    t1, t1, 4
    ori     t0, t0, {SPIE_BIT}
    or      t0, t0, t1
    andi    t2, t2, {SPP_BIT}
    beqz    t2, 14f
    // To the kernel.
    beqz    t1, 15f
    ld      t1, {LINES}(a0)
    ld      t2, {SIE}(a0)
    and     t1, t1, t2
    bnez    t1, \name\()_usual
    j       15f
    // To a program, which takes each interrupt.
14: ld      t1, {LINES}(a0)
    ld      t2, {SIE}(a0)
    and     t1, t1, t2
    bnez    t1, \name\()_usual
    ld      t1, {WALKED_USER}(a0)
    beqz    t1, \name\()_usual
    csrw    satp, t1
    \fence
    sd      zero, {STAMP}(a0)
    sb      zero, {PRIVILEGE}(a0)
    ld      t1, {COUNTERS_USER}(a0)
    ld      t2, {ENVIRONMENT_USER}(a0)
    csrw    scounteren, t1
    csrw    senvcfg, t2
15: ld      t1, {SEPC}(a0)
    sd      t0, {SSTATUS}(a0)
    csrw    sepc, t1
    count   t1
    leave

    // The hart's timer, before the core's alarm: the vCPU's timer is due.
\name\()_interrupt:
    // Where the firmware sets it, the vCPU's timer is looked at as it is entered.
    .if     {IS_FIRMWARES}
    j       \name\()_usual
    .endif
    slli    t0, t0, 1
    addi    t0, t0, -2 * {TIMER}
    bnez    t0, \name\()_usual
    ld      t1, {WATCHES}(a0)
    csrr    t0, time
    bnez    t1, \name\()_usual
    ld      t1, {ALARM}(a0)
    ld      t2, {DEADLINE}(a0)
    bgeu    t0, t1, \name\()_usual
    bltu    t0, t2, \name\()_usual
    ld      t0, {SIE}(a0)
    andi    t2, t0, {TIMER_BIT}
    beqz    t2, \name\()_usual
    ld      t2, {LINES}(a0)
    csrw    {STIMECMP}, t1
    ori     t2, t2, {TIMER_BIT}
    sd      t2, {LINES}(a0)
    and     t2, t2, t0
    addi    t2, t2, -{TIMER_BIT}
    // Another interrupt goes first.
    bnez    t2, \name\()_usual
    ld      t0, {STVEC}(a0)
    lbu     t1, {PRIVILEGE}(a0)
    andi    t2, t0, 1
    andi    t0, t0, -4
    beqz    t2, 16f
    addi    t0, t0, 4 * {TIMER}
16: beqz    t1, \name\()_to_kernel
    ld      t1, {SSTATUS}(a0)
    andi    t2, t1, {SIE_BIT}
    // It has interrupts off: this one waits.
    beqz    t2, \name\()_leave
    csrr    t2, sepc
    csrw    sepc, t0
    andi    t1, t1, ~{SIE_BIT}
    ori     t1, t1, {SPIE_BIT} | {SPP_BIT}
    sd      t2, {SEPC}(a0)
    sd      t1, {SSTATUS}(a0)
    csrr    t1, scause
    sd      zero, {STVAL}(a0)
    sd      t1, {SCAUSE}(a0)
    j       \name\()_leave

    // ECALL: that of a program is its kernel's to answer.
\name\()_call:
    lbu     t1, {PRIVILEGE}(a0)
    lbu     t2, {WATCHES_TRAPS}(a0)
    or      t1, t1, t2
    bnez    t1, \name\()_usual
    ld      t0, {STVEC}(a0)
    andi    t0, t0, -4
    beqz    t0, \name\()_usual
    // A program's trap, with the cause that the hart has for it: its kernel goes on at t0.
\name\()_to_kernel:
    ld      t1, {SSTATUS}(a0)
    enter_view t1, t2, \name\()_usual, \fence
    csrr    t2, sepc
    csrw    sepc, t0
    sd      t2, {SEPC}(a0)
    andi    t0, t1, ~({SIE_BIT} | {SPIE_BIT} | {SPP_BIT})
    andi    t1, t1, {SIE_BIT}
    slli    t1, t1, 4
    csrr    t2, scause
    or      t0, t0, t1
    sd      t2, {SCAUSE}(a0)
    sd      t0, {SSTATUS}(a0)
    sd      zero, {STVAL}(a0)
    li      t1, 1
    sb      t1, {PRIVILEGE}(a0)
    ld      t2, {STAMP_OF_KERNEL}(a0)
    ld      t1, {COUNTERS_KERNEL}(a0)
    sd      t2, {STAMP}(a0)
    ld      t2, {ENVIRONMENT_KERNEL}(a0)
    csrw    scounteren, t1
    csrw    senvcfg, t2
    count   t1
    leave

    // satp is to become t0, and what is known of address spaces is looked for at t1: that of the kernel there, as it is without SUM.
\name\()_space:
    slli    t1, t1, 5
    add     t1, t1, a0
    ld      t2, {SPACE_SATP}(t1)
    bne     t2, t0, \name\()_usual
    ld      t2, {SSTATUS}(a0)
    slli    t2, t2, 63 - {SUM_SHIFT}
    bltz    t2, \name\()_usual
    ld      t2, {SPACE_KERNEL}(t1)
    beqz    t2, \name\()_usual
    csrw    satp, t2
    \fence
    sd      t2, {WALKED_KERNEL}(a0)
    ld      t2, {SPACE_USER}(t1)
    ld      t1, {SPACE_SUM}(t1)
    sd      t2, {WALKED_USER}(a0)
    sd      t1, {WALKED_SUM}(a0)
    sd      t0, {SATP}(a0)
    finish

    // By number: `get_source` and `set` come here.
    .macro get number, unused:vararg
    fetch   \number
    jr      t1
    .endm
    .macro put number, unused:vararg
    put_into \number
    j       \name\()_done
    .endm
    .macro put_on number, unused:vararg
    put_into \number
    j       \name\()_go_on
    .endm

    // For each general register, at places that are so far apart.
    .macro family what, place, width, arguments:vararg
    .irp number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
    .org    \name + \place + (\number << \width)
    \what   \number, \arguments
    .endr
    .endm

    .macro read number, register, next
    .if     \number == 5 || \number == 6 || \number == 7 || \number == 10
    ld      t0, \register(a0)
    put_into \number
    .else
    ld      x\number, \register(a0)
    .endif
    j       \name\()_\next
    .endm

    .macro write number, register
    .if     \number == 5 || \number == 6 || \number == 7 || \number == 10
    fetch   \number
    sd      t0, \register(a0)
    .else
    sd      x\number, \register(a0)
    .endif
    j       \name\()_done
    .endm

    // The lowest bit of an address is 0.
    .macro write_pc number, unused:vararg
    fetch   \number
    andi    t0, t0, -2
    sd      t0, {SEPC}(a0)
    j       \name\()_done
    .endm

    // Not of those that aren't in their places: these have handlers that are for all.
    .macro swap_same number, unused:vararg
    .if     \number != 5 && \number != 6 && \number != 7 && \number != 10
    ld      t0, {SSCRATCH}(a0)
    sd      x\number, {SSCRATCH}(a0)
    mv      x\number, t0
    j       \name\()_done
    .endif
    .endm

    .macro set_status number, unused:vararg
    fetch   \number
    ld      t1, {SSTATUS}(a0)
    not     t1, t1
    j       \name\()_set
    .endm

    .macro clear_status number, unused:vararg
    fetch   \number
    ld      t1, {SSTATUS}(a0)
    and     t1, t0, t1
    j       \name\()_clear
    .endm

    .macro enter_space number, unused:vararg
    fetch   \number
    srli    t1, t0, {ASID_SHIFT}
    andi    t1, t1, {SPACES} - 1
    j       \name\()_space
    .endm

    .macro disable_into number, unused:vararg
    know_units
    .if     \number == 0 || \number == 5 || \number == 6 || \number == 7 || \number == 10
    ld      t0, {SSTATUS}(a0)
    put_into \number
    andi    t1, t0, ~{SIE_BIT}
    .else
    ld      x\number, {SSTATUS}(a0)
    andi    t1, x\number, ~{SIE_BIT}
    .endif
    sd      t1, {SSTATUS}(a0)
    finish
    .endm

    family  read, {READ_FAMILY}, 4, {SSCRATCH}, done
    family  read, {READ_FAMILY}+0x200, 4, {SEPC}, done
    family  read, {READ_FAMILY}+0x400, 4, {SCAUSE}, done
    family  read, {READ_FAMILY}+0x600, 4, {STVAL}, done
    family  read, {READ_ON_FAMILY}, 4, {SSCRATCH}, go_on
    family  read, {READ_ON_FAMILY}+0x200, 4, {SEPC}, go_on
    family  read, {READ_ON_FAMILY}+0x400, 4, {SCAUSE}, go_on
    family  read, {READ_ON_FAMILY}+0x600, 4, {STVAL}, go_on
    family  write, {WRITE_FAMILY}, 4, {SSCRATCH}
    family  write_pc, {WRITE_FAMILY}+0x200, 4
    family  write, {WRITE_FAMILY}+0x400, 4, {SCAUSE}
    family  write, {WRITE_FAMILY}+0x600, 4, {STVAL}
    family  swap_same, {SWAP_SAME_FAMILY}, 4
    family  set_status, {SET_FAMILY}, 4
    family  clear_status, {CLEAR_FAMILY}, 4
    family  enter_space, {SPACE_FAMILY}, 4
    family  disable_into, {DISABLE_INTO_FAMILY}, 6
    family  get, {GET_PLACE}, 3
    family  put, {PUT_PLACE}, 3
    family  put_on, {PUT_ON_PLACE}, 3
    .irp    what, set, know_units, get_source, get, put, put_on, family, read, write, write_pc, swap_same, set_status, clear_status, enter_space, disable_into
    .purgem \what
    .endr
    .org    \name + {CODE}
    .endm

    .section .text.trap, "ax"
    .option push
    .option norelax
    .option norvc
    window  window_tagged
    window  window_untagged, sfence.vma zero, zero
    .option pop
