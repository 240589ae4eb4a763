//! Bits of a word.
#![expect(clippy::indexing_slicing, reason = "each index is a remainder by the length of the table")]

/// A de Bruijn sequence: each run of 6 bits occurs once in it. So what it is multiplied by is told by the upper 6 bits of the product, if that is
/// one less than a power of two.
const SEQUENCE: u64 = 0x03f7_9d71_b4cb_0a89;

/// By these 6 bits: how many bits the factor has, less one.
static LENGTHS: [u8; 64] = {
    let mut lengths = [0; 64];
    let mut length = 0;
    // BOUND: 64, in the compiler.
    while length < u64::BITS {
        lengths[place(u64::MAX >> (u64::BITS - 1 - length))] = length as u8;
        length += 1;
    }
    lengths
};

const fn place(low_bits: u64) -> usize {
    (low_bits.wrapping_mul(SEQUENCE) >> 58) as usize % 64
}

/// The number of the lowest bit that is set, of a word that has one.
///
/// Harts without Zbb have no instruction for it. For [`u64::trailing_zeros`] the compiler writes a table of 64 bytes for each function that asks; this one is
/// shared. The choice of who runs next (`Lists::first` of `ainori-sched`) asks the compiler's nevertheless: there it takes an RTOS fewer instructions.
#[inline]
#[must_use]
pub const fn lowest_bit(word: u64) -> u32 {
    LENGTHS[place(word ^ word.wrapping_sub(1))] as u32
}

/// As [`lowest_bit`], for where a call matters less than its size.
#[inline(never)]
#[must_use]
pub const fn lowest_bit_out_of_line(word: u64) -> u32 {
    lowest_bit(word)
}

#[cfg(test)]
mod tests {
    use super::lowest_bit;

    #[test]
    fn the_lowest_bit_is_found_whatever_is_above() {
        for bit in 0..64 {
            for above in [0, u64::MAX, 0x0123_4567_89ab_cdef, 0xaaaa_aaaa_aaaa_aaaa] {
                assert_eq!(lowest_bit((above << 1 | 1) << bit), bit);
            }
        }
    }
}
