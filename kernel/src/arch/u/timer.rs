//! The hart's one timer, for the core's alarm and for the timer of the loaded vCPU.
use ainori_supervisor::Line;

use super::block::block;
use crate::arch::riscv::csr;

/// Sets the core's own alarm; `u64::MAX` is never.
#[inline]
pub fn set_alarm(at: u64) {
    block().alarm.set(at);
    program_timer();
}

/// Is the core's own alarm due?
#[inline(always)]
pub(super) fn is_alarm_due() -> bool {
    csr::read!(csr::TIME) >= block().alarm.get()
}

/// Sets the hart's timer to what is due first: the core's alarm, or the timer of the loaded vCPU if that may interrupt or wake it, and hasn't yet.
#[inline]
pub(super) fn program_timer() {
    let block = block();
    let own = block.alarm.get();
    let guest = block.loaded.get().and_then(|page| {
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
    unsafe { csr::write!(csr::STIMECMP, block().alarm.get()) }
}

/// The alarm is told to the hart, ahead of the next guest's entry: it is already.
#[inline(always)]
pub const fn settle_alarm() {}
