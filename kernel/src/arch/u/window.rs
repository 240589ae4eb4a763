//! The window: the one page of the hypervisor that is in all tables that a hart walks, at the same place in a vCPU's as in the hypervisor's own. In it the hart changes from
//! the one to the other. A guest, in U-mode, can't reach it.
//!
//! Where it is, each vCPU may choose among the entries of a root for the upper half of addresses: in one that its guest doesn't use.
use core::arch::global_asm;
use core::cell::UnsafeCell;
use core::mem::offset_of;

use super::block::{AT, Block};

const ENTRIES: usize = 512;
/// Where in the window the way to a guest begins, and where a guest's memory is read. A trap is taken at its first byte.
pub(super) const LEAVE: u64 = 0x400;
pub(super) const READ: u64 = 0x800;

#[repr(C, align(4096))]
struct Table(UnsafeCell<[u64; ENTRIES]>);

// SAFETY: they are written once, by the hart that boots, before others run.
unsafe impl Sync for Table {}

static MIDDLE: Table = Table(UnsafeCell::new([0; ENTRIES]));
static LEAVES: Table = Table(UnsafeCell::new([0; ENTRIES]));

global_asm!(
    r#"
    .macro for_all_but_a0 op
        \op ra,   1*8(a0)
        \op sp,   2*8(a0)
        \op gp,   3*8(a0)
        \op tp,   4*8(a0)
        \op t0,   5*8(a0)
        \op t1,   6*8(a0)
        \op t2,   7*8(a0)
        \op s0,   8*8(a0)
        \op s1,   9*8(a0)
        \op a1,  11*8(a0)
        \op a2,  12*8(a0)
        \op a3,  13*8(a0)
        \op a4,  14*8(a0)
        \op a5,  15*8(a0)
        \op a6,  16*8(a0)
        \op a7,  17*8(a0)
        \op s2,  18*8(a0)
        \op s3,  19*8(a0)
        \op s4,  20*8(a0)
        \op s5,  21*8(a0)
        \op s6,  22*8(a0)
        \op s7,  23*8(a0)
        \op s8,  24*8(a0)
        \op s9,  25*8(a0)
        \op s10, 26*8(a0)
        \op s11, 27*8(a0)
        \op t3,  28*8(a0)
        \op t4,  29*8(a0)
        \op t5,  30*8(a0)
        \op t6,  31*8(a0)
    .endm

    // The same twice: for harts that tell address spaces apart, and for those that forget all at each change.
    .macro window name, fence:vararg
    .balign 4096
    .global \name
\name:
    // A trap. sscratch has the hypervisor's satp, or 0 if it is one of the hypervisor itself.
    csrrw   a0, sscratch, a0
    beqz    a0, \name\()_own
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
    LEAVE = const LEAVE,
    READ = const READ,
    WALKED = const AT + offset_of!(Block, walked) as i64,
    CONTEXT = const AT + offset_of!(Block, context) as i64,
    TAKEN = const AT + offset_of!(Block, taken) as i64,
    BUG = const AT + offset_of!(Block, bug) as i64,
);

unsafe extern "C" {
    static window_tagged: u8;
    static window_untagged: u8;
}

/// Makes the tables of the window. Only at boot, before any hart has a map.
pub(super) fn prepare(has_asids: bool) {
    /// V, R, X, A: no page of user mode.
    const CODE: u64 = 0b100_1011;
    const POINTER: u64 = 1;
    let page = if has_asids { &raw const window_tagged } else { &raw const window_untagged } as u64;
    // SAFETY: no other hart runs yet, and none has these tables.
    unsafe {
        (*MIDDLE.0.get())[0] = (LEAVES.0.get() as u64) >> 12 << 10 | POINTER;
        (*LEAVES.0.get())[0] = page >> 12 << 10 | CODE;
    }
}

/// The table that the window's entry of a root leads to.
pub(super) fn table() -> u64 {
    MIDDLE.0.get() as u64
}

/// The same for the entry of the table that leads to this table itself, for whoever has something else there as well.
pub(super) fn leaves() -> u64 {
    LEAVES.0.get() as u64
}
