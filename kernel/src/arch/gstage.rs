//! Second-stage tables ([`ainori_space`]) in memory that the hypervisor reaches by pointers. A guest has one, shared by its vCPUs.
//!
//! Harts with H walk them (`hgatp`). Without H they are for the hypervisor alone: it fills shadows in from what they say.
use alloc::alloc::alloc_zeroed;
use core::alloc::Layout;
use core::sync::atomic::{AtomicU64, Ordering};

use ainori_space::{Format, Space, Table, Tables};

use crate::memory::HostPhysical;

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
