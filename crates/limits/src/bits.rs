//! Bits of a word.

/// The number of the lowest bit that is set; 64 if none is.
///
/// Out of line: harts without Zbb have no instruction for it, and a compiler writes a table of 64 bytes for each place that asks. The place where an RTOS can't wait for a
/// call, the choice of who runs next (`Lists::first` of `ainori-sched`), asks the word itself.
#[inline(never)]
#[must_use]
pub const fn lowest_bit(word: u64) -> u32 {
    word.trailing_zeros()
}
