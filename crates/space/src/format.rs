//! The formats of page tables.
use crate::PAGE;

/// Bits of an address that choose an entry of a table, other than the root.
const INDEX_BITS: u32 = 9;

/// A format of second-stage tables (privileged specification, "Guest Physical Address Translation"). The root table of each is 16 KiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Three levels, guest-physical addresses of 41 bits. Harts with Sv39 and Shgatpa have it (RVA23 asks for that).
    Sv39x4,
    /// Four levels, 50 bits.
    Sv48x4,
    /// Five levels, 59 bits.
    Sv57x4,
}

impl Format {
    /// Levels of tables. Level 0 is that of pages.
    pub(crate) const fn levels(self) -> u32 {
        match self {
            Self::Sv39x4 => 3,
            Self::Sv48x4 => 4,
            Self::Sv57x4 => 5,
        }
    }

    /// One past the last guest-physical address.
    #[must_use]
    pub const fn end(self) -> u64 {
        // Two bits more than the first stage has: they make the root four times as large.
        span(self.levels()) << 2
    }
}

/// The lowest bit of an address that tells entries of a level apart.
pub(crate) const fn shift(level: u32) -> u32 {
    PAGE.trailing_zeros() + INDEX_BITS * level
}

/// Bytes that an entry of a level stands for: 4 KiB at level 0, 2 MiB at level 1, 1 GiB at level 2, and so on.
pub(crate) const fn span(level: u32) -> u64 {
    1 << shift(level)
}

/// Is an address the first of an entry of this level?
pub(crate) const fn is_first(address: u64, level: u32) -> bool {
    address & (span(level) - 1) == 0
}

/// Entries of a table other than the root.
pub(crate) const ENTRIES: usize = 1 << INDEX_BITS;
