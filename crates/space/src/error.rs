//! What stands in the way of a change.
use core::fmt;

use crate::GuestPhysical;

/// Why a change was refused. Nothing has been changed then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Error {
    /// The first address at which something stands in the way.
    pub at: GuestPhysical,
    /// What.
    pub what: Obstacle,
}

/// What stands in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obstacle {
    /// An address or the size isn't a multiple of 4 KiB.
    Misaligned,
    /// The range goes beyond what the format can map, or beyond the 56 bits of host-physical addresses.
    OutOfRange,
    /// Something is mapped there.
    Mapped,
    /// Nothing is mapped there.
    NotMapped,
    /// What was mapped there has not come back yet from [`Unmapped::fenced`](crate::Unmapped::fenced).
    Unfenced,
    /// There are not enough tables left.
    NoTables,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.what {
            Obstacle::Misaligned => "not a multiple of 4 KiB",
            Obstacle::OutOfRange => "beyond what can be mapped",
            Obstacle::Mapped => "something is mapped there",
            Obstacle::NotMapped => "nothing is mapped there",
            Obstacle::Unfenced => "what was mapped there is still to be fenced",
            Obstacle::NoTables => "no page tables are left",
        };
        write!(f, "{:#x}: {what}", self.at.0)
    }
}

impl core::error::Error for Error {}
