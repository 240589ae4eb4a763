//! Breakpoints that a vCPU has come by, and what they stand for: so that the guest's tables needn't be walked each time, and the [fast path](super::fast) finds what to do.
use ainori_text::Text;

use super::fast;
use super::page::{Entry, PLACES, Page};

/// Where a stamp is in a tag: in bits in which addresses at one place don't differ if they are the same in all others. Its upper bits are those that are the same as bit 47 of each
/// virtual address of up to four levels (Sv48), its lower ones those that say which place it is.
const UPPER: u32 = 48;
const LOWER: u32 = PLACES.trailing_zeros() + 1;
/// Between them.
const ADDRESS: u64 = (1 << UPPER) - (1 << LOWER);
/// Of none before it. Its upper bits are never all zero, nor all one: so the tag of an entry is no address, and none is found with 0 for a stamp.
const FIRST: u64 = 1 << UPPER;

/// The next one. `None`: they have run out.
const fn next(stamp: u64) -> Option<u64> {
    // The carry goes through what is between them.
    match (stamp | ADDRESS).checked_add(1) {
        Some(next) if next >> UPPER != u64::MAX >> UPPER => Some(next & !ADDRESS),
        _ => None,
    }
}

const _: () = assert!(
    next(FIRST).unwrap() == FIRST + 1
        && next(FIRST | ((1 << LOWER) - 1)).unwrap() == 2 * FIRST
        && next(!ADDRESS - FIRST).is_none()
);

/// What there was at the last breakpoints, by the virtual addresses of the vCPU's kernel.
pub(super) struct Known {
    page: &'static Page,
    text: &'static Text,
    /// There are entries that aren't for all address spaces.
    is_local: bool,
}

impl Known {
    pub(super) fn new(page: &'static Page, text: &'static Text) -> Self {
        page.fast.stamp_of_kernel.set(FIRST);
        Self { page, text, is_local: false }
    }

    /// That of its guest.
    pub(super) const fn text(&self) -> &'static Text {
        self.text
    }

    fn place(pc: u64) -> usize {
        (pc >> 1) as usize % PLACES
    }

    /// Never 0 in the bits of the stamp: a kernel's address has equal bits there, and no stamp is all ones, nor 0.
    fn tag(&self, pc: u64) -> u64 {
        pc ^ self.page.fast.stamp_of_kernel.get()
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
            let has_timer = self.page.registers.with(|registers| registers.features().timer);
            entry.set(Entry { tag: self.tag(pc), ..fast::entry(bits, has_timer) });
        }
    }

    /// Nothing is known any more. The fast path is told so when the vCPU is entered next, which isn't [settled](super::VcpuState) therefore.
    #[inline]
    pub(super) fn forget(&mut self) {
        self.is_local = false;
        match next(self.page.fast.stamp_of_kernel.get()) {
            Some(stamp) => self.page.fast.stamp_of_kernel.set(stamp),
            None => self.begin_anew(),
        }
    }

    /// Stamps have run out: no entry may be taken for a new one.
    #[cold]
    fn begin_anew(&mut self) {
        // BOUND: `PLACES`, some 3 instructions each, once in 67 million times.
        for entry in &self.page.entries.0 {
            entry.set(fast::entry(0, false));
        }
        self.page.fast.stamp_of_kernel.set(FIRST);
    }

    /// The vCPU is in another address space, or has fenced one.
    #[inline]
    pub(super) fn forget_local(&mut self) {
        if self.is_local {
            self.forget();
        }
    }
}
