//! Fences for an address that were deferred: those that address spaces have before them which weren't active then.
#![expect(clippy::indexing_slicing, reason = "no remainder is too large")]
use crate::Virtual;

/// So many are kept. An address space that has more before it is forgotten as a whole. In tests, where there are few fences, that is to be seen all the same.
const MOST: u64 = if cfg!(test) { 6 } else { 256 };

/// The addresses of the last fences of all address spaces. Each has a number: how many there were before.
pub(crate) struct DeferredFences {
    addresses: [Virtual; MOST as usize],
    count: u64,
}

impl DeferredFences {
    pub const NONE: Self = Self { addresses: [Virtual(0); MOST as usize], count: 0 };

    /// The number of the next one.
    pub const fn next(&self) -> u64 {
        self.count
    }

    pub const fn push(&mut self, address: Virtual) {
        self.addresses[(self.count % MOST) as usize] = address;
        self.count += 1;
    }

    /// Is one with a number kept still, and all behind it?
    pub const fn keeps(&self, number: u64) -> bool {
        self.count - number <= MOST
    }

    /// One that is [kept](Self::keeps). `None`: there is none with this number yet.
    pub const fn get(&self, number: u64) -> Option<Virtual> {
        if number < self.count { Some(self.addresses[(number % MOST) as usize]) } else { None }
    }
}
