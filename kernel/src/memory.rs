//! The memory of the board: handed out at boot, never after.
use core::alloc::{GlobalAlloc, Layout};
use core::sync::atomic::{AtomicUsize, Ordering};

use ainori_board::Range;
pub use ainori_space::{GuestPhysical, HostPhysical};

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

/// Where the hypervisor's objects would end if they lay without a gap.
pub fn end() -> u64 {
    MEMORY.bottom.load(Ordering::Relaxed) as u64 - gap()
}

// SAFETY: every block is a fresh part of the range that `provide` was promised to be free: since that, `bottom` only grows, by a compare-and-swap, not past
// `top` as it was then, and `top` only falls, not below `bottom`. Both happen at boot alone, on the one hart that runs then.
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

/// Bytes between what was handed out before [`set_apart`], and what came after it.
#[cfg(feature = "shadow")]
static GAP: core::sync::atomic::AtomicU64 = core::sync::atomic::AtomicU64::new(0);

#[cfg(feature = "shadow")]
fn gap() -> u64 {
    GAP.load(Ordering::Relaxed)
}

#[cfg(not(feature = "shadow"))]
#[inline(always)]
const fn gap() -> u64 {
    0
}

/// Leaves these ranges to whom they are meant for: of the rest of the free memory, the largest piece is what is handed out from now on. False if they overlap, or aren't all free. Only at
/// boot, before the first guest gets memory.
#[cfg(feature = "shadow")]
#[must_use]
pub fn set_apart(ranges: &[Range]) -> bool {
    let (bottom, top) =
        (MEMORY.bottom.load(Ordering::Relaxed) as u64, MEMORY.top.load(Ordering::Relaxed) as u64);
    let overlaps_another =
        |index: usize, range: &Range| ranges.iter().skip(index + 1).any(|other| range.overlaps(*other));
    let is_free = |range: &Range| bottom <= range.start && range.end <= top;
    if !ranges.iter().enumerate().all(|(index, range)| is_free(range) && !overlaps_another(index, range)) {
        return false;
    }
    let Some(rest) = ainori_board::largest_free(&[Range { start: bottom, end: top }], ranges) else {
        return false;
    };
    MEMORY.bottom.store(rest.start as usize, Ordering::Relaxed);
    MEMORY.top.store(rest.end as usize, Ordering::Relaxed);
    GAP.fetch_add(rest.start - bottom, Ordering::Relaxed);
    true
}
