//! Timers of a hart with Sstc: it has one for the hypervisor ([`set_alarm`]) and one for the loaded vCPU, `vstimecmp`, which
//! interrupts it without anybody's help. What has nothing to do here, has where there is but one timer: `sbi_timer.rs`, with the same names.
use crate::arch::riscv::hart::set_alarm;
use ainori_board::Isa;

/// What the trap entry calls for the hart's timer, and for all else.
pub use crate::cpu::event::conclude_event as fired;
pub use crate::guest::translation::trapped;

/// Reads a register of the world switch.
macro_rules! read {
    ($CSR:ident) => {
        $crate::arch::riscv::csr::read!($crate::arch::riscv::csr::$CSR)
    };
}
/// Writes one.
macro_rules! write {
    ($CSR:ident, $value:expr) => {
        $crate::arch::riscv::csr::write!($crate::arch::riscv::csr::$CSR, $value)
    };
}
/// Reads one, and writes another value to it.
macro_rules! swap {
    ($CSR:ident, $value:expr) => {
        $crate::arch::riscv::csr::swap!($crate::arch::riscv::csr::$CSR, $value)
    };
}
pub(super) use {read, swap, write};

/// No alarm is set, whatever a boot loader has left there.
#[inline(always)]
pub(super) fn reset() {
    set_alarm(u64::MAX);
}

/// Whatever is due is pending.
#[inline(always)]
pub(super) const fn refresh() {}

/// Sets the timer of the loaded vCPU.
#[inline(always)]
pub(super) fn set_deadline(at: u64) {
    // SAFETY: concerns only the guest.
    unsafe { write!(VSTIMECMP, at) }
}

/// No vCPU is loaded any more.
#[inline(always)]
pub(super) const fn forget() {}

/// A guest is entered.
#[inline(always)]
pub(super) const fn settle() {}

/// The alarm is told to the hart, ahead of the next guest's entry.
#[inline(always)]
pub const fn settle_alarm() {}

/// Harts with this ISA have the right build.
#[inline(always)]
pub(super) const fn check(_: &Isa) {}

/// Must harts have Sstc?
pub(super) const NEED_SSTC: bool = true;
