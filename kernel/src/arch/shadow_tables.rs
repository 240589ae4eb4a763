//! The tables of a shadow in memory that the hypervisor reaches by pointers.
use alloc::alloc::alloc_zeroed;
use core::alloc::Layout;
use core::sync::atomic::{AtomicU64, Ordering};

use ainori_limits::PAGE;
use ainori_shadow::{ROW, Tables};
use ainori_space::HostPhysical;

use super::back_end::shadow;

const ENTRIES: usize = PAGE as usize / size_of::<u64>();

/// So many tables, one behind the other. They are never given back.
#[derive(Debug)]
pub(in crate::arch) struct ShadowTables {
    first: u64,
    count: u16,
}

impl ShadowTables {
    /// With zeros in them. Allocates: only at boot.
    pub(in crate::arch) fn new(count: u16) -> Option<Self> {
        let layout =
            Layout::from_size_align(usize::from(count.max(1)) * PAGE as usize, PAGE as usize).ok()?;
        // SAFETY: the layout isn't empty; the allocator never returns null (it panics instead).
        Some(Self { first: unsafe { alloc_zeroed(layout) } as u64, count })
    }

    /// The place of an entry, if it is one of these tables'.
    #[inline(always)]
    fn entry(&self, table: u16, index: usize) -> Option<&AtomicU64> {
        let at = self.place(table, index)?;
        // SAFETY: the entry was just found to lie in the memory of `new`, which is never given back. To the hypervisor each physical address
        // is itself (without translation, or by its own map: `arch/u/map.rs`), so it is a pointer; harts only read it, and all else is done by atomic instructions.
        Some(unsafe { AtomicU64::from_ptr(at) })
    }

    /// The places of a row of entries, of which this is the first one.
    #[inline(always)]
    fn row(&self, table: u16, first: usize) -> Option<&[AtomicU64; ROW]> {
        let at = self.place(table, first / ROW * ROW)?;
        // SAFETY: as of a single entry: a table is whole rows.
        Some(unsafe { &*at.cast::<[AtomicU64; ROW]>() })
    }

    #[inline(always)]
    fn place(&self, table: u16, index: usize) -> Option<*mut u64> {
        if table >= self.count || index >= ENTRIES {
            return None;
        }
        Some((self.address(table).0 as *mut u64).wrapping_add(index))
    }
}

impl Tables for ShadowTables {
    const ROWS_AT_ONCE: usize = shadow::ROWS_AT_ONCE;

    #[inline(always)]
    fn address(&self, table: u16) -> HostPhysical {
        // Whatever the number: what a hart walks is one of these, and never memory that a guest can write.
        HostPhysical(self.first + u64::from(table.min(self.count.saturating_sub(1))) * PAGE)
    }

    #[inline(always)]
    fn number(&self, at: HostPhysical) -> u16 {
        (at.0.wrapping_sub(self.first) / PAGE) as u16
    }

    #[inline(always)]
    fn read(&self, table: u16, index: usize) -> u64 {
        self.entry(table, index).map_or(0, |entry| entry.load(Ordering::Relaxed))
    }

    #[inline(always)]
    fn write(&mut self, table: u16, index: usize, value: u64) {
        if let Some(entry) = self.entry(table, index) {
            entry.store(value, Ordering::Release);
        }
    }

    #[inline(always)]
    fn clear_row(&mut self, table: u16, first: usize) {
        let Some([a, b, c, d, e, f, g, h]) = self.row(table, first) else { return };
        // Whoever has an entry or a hart lead to the table does it behind these, by a store with Release.
        let clear = |entry: &AtomicU64| entry.store(0, Ordering::Relaxed);
        // As a loop it would take three times as long.
        clear(a);
        clear(b);
        clear(c);
        clear(d);
        clear(e);
        clear(f);
        clear(g);
        clear(h);
    }
}
