//! Guest interrupt files, which harts without H have none of.
use super::hart::Features;

/// Has this hart as many as the one that the features are of?
pub const fn are_as_of(_: &Features) -> bool {
    true
}

/// Tells the hypervisor of what comes into these files.
#[inline]
pub const fn watch(_: u64) {}

/// One of the watched files that have something.
pub const fn take_pending(_: u64) -> u64 {
    0
}

/// Of those that are watched, only these still are. Were there others?
pub const fn watch_only(_: u64) -> bool {
    false
}

/// A file of a bell says nothing until somebody looks.
pub const fn quiet_bell(_: u8) {}

/// It tells of the next ring, and of one that has come meanwhile.
pub const fn tell_of_bell(_: u8) {}

/// Has it rung since somebody asked last?
pub const fn take_ring(_: u8) -> bool {
    false
}

/// Messages have come for its vCPU.
pub const fn post(_: u8, _: u64) {}

/// Puts a file back to reset.
pub const fn reset(_: &Features, _: u8, _: u32) {}
