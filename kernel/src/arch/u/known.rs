//! Breakpoints that a vCPU has come by, and what they stand for: so that the guest's tables needn't be walked each time.
use alloc::{boxed::Box, vec};

use ainori_text::Text;

/// Places, a power of two. Debian's kernel has some 100 such breakpoints where it comes by often.
const PLACES: usize = 512;

#[derive(Debug, Clone, Copy)]
struct Entry {
    pc: u64,
    /// When it was entered: it holds as long as nothing has changed since.
    stamp: u64,
    bits: u32,
}

/// What there was at the last breakpoints, by the virtual addresses of the vCPU's kernel.
pub(super) struct Known {
    places: Box<[Entry]>,
    /// The present one. None of an entry is 0.
    stamp: u64,
    text: &'static Text,
    /// There are entries that aren't for all address spaces.
    is_local: bool,
}

impl Known {
    /// Allocates: only at boot.
    pub(super) fn new(text: &'static Text) -> Self {
        let nothing = Entry { pc: 0, stamp: 0, bits: 0 };
        let places = vec![nothing; PLACES].into_boxed_slice();
        Self { places, stamp: 1, text, is_local: false }
    }

    /// That of its guest.
    pub(super) const fn text(&self) -> &'static Text {
        self.text
    }

    fn place(pc: u64) -> usize {
        (pc >> 1) as usize % PLACES
    }

    /// What is at this address.
    #[inline]
    pub(super) fn find(&mut self, pc: u64) -> Option<u32> {
        let entry = self.places.get(Self::place(pc))?;
        (entry.pc == pc && entry.stamp == self.stamp).then_some(entry.bits)
    }

    /// That is there. `is_global`: in all address spaces.
    pub(super) fn learn(&mut self, pc: u64, bits: u32, is_global: bool) {
        self.is_local |= !is_global;
        if let Some(entry) = self.places.get_mut(Self::place(pc)) {
            *entry = Entry { pc, stamp: self.stamp, bits };
        }
    }

    /// Nothing is known any more.
    #[inline]
    pub(super) fn forget(&mut self) {
        self.stamp += 1;
        self.is_local = false;
    }

    /// The vCPU is in another address space, or has fenced one.
    #[inline]
    pub(super) fn forget_local(&mut self) {
        if self.is_local {
            self.forget();
        }
    }
}
