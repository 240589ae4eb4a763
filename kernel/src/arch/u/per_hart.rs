//! What each hart has for itself, at the same address in the hypervisor's map: so the trap entry finds it before it has a register to find it with.
use core::cell::Cell;

use ainori_supervisor::Supervisor;

use super::context::Context;
use super::page::Page;
use super::timer::Timer;

/// Where it is: the highest 2 KiB of addresses, which loads and stores reach from the zero register.
pub(super) const AT: i64 = -2048;

/// A hart's own.
#[repr(C)]
pub(super) struct PerHart {
    /// Of the vCPU that was entered last: the trap entry saves registers there.
    pub(super) context: Cell<*mut Context>,
    /// Where the trap entry goes on, in the hypervisor's own addresses.
    pub(super) taken: Cell<u64>,
    /// Likewise, for a trap of the hypervisor itself.
    pub(super) bug: Cell<u64>,
    /// What there is of the loaded vCPU.
    pub(super) loaded: Cell<Option<&'static Page>>,
    /// Its timer.
    pub(super) timer: Timer,
    /// Where an access that left the guest's memory went: a guest-physical address.
    pub(super) elsewhere: Cell<u64>,
    /// The `satp` that the hart walks for the loaded vCPU.
    pub(super) walked: Cell<u64>,
    /// Where the window is that the hart's traps go through.
    pub(super) window: Cell<u64>,
    /// The hypervisor's own `satp`.
    pub(super) kernel: Cell<u64>,
    /// `stval` says which instruction was illegal, wherever it says anything ([`tells_instructions`](super::hart)).
    pub(super) tells_instructions: Cell<bool>,
    /// All traps of the running vCPU's programs come to the policy.
    pub(super) confines: Cell<bool>,
}

/// This hart's.
#[inline(always)]
pub(super) fn per_hart() -> &'static PerHart {
    // SAFETY: `map::Own` has one there for each hart, zeroed (a valid one) or written by `hart::setup`, before anything of this folder is called but by boot; it is in no
    // other hart's map, all in it are cells, and what refers to it never leaves the hart.
    unsafe { &*(AT as *const PerHart) }
}

/// Does something with the registers of the loaded vCPU. `None` if there is none.
#[inline(always)]
pub(super) fn loaded<T>(what: impl FnOnce(&mut Supervisor) -> T) -> Option<T> {
    per_hart().loaded.get().map(|page| page.registers.with(what))
}
