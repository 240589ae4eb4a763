//! A histogram of durations that takes constant time and memory to fill: log-linear buckets, as in HDR histograms.
//!
//! Values below [`EXACT`] have a bucket each; above, every power of two is split into [`EXACT`] / 2 buckets, so a value is
//! known to within 1/32 of itself.

/// Values below this one are kept exactly.
pub const EXACT: u64 = 64;
/// Largest value that has a bucket of its own; larger ones count as this.
pub const LARGEST: u64 = u32::MAX as u64;
const HALF_BITS: u32 = EXACT.ilog2() - 1;
const HALF: usize = 1 << HALF_BITS;
/// Number of buckets.
pub const BUCKETS: usize = bucket(LARGEST) + 1;

/// The bucket of a value.
#[inline]
pub const fn bucket(value: u64) -> usize {
    if value < EXACT {
        return value as usize;
    }
    let value = if value > LARGEST { LARGEST } else { value };
    let shift = value.ilog2() - HALF_BITS;
    shift as usize * HALF + (value >> shift) as usize
}

/// The largest value of a bucket below [`BUCKETS`].
pub const fn upper_bound(bucket: usize) -> u64 {
    if (bucket as u64) < EXACT {
        return bucket as u64;
    }
    let shift = bucket / HALF - 1;
    let step = (bucket - shift * HALF) as u64;
    ((step + 1) << shift) - 1
}

/// Counts per bucket, with the exact extremes and sum. Durations are in ticks of `time`.
#[derive(Debug, Clone)]
pub struct Histogram {
    counts: [u32; BUCKETS],
    /// How many values.
    pub count: u64,
    /// Sum of all values.
    pub sum: u64,
    /// Smallest value; `u64::MAX` while there is none.
    pub min: u64,
    /// Largest value.
    pub max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: [0; BUCKETS], count: 0, sum: 0, min: u64::MAX, max: 0 }
    }
}

impl Histogram {
    /// Counts a value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        if let Some(count) = self.counts.get_mut(bucket(value)) {
            *count += 1;
        }
        self.count += 1;
        self.sum += value;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// The buckets that aren't empty: largest value and count, by rising value.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u32)> {
        self.counts
            .iter()
            .enumerate()
            .filter(|(_, count)| **count != 0)
            .map(|(index, count)| (upper_bound(index), *count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn buckets_follow_each_other_without_gap() {
        for index in 1..BUCKETS {
            assert_eq!(bucket(upper_bound(index - 1) + 1), index, "the value after bucket {}", index - 1);
        }
        assert_eq!(upper_bound(BUCKETS - 1), LARGEST);
    }

    proptest! {
        #[test]
        fn a_value_is_close_to_its_bound(value in 0..=LARGEST) {
            let bound = upper_bound(bucket(value));
            prop_assert!(value <= bound && bound - value <= value / 32);
        }

        #[test]
        fn nothing_is_lost(values in prop::collection::vec(0..u64::MAX >> 8, 1..100)) {
            let mut histogram = Histogram::default();
            values.iter().for_each(|&value| histogram.record(value));
            prop_assert_eq!(histogram.buckets().map(|(_, count)| u64::from(count)).sum::<u64>(), values.len() as u64);
            prop_assert_eq!(histogram.max, *values.iter().max().unwrap());
            prop_assert_eq!(histogram.min, *values.iter().min().unwrap());
            prop_assert_eq!(histogram.sum, values.iter().sum::<u64>());
        }
    }
}
