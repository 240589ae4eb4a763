//! Numbers that look random and are the same for the same seed, whatever libraries and computers there are.

/// splitmix64 (Steele, Lea and Flood, 2014): a counter, scrambled.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// The sequence of this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A number below `end`, which is not 0. (Not quite uniform: that would matter for an `end` near 2^64 only.)
    pub fn below(&mut self, end: u64) -> u64 {
        self.bits() % end
    }

    /// A number from `least` to `most`, both included.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    /// True in so many of 100 cases.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of these, all equally likely; there must be one.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    /// One of these by their weights, of which at least one is not 0.
    pub fn weighted<T: Copy>(&mut self, from: &[(u64, T)]) -> T {
        let mut left = self.below(from.iter().map(|(weight, _)| weight).sum());
        for (weight, value) in from {
            if left < *weight {
                return *value;
            }
            left -= weight;
        }
        unreachable!("`left` was below the sum of all weights")
    }

    /// Puts these into a random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, values: &mut [T]) {
        for last in (1..values.len()).rev() {
            values.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_that_of_the_authors() {
        let mut rng = Rng::new(1_234_567);
        let wanted = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!([rng.bits(), rng.bits(), rng.bits()], wanted);
    }

    #[test]
    fn only_what_has_weight_is_chosen() {
        let mut rng = Rng::new(1);
        assert!((0..1000).all(|_| rng.weighted(&[(0, 'a'), (3, 'b'), (0, 'c')]) == 'b'));
    }
}
