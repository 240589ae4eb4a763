//! The hart's one timer, for the core's alarm and for the timer of the loaded vCPU: `stimecmp`. Where there is none (no Sstc), `sbi_timer.rs` is in its place, with the same names.
use core::cell::Cell;

use ainori_board::Isa;
use ainori_supervisor::{Line, Supervisor};

use super::per_hart::{loaded, per_hart};
use crate::arch::clock;
use crate::arch::riscv::csr;
use crate::arch::riscv::hart::Interrupts;

/// What there is beside it.
pub(super) struct Timer {
    /// The core's own alarm.
    alarm: Cell<u64>,
}

/// No alarm is set, whatever a boot loader has left there.
pub(super) fn reset() {
    per_hart().timer.alarm.set(u64::MAX);
    program_timer();
}

/// Sets the core's own alarm; `u64::MAX` is never.
#[inline]
pub fn set_alarm(at: u64) {
    per_hart().timer.alarm.set(at);
    program_timer();
}

/// Is the core's own alarm due? The interrupt of the hart's timer is pending.
#[inline(always)]
pub(super) fn is_alarm_due() -> bool {
    csr::read!(csr::TIME) >= per_hart().timer.alarm.get()
}

/// The hypervisor's own interrupts that are pending and enabled.
#[inline(always)]
pub fn pending_own_interrupts() -> Interrupts {
    let pending = Interrupts::from_bits_retain(csr::read!(csr::SIP) & csr::read!(csr::SIE));
    // The hart's timer may be the loaded vCPU's.
    if pending.contains(Interrupts::TIMER) && !is_alarm_due() { pending - Interrupts::TIMER } else { pending }
}

/// The interrupt of the hart's timer has come, and the alarm isn't due.
#[inline(always)]
pub(super) fn go_on() {
    loaded(|registers| registers.check_timer(csr::read!(csr::TIME)));
    program_timer();
}

/// Sets the hart's timer to what is due first: the core's alarm, or the timer of the loaded vCPU if that may interrupt or wake it, and hasn't yet.
#[inline]
pub(super) fn program_timer() {
    let hart = per_hart();
    let own = hart.timer.alarm.get();
    let guest = hart.loaded.get().and_then(|page| {
        page.fast.alarm.set(own);
        page.registers.with(|registers| registers.deadline().filter(|_| !registers.is_up(Line::Timer)))
    });
    let at = guest.map_or(own, |at| at.min(own));
    // The fast path sets it as well.
    if at != csr::read!(csr::STIMECMP) {
        // SAFETY: only the hypervisor's own timer.
        unsafe { csr::write!(csr::STIMECMP, at) }
    }
}

/// Sets the hart's timer to the core's alarm: the loaded vCPU has been interrupted by its own.
#[inline(always)]
pub(super) fn program_alarm() {
    // SAFETY: only the hypervisor's own timer.
    unsafe { csr::write!(csr::STIMECMP, per_hart().timer.alarm.get()) }
}

/// The loaded vCPU, which has these registers, is about to be entered: its timer is looked at.
#[inline(always)]
pub(super) fn settle(registers: &mut Supervisor) {
    registers.check_timer(clock::now());
}

/// The alarm is told to the hart, ahead of the next guest's entry: it is already.
#[inline(always)]
pub const fn settle_alarm() {}

/// Harts with this ISA lack what this build needs for it.
pub(super) fn lacks(isa: &Isa) -> bool {
    !isa.has("sstc")
}
