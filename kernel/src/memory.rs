//! The memory of the board: handed out at boot, never after.
use core::alloc::{GlobalAlloc, Layout};
use core::sync::atomic::{AtomicUsize, Ordering};

pub use ainori_space::{GuestPhysical, HostPhysical};

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
pub struct Ranges {
    ranges: [Range; Self::MOST],
    count: usize,
}

impl Ranges {
    /// So many it can hold.
    pub const MOST: usize = 32;

    /// An empty list.
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

/// The boot allocator: the hypervisor's own objects grow from the bottom of the free memory, guests' memory is taken
/// from its top. Nothing is ever given back. Its code goes with all that only boot needs: nothing that stays may allocate (kernel_image.rs).
pub struct BootAllocator {
    bottom: AtomicUsize,
    top: AtomicUsize,
}

#[global_allocator]
static MEMORY: BootAllocator = BootAllocator { bottom: AtomicUsize::new(0), top: AtomicUsize::new(0) };

/// Gives the allocator its memory.
///
/// # Safety
/// Nothing else uses the range, now or later.
pub unsafe fn provide(free: Range) {
    MEMORY.bottom.store(free.start as usize, Ordering::Relaxed);
    MEMORY.top.store(free.end as usize, Ordering::Relaxed);
}

/// Takes memory for a guest. `align` is a power of two. None if there is not enough.
pub fn take_for_guest(size: u64, align: u64) -> Option<HostPhysical> {
    let top = MEMORY.top.load(Ordering::Relaxed) as u64;
    let start = top.checked_sub(size)? & !(align - 1);
    if start < MEMORY.bottom.load(Ordering::Relaxed) as u64 {
        return None;
    }
    MEMORY.top.store(start as usize, Ordering::Relaxed);
    Some(HostPhysical(start))
}

/// Where the hypervisor's objects end.
pub fn end() -> u64 {
    MEMORY.bottom.load(Ordering::Relaxed) as u64
}

// SAFETY: every block is a fresh part of the range that `provide` was promised to be free: `bottom` only grows, by a
// compare-and-swap, and never past `top`.
unsafe impl GlobalAlloc for BootAllocator {
    #[inline(never)] // its copies would take 1 KiB
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let mut bottom = self.bottom.load(Ordering::Relaxed);
        loop {
            let start = bottom.next_multiple_of(layout.align());
            let end = start + layout.size();
            assert!(
                end <= self.top.load(Ordering::Relaxed),
                "out of memory at boot: give the guests less in the manifest"
            );
            match self.bottom.compare_exchange_weak(bottom, end, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return start as *mut u8,
                Err(now) => bottom = now,
            }
        }
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}
