//! What a shadow reads and writes.
use ainori_space::{GuestPhysical, HostPhysical, Translation};

/// Entries of a guest's table in a row: 64 bytes, as much as a block of a cache has.
pub const ROW: usize = 8;

/// The guest's memory, as one of its harts finds it.
pub trait Memory {
    /// Loads an entry of a guest's table, by one load of 64 bits. `at` is a multiple of 8. `None`: no memory is there that the guest may read.
    fn load(&self, at: GuestPhysical) -> Option<u64>;

    /// Loads those of a row, each as [`Self::load`] does, and calls `each` with its place in the row. `at` is a multiple of 64. Where no memory is there is no call.
    #[inline(always)]
    fn load_row(&self, at: GuestPhysical, mut each: impl FnMut(usize, u64)) {
        // BOUND: `ROW`.
        for offset in 0..ROW {
            if let Some(entry) = self.load(GuestPhysical(at.0 + offset as u64 * 8)) {
                each(offset, entry);
            }
        }
    }

    /// Stores `new` if `old` is still there, by one atomic access, and says whether it did. `None`: no memory is there that the guest may write.
    fn exchange(&self, at: GuestPhysical, old: u64, new: u64) -> Option<bool>;

    /// What the second stage has there. `None`: no memory; it may be a device.
    fn translate(&self, at: GuestPhysical) -> Option<Translation>;
}

/// The pool of tables. They have 512 entries each, and are named by numbers from 0.
///
/// What is in a table when the shadow takes it for the first time is all zeros.
pub trait Tables {
    /// Rows of zeros that are written before somebody asks again whether there is something more urgent: as many as there is time for behind what leads to that.
    const ROWS_AT_ONCE: usize;

    /// Where a table is, for `satp` and for entries that lead to it.
    fn address(&self, table: u16) -> HostPhysical;

    /// The table at an address that [`Self::address`] gave.
    fn number(&self, at: HostPhysical) -> u16;

    /// Reads an entry.
    fn read(&self, table: u16, index: usize) -> u64;

    /// Writes an entry by one store of 64 bits, which is ordered behind those before it, as a hart may walk the table at any time.
    fn write(&mut self, table: u16, index: usize, entry: u64);

    /// Writes zeros to a row of entries, of which this is the first one, in any order.
    #[inline(always)]
    fn clear_row(&mut self, table: u16, first: usize) {
        // BOUND: `ROW`.
        for index in first..first + ROW {
            self.write(table, index, 0);
        }
    }
}
