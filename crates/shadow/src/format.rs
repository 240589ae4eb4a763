//! The formats of page tables, and `satp` (privileged specification, "Supervisor Address Translation and Protection Register").
use ainori_limits::PAGE;
use ainori_space::GuestPhysical;

use crate::Virtual;

/// Bits of an address that choose an entry of a table.
const INDEX_BITS: u32 = 9;

/// Entries of a table.
pub(crate) const ENTRIES: usize = 1 << INDEX_BITS;

/// The lowest bit of an address that tells entries of a level apart. Level 0 is that of pages.
pub(crate) const fn shift(level: u32) -> u32 {
    PAGE.trailing_zeros() + INDEX_BITS * level
}

/// Bytes that an entry of a level stands for: 4 KiB at level 0, 2 MiB at level 1, 1 GiB at level 2, and so on.
pub(crate) const fn span(level: u32) -> u64 {
    1 << shift(level)
}

/// A format of a guest's tables, and of the shadow of them. Harts that have one have those before it as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// Three levels, virtual addresses of 39 bits.
    Sv39,
    /// Four levels, 48 bits.
    Sv48,
    /// Five levels, 57 bits.
    Sv57,
}

impl Format {
    /// `satp.MODE` of it.
    #[must_use]
    pub const fn mode(self) -> u64 {
        match self {
            Self::Sv39 => 8,
            Self::Sv48 => 9,
            Self::Sv57 => 10,
        }
    }

    /// Levels of tables.
    pub(crate) const fn levels(self) -> u32 {
        match self {
            Self::Sv39 => 3,
            Self::Sv48 => 4,
            Self::Sv57 => 5,
        }
    }

    /// Is an address one that this format translates? All bits above those that it has must be as the highest of these.
    pub(crate) const fn covers(self, address: Virtual) -> bool {
        let unused = u64::BITS - shift(self.levels());
        ((address.0 << unused) as i64 >> unused) as u64 == address.0
    }

    /// The index of an address's entry in a table of a level.
    pub(crate) const fn index(address: Virtual, level: u32) -> usize {
        (address.0 >> shift(level)) as usize % ENTRIES
    }
}

/// What is in `satp`, or in a hart's `vsatp` (privileged specification, "Supervisor Address Translation and Protection").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Satp(pub u64);

const MODE: u32 = 60;
const ASID: u32 = 44;
const NUMBER_MASK: u64 = (1 << ASID) - 1;

impl Satp {
    /// No translation: each address is guest-physical.
    pub const BARE: Self = Self(0);

    /// Tables of a format, with their root at an address, which is a page's.
    #[inline(always)]
    #[must_use]
    pub const fn new(format: Format, asid: u16, root: u64) -> Self {
        Self(format.mode() << MODE | (asid as u64) << ASID | (root / PAGE))
    }

    /// The format of its tables. `None`: it has none (Bare). `Err` with a mode that isn't one of those: a write of that to `satp` has no effect.
    #[expect(clippy::result_unit_err, reason = "there is nothing to say about it")]
    pub const fn format(self) -> Result<Option<Format>, ()> {
        let mode = self.0 >> MODE;
        Ok(match mode {
            0 => None,
            _ if mode == Format::Sv39.mode() => Some(Format::Sv39),
            _ if mode == Format::Sv48.mode() => Some(Format::Sv48),
            _ if mode == Format::Sv57.mode() => Some(Format::Sv57),
            _ => return Err(()),
        })
    }

    /// The address space's identifier.
    #[must_use]
    pub const fn asid(self) -> u16 {
        (self.0 >> ASID) as u16
    }

    /// Is the other one of the same mode, as both are written: either none, or tables of one format?
    #[inline(always)]
    #[must_use]
    pub const fn has_mode_of(self, other: Self) -> bool {
        (self.0 ^ other.0) >> MODE == 0
    }

    /// Where the root table is.
    #[must_use]
    pub const fn root(self) -> GuestPhysical {
        GuestPhysical((self.0 & NUMBER_MASK) * PAGE)
    }
}
