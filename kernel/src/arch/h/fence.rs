//! Fences that the hypervisor executes for guests. Those of a guest's own (VS-stage) translations act on the VMID of the `hgatp` that is
//! loaded, [`guest_physical_all`] on all VMIDs.
use core::arch::asm;

/// Forgets all of the loaded guest's own (VS-stage) translations on this hart.
pub fn guest_all() {
    // SAFETY: drops cached translations of a guest; memory as Rust sees it is not concerned.
    unsafe {
        asm!(".option push", ".option arch, +h", "hfence.vvma zero, zero", ".option pop", options(nostack))
    }
}

/// Forgets the loaded guest's translations of one address space.
pub fn guest_asid(asid: u64) {
    // SAFETY: as in `guest_all`.
    unsafe {
        asm!(".option push", ".option arch, +h", "hfence.vvma zero, {}", ".option pop", in(reg) asid, options(nostack))
    }
}

/// Forgets the loaded guest's translations of one page.
pub fn guest_page(address: u64) {
    // SAFETY: as in `guest_all`.
    unsafe {
        asm!(".option push", ".option arch, +h", "hfence.vvma {}, zero", ".option pop", in(reg) address, options(nostack))
    }
}

/// Forgets the loaded guest's translations of one page in one address space.
pub fn guest_page_asid(address: u64, asid: u64) {
    // SAFETY: as in `guest_all`.
    unsafe {
        asm!(".option push", ".option arch, +h", "hfence.vvma {}, {}", ".option pop", in(reg) address, in(reg) asid, options(nostack));
    }
}

/// Forgets all guest-physical (G-stage) translations of all guests on this hart.
pub fn guest_physical_all() {
    // SAFETY: as in `guest_all`.
    unsafe {
        asm!(".option push", ".option arch, +h", "hfence.gvma zero, zero", ".option pop", options(nostack))
    }
}
