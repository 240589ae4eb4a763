//! What a hart has in `hgatp` for a vCPU: the [second stage](crate::arch::gstage) of its guest, and a VMID.
//!
//! Each vCPU has a VMID of its own, so that two vCPUs of one guest never share cached translations on one core (SPUMONE's split ASIDs, 3.6.1). (Where the hart has fewer
//! VMIDs than there are vCPUs, each world switch fences: `Extra::FLUSH` of [`world`](super::world).)
use crate::arch::gstage::GuestTables;

/// `hgatp.MODE` of Sv39x4: harts with Shgatpa have it (RVA23 asks for that), and boot asks each board's (`hart::lacks`).
pub(super) const MODE_SV39X4: u64 = 8;

/// Value of `hgatp` for a vCPU with this VMID.
pub(super) fn of_vcpu(tables: &GuestTables, vmid: u16) -> u64 {
    MODE_SV39X4 << 60 | u64::from(vmid) << 44 | tables.root().0.0 >> 12
}
