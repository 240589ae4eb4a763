//! The hypervisor's own place in what a hart without the H extension walks: its trap entry has to be mapped there.
use ainori_space::HostPhysical;

use crate::Virtual;
use crate::entry::Entry;
use crate::format::{ENTRIES, Format, span};

/// Formats that there are.
const FORMATS: usize = Format::Sv57 as usize + 1;

/// The slots that a window can be in: the upper half of a root's.
const FIRST: usize = ENTRIES / 2;

/// An entry of each root that leads to the hypervisor's tables. What these map is to have no U, so that the guest doesn't get at it.
///
/// It is in the upper half of what a root covers. There nothing is without translation, as physical addresses are positive numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The index of the entry: 256 to 511.
    pub slot: u16,
    /// Where the table is that it leads to, in each of the formats, in their order: those up to the greatest that the hart has are used.
    pub tables: [HostPhysical; FORMATS],
}

impl Window {
    /// Where it begins in tables of a format. It is as large as an entry of the root: 1 GiB (Sv39), 512 GiB (Sv48), or 256 TiB (Sv57).
    #[must_use]
    pub const fn start(&self, format: Format) -> Virtual {
        let level = format.levels() - 1;
        // The slots of the upper half are the upper ones of all addresses.
        let from_top = ENTRIES as u64 - self.slot as u64 % ENTRIES as u64;
        Virtual((from_top * span(level)).wrapping_neg())
    }

    /// Is it in the upper half?
    pub(crate) const fn is_right(&self) -> bool {
        FIRST <= self.slot as usize && (self.slot as usize) < ENTRIES
    }

    /// The same in the next slot: behind the last one is the first one.
    pub(crate) const fn moved(self) -> Self {
        let slot = if self.slot as usize + 1 < ENTRIES { self.slot + 1 } else { FIRST as u16 };
        Self { slot, ..self }
    }

    /// Its entry in roots of a format.
    pub(crate) fn opening(&self, format: Format) -> Opening {
        let table = self.tables.get(format as usize).copied().unwrap_or(HostPhysical(0));
        Opening { slot: self.slot, entry: Entry::pointer(table) }
    }
}

/// The entry of a window in a root.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Opening {
    /// Its index, or [`CLOSED`].
    pub slot: u16,
    pub entry: Entry,
}

/// No slot of a window.
pub(crate) const CLOSED: u16 = 0;

impl Opening {
    /// None.
    pub const NONE: Self = Self { slot: CLOSED, entry: Entry::NONE };
}
