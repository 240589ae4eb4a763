//! Fences that the hypervisor executes for guests, whose translations have ASIDs of the hart.
use core::arch::asm;

/// Forgets all translations of all guests on this hart.
pub fn guest_all() {
    // SAFETY: drops cached translations. The hypervisor's own are made again as they were.
    unsafe { asm!("sfence.vma zero, zero", options(nostack)) }
}

/// Forgets those of one address space.
pub fn guest_asid(asid: u64) {
    // SAFETY: as in `guest_all`.
    unsafe { asm!("sfence.vma zero, {}", in(reg) asid, options(nostack)) }
}

/// Forgets those of one page in all address spaces.
pub fn guest_page(address: u64) {
    // SAFETY: as in `guest_all`.
    unsafe { asm!("sfence.vma {}, zero", in(reg) address, options(nostack)) }
}

/// Forgets those of one page in one address space.
pub fn guest_page_asid(address: u64, asid: u64) {
    // SAFETY: as in `guest_all`.
    unsafe { asm!("sfence.vma {}, {}", in(reg) address, in(reg) asid, options(nostack)) }
}
