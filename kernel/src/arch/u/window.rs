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

use super::page::{ASID_SHIFT, Entry, Fast, GOES_ON, PLACES, Page, SPACES, Space, TRAPS_PLACE, WAYS};
use super::per_hart::{AT, PerHart};
use super::senvcfg;
use crate::arch::riscv::csr::{self, status};

const ENTRIES: usize = 512;
/// Bytes of its code, in pages: what comes first, the handlers, and behind them what there is for each general register.
pub(super) const CODE: u64 = CODE_PAGES as u64 * PAGE;
const CODE_PAGES: usize = 4;
/// Bytes of it: the code, and the [page](Page) of a vCPU.
pub(super) const SIZE: u64 = CODE + size_of::<Page>() as u64;
/// Where in the window the usual way of a trap goes on, where the way to a guest begins, and where a guest's memory is read. A trap is taken at its first byte.
const USUAL: u64 = 0x58;
pub(super) const LEAVE: u64 = 0x120;
pub(super) const READ: u64 = 0x1e0;

/// Where the handlers of the [fast path](super::fast) are that are for all registers.
mod handler {
    pub(super) const SWAP: u64 = 0x300;
    pub(super) const READ_STATUS: u64 = 0x340;
    pub(super) const ENABLE: u64 = 0x370;
    pub(super) const ENABLE_ONLY: u64 = 0x3b0;
    pub(super) const STATUS_SET: u64 = 0x400;
    pub(super) const STATUS_CLEAR: u64 = 0x430;
    pub(super) const STATUS_WRITE: u64 = 0x460;
    pub(super) const WRITE_TIMER: u64 = 0x720;
    pub(super) const CLEAR_PENDING: u64 = 0x780;
    pub(super) const CLEAR_PENDING_NUMBER: u64 = 0x7b0;
    pub(super) const SET_PENDING: u64 = 0x800;
    pub(super) const SET_PENDING_NUMBER: u64 = 0x814;
    pub(super) const RETURN: u64 = 0x8c0;
}

/// They, from the address that the fast path has in `a0`, in the order of their numbers there. The first is the usual way.
pub(super) const HANDLERS: [i16; 14] = [
    from_base(USUAL),
    from_base(handler::SWAP),
    from_base(handler::STATUS_SET),
    from_base(handler::STATUS_CLEAR),
    from_base(handler::STATUS_WRITE),
    from_base(handler::ENABLE),
    from_base(handler::ENABLE_ONLY),
    from_base(handler::RETURN),
    from_base(handler::READ_STATUS),
    from_base(handler::WRITE_TIMER),
    from_base(handler::CLEAR_PENDING),
    from_base(handler::CLEAR_PENDING_NUMBER),
    from_base(handler::SET_PENDING),
    from_base(handler::SET_PENDING_NUMBER),
];

/// Where the code is that reads and writes a general register of the guest by its number, 8 bytes for each; the second kind of the latter goes on with the next instruction.
/// A jump reaches them from `a0`.
const GET_PLACE: u64 = CODE - 0x800;
const PUT_PLACE: u64 = CODE - 0x700;
const PUT_ON_PLACE: u64 = CODE - 0x600;

/// Handlers of which there is one for each general register.
mod family {
    /// Reads of a plain register of the supervisor, 32 of each, in the order of [`plain`](super::super::fast); behind them the same which go on with the next instruction.
    pub(super) const READ: u64 = 0x1000;
    pub(super) const READ_ON: u64 = 0x1800;
    /// Writes of one, in the same order.
    pub(super) const WRITE: u64 = 0x2000;
    /// `csrrw` of `sscratch` with the same register as its source and its target.
    pub(super) const SWAP_SAME: u64 = 0x2800;
    /// `csrs` and `csrc` of `sstatus`.
    pub(super) const SET: u64 = 0x2a00;
    pub(super) const CLEAR: u64 = 0x2c00;
    /// `csrw` of `satp`.
    pub(super) const SPACE: u64 = 0x2e00;
    /// `csrrci` of SIE in `sstatus`: there is more room for each of these.
    pub(super) const DISABLE_INTO: u64 = 0x3000;
}

/// They, from the address that the fast path has in `a0`, in the order of their numbers there; and how many bytes there are for each register, as a power of two.
pub(super) const FAMILIES: [(i16, u8); 8] = [
    (from_base(family::READ), NARROW),
    (from_base(family::READ_ON), NARROW),
    (from_base(family::WRITE), NARROW),
    (from_base(family::SWAP_SAME), NARROW),
    (from_base(family::SET), NARROW),
    (from_base(family::CLEAR), NARROW),
    (from_base(family::SPACE), NARROW),
    (from_base(family::DISABLE_INTO), WIDE),
];
const NARROW: u8 = 4;
const WIDE: u8 = 6;

/// The address that the fast path has in `a0` is that of the page behind the code.
const BASE: u64 = CODE;

const fn from_base(place: u64) -> i16 {
    place as i16 - BASE as i16
}

const fn of_registers(offset: usize) -> i64 {
    offset as i64
}

const fn of_fast(offset: usize) -> i64 {
    of_registers(offset_of!(Page, fast) + offset)
}

const fn of_entry(offset: usize) -> i64 {
    of_registers(offset_of!(Page, entries) + offset)
}

const fn of_space(offset: usize) -> i64 {
    of_fast(offset_of!(Fast, spaces) + offset)
}

const _: () = assert!(
    offset_of!(Page, registers) == 0
        && offset_of!(Page, entries) < 2048 - size_of::<Entry>()
        && size_of::<Entry>() == 16
        && size_of::<Space>() == 32
        && (PLACES - 1) << 1 < 2048
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
    lui     t0, 1 << ({SUM_SHIFT} - 12)
    bne     t0, t1, \name\()_set_others
    ld      t1, {WALKED_SUM}(a0)
    beqz    t1, \name\()_usual
    csrw    satp, t1
    \fence
    ld      t1, {SSTATUS}(a0)
    or      t1, t1, t0
    sd      t1, {SSTATUS}(a0)
    finish
    // Others by the handler that is for all, as if its first three instructions had led here.
\name\()_set_others:
    csrr    t1, sstatus
    bgez    t1, 19f
    note_units
19: j       \name + {STATUS_SET} + 12

    // Likewise cleared: t0, of which t1 are set.
\name\()_clear:
    beqz    t1, \name\()_done
    lui     t0, 1 << ({SUM_SHIFT} - 12)
    bne     t0, t1, \name\()_clear_others
    ld      t1, {WALKED_KERNEL}(a0)
    beqz    t1, \name\()_usual
    csrw    satp, t1
    \fence
    ld      t1, {SSTATUS}(a0)
    xor     t1, t1, t0
    sd      t1, {SSTATUS}(a0)
    finish
    // Others by the handler that is for all, as if its first three instructions had led here.
\name\()_clear_others:
    csrr    t1, sstatus
    bgez    t1, 19f
    note_units
19: j       \name + {STATUS_CLEAR} + 12

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
    "#,
    USUAL = const USUAL,
    LEAVE = const LEAVE,
    READ = const READ,
    CODE = const CODE,
    SWAP = const handler::SWAP,
    READ_STATUS = const handler::READ_STATUS,
    ENABLE = const handler::ENABLE,
    ENABLE_ONLY = const handler::ENABLE_ONLY,
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
    PUT_ON_PLACE = const PUT_ON_PLACE,
    READ_FAMILY = const family::READ,
    READ_ON_FAMILY = const family::READ_ON,
    WRITE_FAMILY = const family::WRITE,
    SWAP_SAME_FAMILY = const family::SWAP_SAME,
    SET_FAMILY = const family::SET,
    CLEAR_FAMILY = const family::CLEAR,
    SPACE_FAMILY = const family::SPACE,
    DISABLE_INTO_FAMILY = const family::DISABLE_INTO,
    GOES_ON = const GOES_ON,
    GET = const from_base(GET_PLACE),
    PUT = const from_base(PUT_PLACE),
    PUT_ON = const from_base(PUT_ON_PLACE),
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
    SATP = const of_fast(offset_of!(Fast, satp)),
    SPACES = const SPACES,
    ASID_SHIFT = const ASID_SHIFT,
    SPACE_SATP = const of_space(offset_of!(Space, satp)),
    SPACE_USER = const of_space(offset_of!(Space, walked)),
    SPACE_KERNEL = const of_space(offset_of!(Space, walked) + 8),
    SPACE_SUM = const of_space(offset_of!(Space, walked) + 16),
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
const EXECUTABLE: u64 = 0b100_1011;
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
    let code = unsafe { &*LEAVES.0.get() };
    let entries = leaves.0.get_mut();
    // BOUND: a few pages, at boot.
    for (entry, of_code) in entries.iter_mut().zip(code).take(CODE_PAGES) {
        *entry = *of_code;
    }
    // BOUND: likewise.
    for (number, entry) in (0..pages).zip(entries.iter_mut().skip(CODE_PAGES)) {
        *entry = (at + number * PAGE) >> 12 << 10 | DATA;
    }
    middle.0.get_mut()[0] = (core::ptr::from_ref(leaves) as u64) >> 12 << 10 | POINTER;
    upper.0.get_mut()[0] = (core::ptr::from_ref(middle) as u64) >> 12 << 10 | POINTER;
    by_format(core::ptr::from_ref(middle) as u64, core::ptr::from_ref(upper) as u64)
}

/// Makes the tables of the window as the hypervisor's own map has it. Only at boot, before any hart has a map.
pub(super) fn prepare(has_asids: bool) {
    let page = if has_asids { &raw const window_tagged } else { &raw const window_untagged } as u64;
    senvcfg::leave_out(page as *mut u32, CODE as usize);
    // SAFETY: no other hart runs yet, and none has these tables.
    unsafe {
        (*UPPER.0.get())[0] = (MIDDLE.0.get() as u64) >> 12 << 10 | POINTER;
        (*MIDDLE.0.get())[0] = (LEAVES.0.get() as u64) >> 12 << 10 | POINTER;
        // BOUND: a few pages, at boot.
        for (number, entry) in (0..CODE_PAGES as u64).zip((*LEAVES.0.get()).iter_mut()) {
            *entry = (page + number * PAGE) >> 12 << 10 | EXECUTABLE;
        }
    }
}

/// Do vCPUs' translations stay apart by the ASIDs of harts alone? Only behind [`prepare`].
pub(super) fn relies_on_asids() -> bool {
    let tagged = (&raw const window_tagged) as u64;
    // SAFETY: it was written at boot, before this, and isn't any more.
    unsafe { (*LEAVES.0.get())[0] == tagged >> 12 << 10 | EXECUTABLE }
}

/// The tables that the window's entry of a root leads to in each format, in the hypervisor's own map.
pub(super) fn tables() -> [u64; FORMATS] {
    by_format(MIDDLE.0.get() as u64, UPPER.0.get() as u64)
}

/// Where the entry of the first of them leads to, for whoever has something else there as well.
pub(super) fn leaves() -> u64 {
    LEAVES.0.get() as u64
}
