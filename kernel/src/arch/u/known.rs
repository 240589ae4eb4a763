//! Breakpoints that a vCPU has come by, and what they stand for: so that the guest's tables needn't be walked each time, and the [fast path](super::fast) finds what to do.
use ainori_text::Text;

use super::fast;
use super::page::{Entry, PLACES, Page};

/// Where the stamp is in a tag. Virtual addresses of kernels (Sv39) have 25 equal bits there.
const STAMP: u32 = 40;
/// Stamps that can be told apart.
const STAMPS: u64 = 1 << (u64::BITS - STAMP);

/// What there was at the last breakpoints, by the virtual addresses of the vCPU's kernel.
pub(super) struct Known {
    page: &'static Page,
    text: &'static Text,
    /// There are entries that aren't for all address spaces.
    is_local: bool,
}

impl Known {
    pub(super) fn new(page: &'static Page, text: &'static Text) -> Self {
        page.fast.stamp.set(1 << STAMP);
        Self { page, text, is_local: false }
    }

    /// That of its guest.
    pub(super) const fn text(&self) -> &'static Text {
        self.text
    }

    fn place(pc: u64) -> usize {
        (pc >> 1) as usize % PLACES
    }

    fn tag(&self, pc: u64) -> u64 {
        pc ^ self.page.fast.stamp.get()
    }

    /// What is at this address.
    #[inline]
    pub(super) fn find(&self, pc: u64) -> Option<u32> {
        let entry = self.page.entries.0.get(Self::place(pc))?.get();
        (entry.tag == self.tag(pc)).then_some(entry.bits)
    }

    /// That is there. `is_global`: in all address spaces.
    pub(super) fn learn(&mut self, pc: u64, bits: u32, is_global: bool) {
        self.is_local |= !is_global;
        if let Some(entry) = self.page.entries.0.get(Self::place(pc)) {
            entry.set(Entry { tag: self.tag(pc), ..fast::entry(bits) });
        }
    }

    /// Nothing is known any more.
    #[inline]
    pub(super) fn forget(&mut self) {
        let stamp = &self.page.fast.stamp;
        stamp.set(stamp.get().wrapping_add(1 << STAMP));
        self.is_local = false;
        if stamp.get() >> STAMP == STAMPS - 1 {
            self.begin_anew();
        }
    }

    /// Stamps have run out: no entry may be taken for a new one.
    #[cold]
    fn begin_anew(&mut self) {
        // BOUND: `PLACES`, some 3 instructions each, once in 16 million times.
        for entry in &self.page.entries.0 {
            entry.set(fast::entry(0));
        }
        self.page.fast.stamp.set(1 << STAMP);
    }

    /// The vCPU is in another address space, or has fenced one.
    #[inline]
    pub(super) fn forget_local(&mut self) {
        if self.is_local {
            self.forget();
        }
    }
}
