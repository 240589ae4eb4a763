//! The pages that a remote fence is about.

use ainori_limits::PAGE;

/// More pages than this are not worth a fence each.
pub const MOST_PAGES: u64 = 8;

/// A range of virtual addresses, as the remote fences of SBI have it (chapter 8): from `start`, `size` bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// First address.
    pub start: u64,
    /// Bytes; all ones, or 0 with a `start` of 0, stands for all addresses.
    pub size: u64,
}

impl Range {
    /// The pages to be fenced one by one, by their first addresses, at most [`MOST_PAGES`] and one; none, if all addresses had better be fenced
    /// at once.
    #[inline]
    #[must_use]
    pub fn pages(self) -> Option<impl Iterator<Item = u64>> {
        let Self { start, size } = self;
        let is_everything = size == u64::MAX || start == 0 && size == 0 || size > MOST_PAGES * PAGE;
        // What is beyond the end of the address space isn't there.
        let end = start.saturating_add(size);
        let first = start & !(PAGE - 1);
        let count = end.saturating_sub(first).div_ceil(PAGE);
        (!is_everything).then(|| (0..count).map(move |page| first + page * PAGE))
    }
}
