//! The window: the one page of the hypervisor that is in all tables that a hart walks, at the same place in a vCPU's as in the hypervisor's own. In it the hart changes from
//! the one to the other. A guest, in U-mode, can't reach it.
//!
//! Where it is, each vCPU may choose among the entries of a root for the upper half of addresses: in one that its guest doesn't use. It is at the beginning of what that entry covers, which
//! depends on the format of the guest's tables.
use alloc::boxed::Box;
use core::arch::global_asm;
use core::cell::UnsafeCell;
use core::mem::offset_of;

use ainori_limits::PAGE;
use ainori_limits::cause::{exception, interrupt};
use ainori_supervisor::Supervisor;

use super::page::{Entry, Fast, PLACES, Page, TRAPS_PLACE, WAYS};
use super::per_hart::{AT, PerHart};
use super::senvcfg;
use crate::arch::riscv::csr::{self, status};

const ENTRIES: usize = 512;
/// Bytes of it: the code, and the [page](Page) of a vCPU.
pub(super) const SIZE: u64 = PAGE + size_of::<Page>() as u64;
/// Where in the window the usual way of a trap goes on, where the way to a guest begins, and where a guest's memory is read. A trap is taken at its first byte.
const USUAL: u64 = 0x30;
pub(super) const LEAVE: u64 = 0x100;
pub(super) const READ: u64 = 0x1c0;

/// Where the handlers of the [fast path](super::fast) are.
mod handler {
    pub(super) const READ_REGISTER: u64 = 0x2a0;
    pub(super) const WRITE_REGISTER: u64 = 0x2c0;
    pub(super) const WRITE_PC: u64 = 0x2f0;
    pub(super) const SWAP: u64 = 0x310;
    pub(super) const READ_STATUS: u64 = 0x340;
    pub(super) const DISABLE: u64 = 0x360;
    pub(super) const ENABLE: u64 = 0x380;
    pub(super) const STATUS_SET: u64 = 0x3b0;
    pub(super) const STATUS_CLEAR: u64 = 0x3e0;
    pub(super) const STATUS_WRITE: u64 = 0x410;
    pub(super) const WRITE_TIMER: u64 = 0x5b0;
    pub(super) const CLEAR_PENDING: u64 = 0x600;
    pub(super) const CLEAR_PENDING_NUMBER: u64 = 0x630;
    pub(super) const SET_PENDING: u64 = 0x670;
    pub(super) const SET_PENDING_NUMBER: u64 = 0x684;
    pub(super) const RETURN: u64 = 0x720;
}

/// They, from the address that the fast path has in `a0`, in the order of their numbers there. The first is the usual way.
pub(super) const HANDLERS: [i16; 17] = [
    from_base(USUAL),
    from_base(handler::READ_REGISTER),
    from_base(handler::WRITE_REGISTER),
    from_base(handler::WRITE_PC),
    from_base(handler::SWAP),
    from_base(handler::STATUS_SET),
    from_base(handler::STATUS_CLEAR),
    from_base(handler::STATUS_WRITE),
    from_base(handler::DISABLE),
    from_base(handler::ENABLE),
    from_base(handler::RETURN),
    from_base(handler::READ_STATUS),
    from_base(handler::WRITE_TIMER),
    from_base(handler::CLEAR_PENDING),
    from_base(handler::CLEAR_PENDING_NUMBER),
    from_base(handler::SET_PENDING),
    from_base(handler::SET_PENDING_NUMBER),
];

/// Where the code is that reads and writes a general register of the guest by its number: 8 bytes for each.
const GET_PLACE: u64 = 0xe00;
const PUT_PLACE: u64 = 0xf00;

/// The third instruction of the entry makes the address that the fast path has in `a0`: of the page behind it, and 8 bytes more.
const BASE: u64 = PAGE + 8;

const fn from_base(place: u64) -> i16 {
    place as i16 - BASE as i16
}

const fn of_registers(offset: usize) -> i64 {
    offset as i64 - 8
}

const fn of_fast(offset: usize) -> i64 {
    of_registers(offset_of!(Page, fast) + offset)
}

const fn of_entry(offset: usize) -> i64 {
    of_registers(offset_of!(Page, entries) + offset)
}

const _: () = assert!(
    offset_of!(Page, registers) == 0
        && offset_of!(Page, entries) < 2048 - size_of::<Entry>()
        && size_of::<Entry>() == 16
        && PLACES == 512
        && WAYS == 2
);

#[repr(C, align(4096))]
struct Table(UnsafeCell<[u64; ENTRIES]>);

// SAFETY: they are written once, by the hart that boots, before others run.
unsafe impl Sync for Table {}

/// The formats of tables that an entry of a root leads to the window in: so many levels less one.
pub(super) const FORMATS: usize = 3;

static UPPER: Table = Table(UnsafeCell::new([0; ENTRIES]));
static MIDDLE: Table = Table(UnsafeCell::new([0; ENTRIES]));
static LEAVES: Table = Table(UnsafeCell::new([0; ENTRIES]));

global_asm!(
    include_str!("../riscv/all_but_a0.S"),
    r#"
    // To the view of the kernel that SUM in `flags` asks for, if that is up to date; `temporary` is lost.
    .macro enter_view flags, temporary, usual, fence:vararg
    slli    \temporary, \flags, 63 - {SUM_SHIFT}
    bltz    \temporary, 11f
    ld      \temporary, {WALKED_KERNEL}(a0)
    beqz    \temporary, \usual
    csrw    satp, \temporary
    \fence
    li      \temporary, 1
    j       12f
11: ld      \temporary, {WALKED_SUM}(a0)
    beqz    \temporary, \usual
    csrw    satp, \temporary
    \fence
    li      \temporary, 2
12: sd      \temporary, {VIEW}(a0)
    .endm

    // The same twice: for harts that tell address spaces apart, and for those that forget all at each change.
    //
    // In the window of a vCPU its page is behind the code: `a0` is made to be 8 bytes behind the start of that, so all places are less 8.
    .macro window name, fence:vararg
    .balign 4096
    .global \name
\name:
    // A trap. sscratch has the hypervisor's satp, or 0 if it is one of the hypervisor itself.
    csrrw   a0, sscratch, a0
    beqz    a0, \name\()_own
    auipc   a0, 1
    sd      t0, {T0}(a0)
    sd      t1, {T1}(a0)
    sd      t2, {T2}(a0)
    csrr    t0, scause
    addi    t1, t0, -{BREAKPOINT}
    beqz    t1, \name\()_breakpoint
    addi    t1, t0, -{CALL}
    beqz    t1, \name\()_call
    bltz    t0, \name\()_interrupt
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
    csrrw   a0, satp, a0
    \fence
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

    // A breakpoint. What it stands for is in the place for its address, if it is known, and the guest is in its kernel.
\name\()_breakpoint:
    csrr    t0, sepc
    ld      t1, {STAMP}(a0)
    andi    t2, t0, ({PLACES} - 1) << 1
    slli    t2, t2, 4
    add     t2, t2, a0
    xor     t1, t1, t0
    ld      t0, {ENTRY_TAG}(t2)
    beq     t0, t1, 16f
    addi    t2, t2, {ENTRY_SIZE}
    ld      t0, {ENTRY_TAG}(t2)
    bne     t0, t1, \name\()_usual
16: lh      t0, {ENTRY_HANDLER}(t2)
    add     t0, t0, a0
    jr      t0

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

    // In t1 is the hart's sstatus. If it has seen a unit written since the guest's was looked at, that becomes known first; then the handler goes on behind its first two instructions, this one and
    // the one before.
    .macro know_units
    csrr    t1, sstatus
    bltz    t1, \name\()_know_units
    .endm

    .org    \name + {READ_REGISTER}
    lbu     t0, {ENTRY_SOURCE}(t2)
    add     t0, t0, a0
    ld      t0, -8(t0)
    set

    .org    \name + {WRITE_REGISTER}
    get_source
    lbu     t1, {ENTRY_TARGET}(t2)
    add     t1, t1, a0
    sd      t0, -8(t1)
    j       \name\()_done

    .org    \name + {WRITE_PC}
    get_source
    andi    t0, t0, -2
    sd      t0, {SEPC}(a0)
    j       \name\()_done

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

    // SIE alone is switched off.
    .org    \name + {DISABLE}
    know_units
    ld      t0, {SSTATUS}(a0)
    andi    t1, t0, ~{SIE_BIT}
    sd      t1, {SSTATUS}(a0)
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
    and     t1, t1, t0
    xor     t0, t1, t3
    and     t1, t1, t0
    andi    t1, t1, {SIE_BIT}
    bnez    t1, 6f
7:  xor     t1, t0, t3
    srli    t1, t1, {UNITS_SHIFT}
    bnez    t1, 8f
5:  sd      t0, {SSTATUS}(a0)
    lbu     t1, {ENTRY_TARGET}(t2)
    mv      t0, t3
    ld      t3, {T3}(a0)
    beqz    t1, \name\()_done
    add     t1, t1, a0
    jr      {PUT}(t1)

    // Interrupts are switched on: is there one?
6:  sd      t4, {T4}(a0)
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
    // Those that are loaded have it in the hart as well; and what has been written to their registers isn't forgotten.
    sd      t4, {T4}(a0)
    csrr    t4, sstatus
    and     t4, t4, t1
    csrc    sstatus, t1
    and     t1, t1, t0
    csrs    sstatus, t1
    ld      t1, {WRITTEN}(a0)
    or      t1, t1, t4
    sd      t1, {WRITTEN}(a0)
    ld      t4, {T4}(a0)
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
    sd      t3, {T3}(a0)
    ld      t0, {SSTATUS}(a0)
    ld      t3, {LOADED}(a0)
    xor     t1, t1, t0
    and     t1, t1, t3
    or      t0, t0, t1
    li      t1, 1
    slli    t1, t1, 63
    or      t0, t0, t1
    sd      t0, {SSTATUS}(a0)
    ld      t3, {T3}(a0)
    lh      t0, {ENTRY_HANDLER}(t2)
    add     t0, t0, a0
    jr      8(t0)

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
    // Goes on behind the instruction.
\name\()_done:
    csrr    t1, sepc
    addi    t1, t1, 4
    csrw    sepc, t1
    // Goes on at sepc.
\name\()_leave:
    ld      t1, {COUNT}(a0)
    addi    t1, t1, 1
    sd      t1, {COUNT}(a0)
    ld      t0, {T0}(a0)
    ld      t1, {T1}(a0)
    ld      t2, {T2}(a0)
    ld      a0, {KERNEL}(a0)
    csrrw   a0, sscratch, a0
    sret

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
    sd      zero, {VIEW}(a0)
    sd      zero, {STAMP}(a0)
    sb      zero, {PRIVILEGE}(a0)
    ld      t1, {COUNTERS_USER}(a0)
    ld      t2, {ENVIRONMENT_USER}(a0)
    csrw    scounteren, t1
    csrw    senvcfg, t2
15: ld      t1, {SEPC}(a0)
    sd      t0, {SSTATUS}(a0)
    csrw    sepc, t1
    j       \name\()_leave

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
    j       \name\()_leave

    // By number: `get_source` and `set` come here.
    .macro get number
    mv      t0, x\number
    jr      t1
    .endm
    .macro get_saved place
    ld      t0, \place(a0)
    jr      t1
    .endm
    .org    \name + {GET_PLACE}
    .irp    number, 0, 1, 2, 3, 4
    get     \number
    .endr
    get_saved {T0}
    get_saved {T1}
    get_saved {T2}
    get     8
    get     9
    csrr    t0, sscratch
    jr      t1
    .irp    number, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
    get     \number
    .endr

    .macro put number
    mv      x\number, t0
    j       \name\()_done
    .endm
    .macro put_saved place
    sd      t0, \place(a0)
    j       \name\()_done
    .endm
    .org    \name + {PUT_PLACE}
    .irp    number, 0, 1, 2, 3, 4
    put     \number
    .endr
    put_saved {T0}
    put_saved {T1}
    put_saved {T2}
    put     8
    put     9
    csrw    sscratch, t0
    j       \name\()_done
    .irp    number, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
    put     \number
    .endr
    .purgem set
    .purgem know_units
    .purgem get_source
    .purgem get
    .purgem get_saved
    .purgem put
    .purgem put_saved
    .org    \name + 4096
    .endm

    .section .text.trap, "ax"
    .option push
    .option norelax
    .option norvc
    window  window_tagged
    window  window_untagged, sfence.vma zero, zero
    .option pop
    "#,
    USUAL = const USUAL,
    LEAVE = const LEAVE,
    READ = const READ,
    READ_REGISTER = const handler::READ_REGISTER,
    WRITE_REGISTER = const handler::WRITE_REGISTER,
    WRITE_PC = const handler::WRITE_PC,
    SWAP = const handler::SWAP,
    READ_STATUS = const handler::READ_STATUS,
    DISABLE = const handler::DISABLE,
    ENABLE = const handler::ENABLE,
    STATUS_SET = const handler::STATUS_SET,
    STATUS_CLEAR = const handler::STATUS_CLEAR,
    STATUS_WRITE = const handler::STATUS_WRITE,
    WRITE_TIMER = const handler::WRITE_TIMER,
    CLEAR_PENDING = const handler::CLEAR_PENDING,
    CLEAR_PENDING_NUMBER = const handler::CLEAR_PENDING_NUMBER,
    SET_PENDING = const handler::SET_PENDING,
    SET_PENDING_NUMBER = const handler::SET_PENDING_NUMBER,
    RETURN = const handler::RETURN,
    GET_PLACE = const GET_PLACE,
    PUT_PLACE = const PUT_PLACE,
    GET = const from_base(GET_PLACE),
    PUT = const from_base(PUT_PLACE),
    ENTRY_TAG = const of_entry(offset_of!(Entry, tag)),
    ENTRY_SIZE = const size_of::<Entry>(),
    ENTRY_HANDLER = const of_entry(offset_of!(Entry, handler)),
    ENTRY_SOURCE = const of_entry(offset_of!(Entry, source)),
    ENTRY_TARGET = const of_entry(offset_of!(Entry, target)),
    UNITS_SHIFT = const status::VS.trailing_zeros(),
    BOTH_MASK = const (status::FS & status::FS << 1 | status::VS & status::VS << 1) >> 1 >> status::VS.trailing_zeros(),
    UNITS_MASK = const (status::FS | status::VS) >> status::VS.trailing_zeros(),
    LOADED = const of_fast(offset_of!(Fast, loaded)),
    WRITTEN = const of_fast(offset_of!(Fast, written)),
    ALARM = const of_fast(offset_of!(Fast, alarm)),
    IS_FIRMWARES = const cfg!(feature = "sbi-timer") as usize,
    STIMECMP = const csr::STIMECMP,
    TIMER = const interrupt::SUPERVISOR_TIMER,
    TIMER_BIT = const 1 << interrupt::SUPERVISOR_TIMER,
    SOFTWARE = const interrupt::SUPERVISOR_SOFTWARE,
    SOFTWARE_BIT = const 1 << interrupt::SUPERVISOR_SOFTWARE,
    BREAKPOINT = const exception::BREAKPOINT,
    CALL = const exception::CALL_FROM_USER,
    PLACES = const PLACES,
    SIE_BIT = const status::SIE,
    SPIE_BIT = const status::SPIE,
    SPP_BIT = const status::SPP,
    SUM_SHIFT = const status::SUM.trailing_zeros(),
    T0 = const of_fast(offset_of!(Fast, saved)),
    T1 = const of_fast(offset_of!(Fast, saved) + 8),
    T2 = const of_fast(offset_of!(Fast, saved) + 16),
    T3 = const of_fast(offset_of!(Fast, saved) + 24),
    T4 = const of_fast(offset_of!(Fast, saved) + 32),
    KERNEL = const of_fast(offset_of!(Fast, kernel)),
    WALKED_USER = const of_fast(offset_of!(Fast, walked)),
    WALKED_KERNEL = const of_fast(offset_of!(Fast, walked) + 8),
    WALKED_SUM = const of_fast(offset_of!(Fast, walked) + 16),
    VIEW = const of_fast(offset_of!(Fast, view)),
    COUNTERS_USER = const of_fast(offset_of!(Fast, counters)),
    COUNTERS_KERNEL = const of_fast(offset_of!(Fast, counters) + 8),
    ENVIRONMENT_USER = const of_fast(offset_of!(Fast, environment)),
    ENVIRONMENT_KERNEL = const of_fast(offset_of!(Fast, environment) + 8),
    CHANGES = const of_fast(offset_of!(Fast, changes)),
    STAMP = const of_fast(offset_of!(Fast, stamp)),
    STAMP_OF_KERNEL = const of_fast(offset_of!(Fast, stamp_of_kernel)),
    WATCHES = const of_fast(offset_of!(Fast, watches)),
    WATCHES_TRAPS = const of_fast(offset_of!(Fast, watches) + TRAPS_PLACE),
    COUNT = const of_fast(offset_of!(Fast, count)),
    SSTATUS = const of_registers(Supervisor::OFFSETS.sstatus),
    SSCRATCH = const of_registers(Supervisor::OFFSETS.sscratch),
    SEPC = const of_registers(Supervisor::OFFSETS.sepc),
    SCAUSE = const of_registers(Supervisor::OFFSETS.scause),
    STVAL = const of_registers(Supervisor::OFFSETS.stval),
    STVEC = const of_registers(Supervisor::OFFSETS.stvec),
    DEADLINE = const of_registers(Supervisor::OFFSETS.deadline),
    LINES = const of_registers(Supervisor::OFFSETS.lines),
    SIE = const of_registers(Supervisor::OFFSETS.sie),
    PRIVILEGE = const of_registers(Supervisor::OFFSETS.privilege),
    WALKED = const AT + offset_of!(PerHart, walked) as i64,
    CONTEXT = const AT + offset_of!(PerHart, context) as i64,
    TAKEN = const AT + offset_of!(PerHart, taken) as i64,
    BUG = const AT + offset_of!(PerHart, bug) as i64,
);

unsafe extern "C" {
    static window_tagged: u8;
    static window_untagged: u8;
}

/// V, R, X, A: no page of user mode.
const CODE: u64 = 0b100_1011;
/// V, R, W, A, D.
const DATA: u64 = 0b1100_0111;
const POINTER: u64 = 1;

/// The tables of a window in each format, from that of the middle and that above it. No root has Sv57.
const fn by_format(middle: u64, upper: u64) -> [u64; FORMATS] {
    [middle, upper, upper]
}

/// The window of a vCPU: with its [page](Page) behind the code. Its tables in each format. Allocates: only at boot, behind [`prepare`].
pub(super) fn of_page(page: &'static Page) -> [u64; FORMATS] {
    let [upper, middle, leaves]: [&'static mut Table; 3] =
        core::array::from_fn(|_| Box::leak(Box::new(Table(UnsafeCell::new([0; ENTRIES])))));
    let at = core::ptr::from_ref(page) as u64;
    let pages = size_of::<Page>() as u64 / PAGE;
    // SAFETY: it was written at boot, before this, and isn't any more.
    let code = unsafe { (*LEAVES.0.get())[0] };
    let entries = leaves.0.get_mut();
    entries[0] = code;
    // BOUND: a few pages, at boot.
    for (number, entry) in (0..pages).zip(entries.iter_mut().skip(1)) {
        *entry = (at + number * PAGE) >> 12 << 10 | DATA;
    }
    middle.0.get_mut()[0] = (core::ptr::from_ref(leaves) as u64) >> 12 << 10 | POINTER;
    upper.0.get_mut()[0] = (core::ptr::from_ref(middle) as u64) >> 12 << 10 | POINTER;
    by_format(core::ptr::from_ref(middle) as u64, core::ptr::from_ref(upper) as u64)
}

/// Makes the tables of the window as the hypervisor's own map has it. Only at boot, before any hart has a map.
pub(super) fn prepare(has_asids: bool) {
    let page = if has_asids { &raw const window_tagged } else { &raw const window_untagged } as u64;
    senvcfg::leave_out(page as *mut u32);
    // SAFETY: no other hart runs yet, and none has these tables.
    unsafe {
        (*UPPER.0.get())[0] = (MIDDLE.0.get() as u64) >> 12 << 10 | POINTER;
        (*MIDDLE.0.get())[0] = (LEAVES.0.get() as u64) >> 12 << 10 | POINTER;
        (*LEAVES.0.get())[0] = page >> 12 << 10 | CODE;
    }
}

/// Do vCPUs' translations stay apart by the ASIDs of harts alone? Only behind [`prepare`].
pub(super) fn relies_on_asids() -> bool {
    let tagged = (&raw const window_tagged) as u64;
    // SAFETY: it was written at boot, before this, and isn't any more.
    unsafe { (*LEAVES.0.get())[0] == tagged >> 12 << 10 | CODE }
}

/// The tables that the window's entry of a root leads to in each format, in the hypervisor's own map.
pub(super) fn tables() -> [u64; FORMATS] {
    by_format(MIDDLE.0.get() as u64, UPPER.0.get() as u64)
}

/// Where the entry of the first of them leads to, for whoever has something else there as well.
pub(super) fn leaves() -> u64 {
    LEAVES.0.get() as u64
}
