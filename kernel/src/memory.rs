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
