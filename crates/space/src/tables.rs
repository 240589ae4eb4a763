//! How tables are reached.
use crate::HostPhysical;

/// A page table, by its address: 4 KiB aligned to that, or the root, 16 KiB aligned to that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Table(pub HostPhysical);

/// Where tables come from, and how their entries are read and written.
///
/// A [`Space`](crate::Space) reads and writes entries only of its root and of tables that it has taken and not freed, with an index below 512 (root:
/// 2048).
pub trait Tables {
    /// Sets `count` tables aside for [`Self::take`]. False if there aren't so many: then none is.
    #[must_use]
    fn reserve(&mut self, count: usize) -> bool;

    /// One of the tables set aside, 4 KiB of zeros. Each of them is taken before the next are reserved.
    fn take(&mut self) -> Table;

    /// Takes back a table, which is all zeros, and which no hart reads any more.
    fn free(&mut self, table: Table);

    /// Reads an entry.
    fn read(&self, table: Table, index: usize) -> u64;

    /// Writes an entry by one atomic store of 64 bits, with `Release` ordering: harts that see it see what was written before.
    fn write(&mut self, table: Table, index: usize, entry: u64);
}
