//! Second-stage tables ([`ainori_space`]) as this hart has them: in memory that the hypervisor reaches by pointers, in `hgatp`.
//!
//! A guest has one table, shared by its vCPUs; each vCPU has a VMID of its own, so that two vCPUs of one guest never
//! share cached translations on one core (SPUMONE's split ASIDs, 3.6.1). (Where the hart has fewer VMIDs than there are vCPUs, each world switch
//! fences: `Extra::FLUSH` of [`world`](super::world).)
use alloc::alloc::alloc_zeroed;
use core::alloc::Layout;
use core::sync::atomic::{AtomicU64, Ordering};

use ainori_space::{Format, Space, Table, Tables};

use crate::memory::HostPhysical;

#[cfg(not(feature = "no-h"))]
/// `hgatp.MODE` of Sv39x4: harts with Shgatpa have it (RVA23 asks for that), and boot asks each board's (`hart::lacks`).
pub const MODE_SV39X4: u64 = 8;

#[repr(C, align(4096))]
struct Lower([u64; 512]);
#[repr(C, align(16384))]
struct Root([u64; 2048]);

/// Tables from the boot allocator, which panics when it has nothing left. They are never given back.
pub struct BootTables(());

/// The second-stage tables of a guest.
pub type GuestTables = Space<BootTables>;

/// Tables in which nothing is mapped. Allocates: only at boot.
pub fn empty() -> GuestTables {
    Space::new(Format::Sv39x4, zeroed::<Root>(), BootTables(()))
}

#[cfg(not(feature = "no-h"))]
/// Value of `hgatp` for a vCPU with this VMID.
pub(super) fn hgatp(tables: &GuestTables, vmid: u16) -> u64 {
    MODE_SV39X4 << 60 | u64::from(vmid) << 44 | tables.root().0.0 >> 12
}

/// `T` is one of the types above. Allocates: only at boot.
fn zeroed<T>() -> Table {
    // SAFETY: neither type is empty; the allocator never returns null (it panics instead).
    Table(HostPhysical(unsafe { alloc_zeroed(Layout::new::<T>()) } as u64))
}

/// The place of an entry.
fn entry(table: Table, index: usize) -> *mut u64 {
    (table.0.0 as *mut u64).wrapping_add(index)
}

impl Tables for BootTables {
    fn reserve(&mut self, _: usize) -> bool {
        true
    }

    fn take(&mut self) -> Table {
        zeroed::<Lower>()
    }

    fn free(&mut self, _: Table) {}

    fn read(&self, table: Table, index: usize) -> u64 {
        // SAFETY: the entry lies in a table of `zeroed`, by the promise of `Tables`, as only this module makes a `BootTables`. To the hypervisor
        // each physical address is itself, so it is a pointer (as of `ShadowTables`); harts only read it, and all else is done by atomic instructions.
        unsafe { AtomicU64::from_ptr(entry(table, index)) }.load(Ordering::Relaxed)
    }

    fn write(&mut self, table: Table, index: usize, value: u64) {
        // SAFETY: as in `read`.
        unsafe { AtomicU64::from_ptr(entry(table, index)) }.store(value, Ordering::Release);
    }
}
