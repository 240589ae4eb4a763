//! What the hypervisor itself is interrupted by, and waits for.
use ainori_limits::cause::interrupt;
use bitflags::bitflags;
use core::arch::asm;

use super::{csr, fence};

bitflags! {
    /// The hypervisor's own interrupts, as bits of `sip` and `sie`; the last one, where there is such, of `hip` and `hie`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Interrupts: u64 {
        /// Another core sent an IPI.
        const SOFTWARE = 1 << interrupt::SUPERVISOR_SOFTWARE;
        /// The core's alarm.
        const TIMER = 1 << interrupt::SUPERVISOR_TIMER;
        /// A device of the board.
        const EXTERNAL = 1 << interrupt::SUPERVISOR_EXTERNAL;
        /// A guest interrupt file that is watched.
        const GUEST_FILE = 1 << interrupt::SUPERVISOR_GUEST_EXTERNAL;
    }
}

/// Those of `sip` that are pending and enabled: on a way so short that a guest interrupt file had better interrupt at its end.
#[cfg(not(feature = "no-h"))]
#[inline(always)]
pub fn pending_own_interrupts() -> Interrupts {
    // No others are ever enabled there.
    Interrupts::from_bits_retain(csr::read!(csr::SIP) & csr::read!(csr::SIE))
}

/// Takes back a software interrupt that another core sent. What that core wrote before is seen by reads that come after this: were one of them
/// to come first, it might miss what the interrupt is about, and nothing would tell of it again.
#[inline]
pub fn clear_software_interrupt() {
    // SAFETY: only the hypervisor's own pending bit.
    unsafe { csr::clear!(csr::SIP, Interrupts::SOFTWARE.bits()) }
    fence::after_device();
}

/// There is a software interrupt, as if another core had sent it.
#[inline]
pub fn raise_software_interrupt() {
    // SAFETY: only the hypervisor's own pending bit.
    unsafe { csr::set!(csr::SIP, Interrupts::SOFTWARE.bits()) }
}

/// Sets the core's own alarm; `u64::MAX` is never.
#[cfg(not(any(feature = "no-h", feature = "sbi-timer")))]
#[inline]
pub fn set_alarm(at: u64) {
    // SAFETY: only the hypervisor's own timer.
    unsafe { csr::write!(csr::STIMECMP, at) }
}

/// Lets the hart rest until it has an interrupt, of its own or of a guest, or for a shorter while: it may return at any time.
#[inline]
pub fn wait() {
    // SAFETY: with sstatus.SIE = 0 this takes no trap. Memory is read before and after it as the program says: what others wrote before they
    // rang is looked for behind it.
    unsafe { asm!("wfi", options(nostack)) }
}
