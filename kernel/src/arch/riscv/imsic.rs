//! This hart's own file in an IMSIC: the messages (MSIs) for the hypervisor (*The RISC-V Advanced Interrupt Architecture* 1.0, chapter 3). Only on harts that have one
//! and let the hypervisor reach it ([`Features::messages`](crate::arch::hart::Features)): elsewhere an access traps, which ends in a panic.
//!
//! `siselect` stays at the threshold, so that to set that is one instruction, as it is with other controllers.
use super::csr::{self, file};

/// Writes a register of the file.
fn write(register: u64, value: u64) {
    // SAFETY: what interrupts the hypervisor itself, and nothing else. `siselect` is left where it is expected.
    unsafe {
        csr::write!(csr::SISELECT, register);
        csr::write!(csr::SIREG, value);
        csr::write!(csr::SISELECT, file::EITHRESHOLD);
    }
}

/// Nothing is pending, nothing enabled, and nothing held back any more of `1..=identities`. By the hart itself, when its core starts.
pub fn reset(identities: u32) {
    // BOUND: only at the core's start.
    for word in 0..=u64::from(identities / u64::BITS) {
        // There is none with an odd number, where registers have 64 bits.
        write(file::EIE0 + 2 * word, 0);
        write(file::EIP0 + 2 * word, 0);
    }
    write(file::EITHRESHOLD, 0);
    write(file::EIDELIVERY, file::FROM_FILE);
}

/// An identity interrupts the hart from now on.
pub fn enable(identity: u32) {
    let word = u64::from(identity / u64::BITS);
    // SAFETY: as in `write`.
    unsafe {
        csr::write!(csr::SISELECT, file::EIE0 + 2 * word);
        csr::set!(csr::SIREG, 1 << (identity % u64::BITS));
        csr::write!(csr::SISELECT, file::EITHRESHOLD);
    }
}

/// If one identity is pending, another one is instead.
pub fn hand_over(from: u32, to: u32) {
    // SAFETY: as in `write`.
    unsafe {
        let (register, bit) = pending(from);
        csr::write!(csr::SISELECT, register);
        let was_pending = csr::read!(csr::SIREG) & bit != 0;
        csr::clear!(csr::SIREG, bit);
        if was_pending {
            let (register, bit) = pending(to);
            csr::write!(csr::SISELECT, register);
            csr::set!(csr::SIREG, bit);
        }
        csr::write!(csr::SISELECT, file::EITHRESHOLD);
    }
}

/// The register with an identity's pending bit, and that bit.
const fn pending(identity: u32) -> (u64, u64) {
    (file::EIP0 + 2 * (identity / u64::BITS) as u64, 1 << (identity % u64::BITS))
}

/// Only identities below this one interrupt the hart; all if it is 0.
#[inline(always)]
pub fn set_threshold(identity: u16) {
    // SAFETY: the threshold is what `siselect` stays at; it holds back interrupts of the hypervisor itself, and nothing else.
    unsafe { csr::write!(csr::SIREG, identity.into()) }
}

/// Takes the lowest identity that is pending, enabled and below the threshold; 0 if there is none.
pub fn claim() -> u32 {
    // SAFETY: only the hypervisor's own pending bit.
    let top = unsafe { csr::take!(csr::STOPEI) };
    (top >> file::IDENTITY_SHIFT) as u32
}

/// Takes this identity, if it is the lowest one.
pub fn claim_only(identity: u32) -> bool {
    let is_top = (csr::read!(csr::STOPEI) >> file::IDENTITY_SHIFT) as u32 == identity;
    if is_top {
        claim();
    }
    is_top
}
