//! Clearing memory by the cache block, where the hart can (Zicboz), else by the word.
use core::arch::asm;

use crate::memory::HostPhysical;

/// How this board clears memory.
#[derive(Debug, Clone, Copy)]
pub struct Clearer {
    /// Bytes that one `cbo.zero` clears, a power of two; 0 where there is none.
    block: u64,
}

impl Clearer {
    /// For harts whose `cbo.zero` clears so many bytes; `None` where they have none.
    pub fn new(block: Option<u32>) -> Self {
        Self { block: block.filter(|block| block.is_power_of_two()).map_or(0, u64::from) }
    }

    /// Writes zeros. Takes as long as the range is large: only for boot.
    ///
    /// # Safety
    /// The range is memory that no Rust object lies in and that no other hart uses.
    pub unsafe fn clear(&self, start: HostPhysical, size: u64) {
        let (start, end) = (start.0, start.0 + size);
        let blocks = match self.block {
            0 => end..end,
            block => {
                let first = start.next_multiple_of(block).min(end);
                first..first + (end - first) / block * block
            }
        };
        // SAFETY: both parts lie in the range.
        unsafe {
            fill(start, blocks.start);
            fill(blocks.end, end);
        }
        let mut at = blocks.start;
        while at < blocks.end {
            // SAFETY: clears the block of `self.block` bytes at `at`, which lies in the range. The harts have Zicboz, and
            // firmware that says so in its tree lets S-mode use it (`menvcfg.CBZE`); where it doesn't, this is an illegal instruction at boot.
            unsafe {
                asm!(".option push", ".option arch, +zicboz", "cbo.zero ({})", ".option pop", in(reg) at, options(nostack));
            }
            at += self.block;
        }
    }
}

/// Writes zeros by the word.
///
/// # Safety
/// As for [`Clearer::clear`].
unsafe fn fill(start: u64, end: u64) {
    // SAFETY: as the caller says.
    unsafe { core::ptr::write_bytes(start as *mut u8, 0, (end - start) as usize) };
}
