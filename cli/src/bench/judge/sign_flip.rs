//! Whether paired differences lie on one side of zero: an exact test by flips of their signs.
//!
//! If there is no difference, then each of the n differences could as well have had the other sign. Of the 2^n ways to sign
//! them, `p` is the share whose sum is as great as that which was seen, or greater. Three differences give p = 1/8 at best, four 1/16, five
//! 1/32. (Fisher, "The Design of Experiments", section 21; the one-sided permutation test for paired samples.)

/// The share of all ways to sign `differences` that give their sum or a greater one: 2^-n to 1. At most 40 differences.
pub fn p(differences: &[f64]) -> f64 {
    let (left, right) = differences.split_at(differences.len() / 2);
    let seen: f64 = differences.iter().sum();
    // Sums of the same numbers in another order differ by a rounding error.
    let rounding = 1e-12 * differences.iter().map(|difference| difference.abs()).sum::<f64>();
    let mut sums = signed_sums(right);
    sums.sort_by(f64::total_cmp);
    let greater = |left: f64| sums.len() - sums.partition_point(|right| left + right < seen - rounding);
    let count: usize = signed_sums(left).into_iter().map(greater).sum();
    count as f64 / 2f64.powi(differences.len() as i32)
}

/// The sums of all ways to sign some numbers.
fn signed_sums(numbers: &[f64]) -> Vec<f64> {
    numbers.iter().fold(vec![0.0], |sums, number| {
        sums.into_iter().flat_map(|sum| [sum + number, sum - number]).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_on_one_side_is_as_rare_as_can_be() {
        assert_eq!(p(&[0.1, 0.2, 0.3]), 1.0 / 8.0);
        assert_eq!(p(&[0.1; 5]), 1.0 / 32.0);
        assert_eq!(p(&[-0.1, -0.2, -0.3]), 1.0);
        assert_eq!(p(&[]), 1.0);
    }

    #[test]
    fn sizes_count_as_well_as_signs() {
        // +-1 +-2 +-4 -> 5 and 7 are at least 5.
        assert_eq!(p(&[-1.0, 2.0, 4.0]), 2.0 / 8.0);
        // A small one of the other side says less than a great one.
        assert!(p(&[-0.1, 2.0, 2.0, 2.0]) < p(&[-2.5, 2.0, 2.0, 2.0]));
    }

    #[test]
    fn many_are_counted_without_going_through_all_ways() {
        assert_eq!(p(&[1.0; 30]), 2f64.powi(-30));
        assert!((p(&[1.0, -1.0].repeat(10)) - 0.588).abs() < 0.001, "binomial: 10 or more of 20");
    }
}
