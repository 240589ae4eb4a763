//! Entries of page tables, as harts read them (privileged specification, "Sv39: Page-Based 39-bit Virtual-Memory System").
use crate::{Attributes, HostPhysical, MemoryType, PAGE, Rights, Table};

const VALID: u64 = 1 << 0;
const RIGHTS: u32 = 1;
const RIGHTS_MASK: u64 = 0b111 << RIGHTS;
/// Leaves of the second stage are user pages: all accesses of guests count as those of U-mode.
const USER: u64 = 1 << 4;
/// Set from the start, so that no hart has to: the hypervisor doesn't use these bits.
const ACCESSED_DIRTY: u64 = 0b11 << 6;
const NUMBER: u32 = 10;
const NUMBER_MASK: u64 = ((1 << 44) - 1) << NUMBER;
const MEMORY_TYPE: u32 = 61;

/// An entry of a table: nothing, a leaf that maps a range, or a pointer to a table.
///
/// Of an entry that isn't valid, harts ignore all other bits. Here they say what it was: a leaf whose frames have not come back yet, or a pointer
/// to a table that hasn't.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry(pub u64);

impl Entry {
    /// Nothing is there.
    pub const NONE: Self = Self(0);

    const fn number(address: HostPhysical) -> u64 {
        (address.0 / PAGE) << NUMBER
    }

    /// Maps the range to the one that starts at `host`, which is as aligned as the range is large.
    pub const fn leaf(host: HostPhysical, attributes: Attributes) -> Self {
        let Attributes { rights, memory_type } = attributes;
        let flags =
            VALID | rights.bits() << RIGHTS | USER | ACCESSED_DIRTY | memory_type.bits() << MEMORY_TYPE;
        Self(flags | Self::number(host))
    }

    /// Leads to a table of the next level.
    pub const fn pointer(table: Table) -> Self {
        Self(VALID | Self::number(table.0))
    }

    /// Is nothing there?
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Do harts use it?
    pub const fn is_valid(self) -> bool {
        self.0 & VALID != 0
    }

    /// Does it map a range, or did before it was made invalid?
    pub const fn is_leaf(self) -> bool {
        self.0 & RIGHTS_MASK != 0
    }

    /// The table that it leads to, or did before it was made invalid.
    pub const fn table(self) -> Option<Table> {
        if self.is_none() || self.is_leaf() { None } else { Some(Table(self.address())) }
    }

    /// Where the frame or the table is.
    pub const fn address(self) -> HostPhysical {
        HostPhysical((self.0 & NUMBER_MASK) >> NUMBER << PAGE.trailing_zeros())
    }

    /// Rights and memory type of a leaf.
    pub fn attributes(self) -> Option<Attributes> {
        let rights = Rights::of_bits((self.0 & RIGHTS_MASK) >> RIGHTS)?;
        Some(Attributes { rights, memory_type: MemoryType::of_bits(self.0 >> MEMORY_TYPE & 0b11) })
    }

    /// The same for harts to use.
    pub const fn valid(self) -> Self {
        Self(self.0 | VALID)
    }

    /// The same for harts to ignore.
    pub const fn invalid(self) -> Self {
        Self(self.0 & !VALID)
    }

    /// The same leaf with other rights.
    pub const fn with_rights(self, rights: Rights) -> Self {
        Self(self.0 & !RIGHTS_MASK | rights.bits() << RIGHTS)
    }

    /// The leaf that maps so many bytes further on.
    pub const fn further(self, bytes: u64) -> Self {
        Self(self.0 + Self::number(HostPhysical(bytes)))
    }
}
