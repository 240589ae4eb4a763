//! Ranges of addresses.

/// A range of the board's addresses, `start..end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// First byte.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
}

impl Range {
    /// Size in bytes.
    pub fn size(self) -> u64 {
        self.end - self.start
    }

    /// Have they an address in common?
    pub fn overlaps(self, other: Self) -> bool {
        self.start < other.end && other.start < self.end
    }
}

/// A list of ranges for when nothing can be allocated yet.
#[derive(Debug)]
pub struct Ranges {
    ranges: [Range; Self::MOST],
    count: usize,
}

impl Ranges {
    /// So many it can hold.
    pub const MOST: usize = 32;

    /// An empty list.
    #[expect(clippy::new_without_default, reason = "nobody asks for a default")]
    pub const fn new() -> Self {
        Self { ranges: [Range { start: 0, end: 0 }; Self::MOST], count: 0 }
    }

    /// Adds a range. False if there is no room.
    #[must_use]
    pub fn add(&mut self, range: Range) -> bool {
        let slot = self.ranges.get_mut(self.count);
        let has_room = slot.is_some();
        if let Some(slot) = slot {
            *slot = range;
            self.count += 1;
        }
        has_room
    }

    /// The ranges, in the order in which they were added.
    pub fn as_slice(&self) -> &[Range] {
        self.ranges.get(..self.count).unwrap_or_default()
    }
}

/// The largest part of `memory` that none of `reserved` touches.
pub fn largest_free(memory: &[Range], reserved: &[Range]) -> Option<Range> {
    let mut best: Option<Range> = None;
    for &region in memory {
        // The free parts of a region start at its beginning or at the end of something reserved.
        for start in reserved.iter().map(|r| r.end).chain([region.start]) {
            if start < region.start
                || start >= region.end
                || reserved.iter().any(|r| r.start <= start && start < r.end)
            {
                continue;
            }
            let end = reserved.iter().map(|r| r.start).filter(|&s| s > start).fold(region.end, u64::min);
            if best.is_none_or(|b| end - start > b.size()) {
                best = Some(Range { start, end });
            }
        }
    }
    best
}
