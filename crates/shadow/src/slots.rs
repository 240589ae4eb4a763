//! Sets of a table's entries.
#![expect(clippy::indexing_slicing, reason = "no remainder is too large")]
use crate::ROW;
use crate::format::ENTRIES;

/// Which entries of a table something holds for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slots([u64; WORDS]);

const WORDS: usize = ENTRIES / 64;
const ROW_MASK: u64 = (1 << ROW) - 1;

impl Slots {
    pub const NONE: Self = Self([0; WORDS]);

    pub const fn insert(&mut self, index: usize) {
        self.0[index / 64 % WORDS] |= 1 << (index % 64);
    }

    pub const fn remove(&mut self, index: usize) {
        self.0[index / 64 % WORDS] &= !(1 << (index % 64));
    }

    pub const fn contains(&self, index: usize) -> bool {
        self.0[index / 64 % WORDS] >> (index % 64) & 1 != 0
    }

    /// Which of a row are in it: bit 0 is that of the first entry, whose index is given.
    pub const fn row(&self, first: usize) -> u64 {
        self.0[first / 64 % WORDS] >> (first % 64) & ROW_MASK
    }

    /// Those of a row that are 1 are in it from now on.
    pub const fn insert_row(&mut self, first: usize, bits: u64) {
        self.0[first / 64 % WORDS] |= (bits & ROW_MASK) << (first % 64);
    }

    pub fn is_empty(&self) -> bool {
        // BOUND: the 8 words of a set. (Compared with an empty one it would be byte by byte.)
        self.0.iter().all(|word| *word == 0)
    }

    /// Takes out as many rows as `most` that have any, each with a call that gets its first entry. How many more it could have been.
    pub fn drain_rows(&mut self, most: usize, mut each: impl FnMut(usize)) -> usize {
        let mut left = most;
        // BOUND: the 8 words of a set.
        for (number, word) in self.0.iter_mut().enumerate() {
            let mut rest = *word;
            let mut first = number * 64;
            // BOUND: the 8 rows of a word, and `most` of them with a call.
            while rest != 0 {
                if rest & ROW_MASK != 0 {
                    if left == 0 {
                        *word = rest << (first % 64);
                        return 0;
                    }
                    left -= 1;
                    each(first);
                }
                rest >>= ROW;
                first += ROW;
            }
            *word = 0;
        }
        left
    }
}
