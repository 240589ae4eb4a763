//! Sets of a table's entries.
use crate::format::ENTRIES;

/// Which entries of a table something holds for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slots([u64; ENTRIES / 64]);

impl Slots {
    pub const NONE: Self = Self([0; ENTRIES / 64]);

    pub const fn insert(&mut self, index: usize) {
        self.0[index / 64] |= 1 << (index % 64);
    }

    pub const fn remove(&mut self, index: usize) {
        self.0[index / 64] &= !(1 << (index % 64));
    }

    pub const fn contains(&self, index: usize) -> bool {
        self.0[index / 64] >> (index % 64) & 1 != 0
    }

    /// Takes one out.
    pub fn pop(&mut self) -> Option<usize> {
        // BOUND: the 8 words of a set.
        let word = self.0.iter().position(|word| *word != 0)?;
        let bit = self.0[word].trailing_zeros() as usize;
        self.0[word] &= self.0[word] - 1;
        Some(word * 64 + bit)
    }
}
