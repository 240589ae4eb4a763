//! Guest-physical to host-physical translation: Sv39x4 tables (privileged specification, "Two-stage address
//! translation").
//!
//! A guest has one table, shared by its vCPUs; each vCPU has a VMID of its own, so that two vCPUs of one guest never
//! share cached translations on one core (SPUMONE's split ASIDs, 3.6.1). The tables are built at boot and never
//! change, so no fence for them is ever needed later. (Where the hart has fewer VMIDs than there are vCPUs, each world switch
//! fences: `Extra::FLUSH` of [`world`](super::world).)
#![expect(clippy::indexing_slicing, reason = "only at boot")]
use alloc::{alloc::alloc_zeroed, boxed::Box};
use core::alloc::Layout;

use crate::memory::{GuestPhysical, HostPhysical};

const PAGE: u64 = 4096;
/// Size of the leaves that map guest memory.
pub const LARGE_PAGE: u64 = 2 << 20;
const MODE_SV39X4: u64 = 8;

const VALID: u64 = 1;
const READ_WRITE_EXECUTE: u64 = 0b1110;
const READ_WRITE: u64 = 0b0110;
/// G-stage leaves must be user pages, as all guest accesses count as U-mode accesses.
const USER: u64 = 1 << 4;
/// Set at once so that no hart has to: the hypervisor doesn't use these bits.
const ACCESSED_DIRTY: u64 = 0b11 << 6;

#[repr(C, align(4096))]
struct Table([u64; 512]);
/// The root of Sv39x4 is four pages.
#[repr(C, align(16384))]
struct Root([u64; 2048]);

/// What a mapping may be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rights {
    /// Main memory.
    Memory,
    /// Registers of a device.
    Device,
}

/// The translation of one guest.
pub struct GuestTable {
    root: Box<Root>,
}

fn zeroed<T>() -> Box<T> {
    // SAFETY: T is one of the two table types, arrays of integers, for which all zeros is a value; the allocator
    // never returns null (it panics instead).
    unsafe { Box::from_raw(alloc_zeroed(Layout::new::<T>()).cast()) }
}

impl GuestTable {
    /// An empty translation. Allocates: only at boot.
    pub fn new() -> Self {
        Self { root: zeroed() }
    }

    fn next(entry: &mut u64) -> &mut Table {
        if *entry == 0 {
            let table = Box::into_raw(zeroed::<Table>());
            *entry = (table as u64) >> 12 << 10 | VALID;
        }
        assert!(*entry & READ_WRITE_EXECUTE == 0, "guest-physical range mapped twice");
        // SAFETY: a valid entry that isn't a leaf was made just above from a leaked box, owned by this table alone;
        // the hypervisor runs without translation, so its address is a pointer.
        unsafe { &mut *((*entry >> 10 << 12) as *mut Table) }
    }

    /// Maps `[guest, guest + size)` to `[host, ...)`, with 2 MiB leaves where both allow it, else 4 KiB.
    /// All three are multiples of 4 KiB.
    pub fn map(&mut self, guest: GuestPhysical, host: HostPhysical, size: u64, rights: Rights) {
        let flags = match rights {
            Rights::Memory => READ_WRITE_EXECUTE,
            Rights::Device => READ_WRITE,
        } | VALID
            | USER
            | ACCESSED_DIRTY;
        let mut done = 0;
        while done < size {
            let (from, to) = (guest.0 + done, host.0 + done);
            let leaf = to >> 12 << 10 | flags;
            let middle = Self::next(&mut self.root.0[(from >> 30) as usize & 2047]);
            let entry = &mut middle.0[(from >> 21) as usize & 511];
            if (from | to) & (LARGE_PAGE - 1) == 0 && size - done >= LARGE_PAGE {
                assert!(*entry == 0, "guest-physical range mapped twice");
                *entry = leaf;
                done += LARGE_PAGE;
            } else {
                let entry = &mut Self::next(entry).0[(from >> 12) as usize & 511];
                assert!(*entry == 0, "guest-physical range mapped twice");
                *entry = leaf;
                done += PAGE;
            }
        }
    }

    /// Value of `hgatp` for a vCPU with this VMID.
    pub fn hgatp(&self, vmid: u16) -> u64 {
        MODE_SV39X4 << 60 | u64::from(vmid) << 44 | (&raw const *self.root as u64) >> 12
    }
}
