//! Bars that can hardly fail: what was measured could become much worse, and they would still hold.
use super::verdict::{BarResult, MustBe};

/// Times that a value may be away from its limit.
pub const MOST: f64 = 3.0;
/// A ratio's distance from 1 that counts at least: runs differ by so much.
const NOISE: f64 = 0.02;
/// How far above or below 1 a ratio may be whose limit only says that it is no worse than 1.
const NO_WORSE: f64 = 1.5;

/// How many times worse the value could be before the bar fails, from 1 on. `None` without a value, if it doesn't hold, and for 0 with a
/// limit of 0, which is as tight as can be.
///
/// Of a ratio (its unit begins with `x `) what counts is its distance from 1: a bar of 0.8 leaves a loss of 0.05 four times as much. If
/// the limit is at 1, or value and limit are at different sides of it, then the bar only says "no worse", and the
/// ratio itself is compared.
pub fn slack(bar: &BarResult) -> Option<f64> {
    let value = bar.value.filter(|value| bar.must_be.room(*value, bar.limit) >= 0.0)?;
    if bar.limit == 0.0 {
        return (value != 0.0).then_some(f64::INFINITY);
    }
    // A bound above zero, or a minimum below: the limit is the greater number of the two.
    let is_limit_greater = (bar.must_be == MustBe::AtMost) == (bar.limit > 0.0);
    let times = if is_limit_greater { bar.limit / value } else { value / bar.limit };
    if !bar.unit.starts_with("x ") {
        return Some(if times < 0.0 { f64::INFINITY } else { times });
    }
    let (value_from_1, limit_from_1) = (value - 1.0, bar.limit - 1.0);
    if limit_from_1.abs() <= NOISE || value_from_1 * limit_from_1 < 0.0 {
        return Some(1.0 + (times - 1.0) * (MOST - 1.0) / (NO_WORSE - 1.0));
    }
    // Both are a loss, or both are a gain.
    let (value_from_1, limit_from_1) = (value_from_1.abs().max(NOISE), limit_from_1.abs());
    let is_gain = (bar.limit > 1.0) == (bar.must_be == MustBe::AtLeast);
    Some(if is_gain { value_from_1 / limit_from_1 } else { limit_from_1 / value_from_1 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::{experiment::Bar, verdict::Verdict};

    fn of(value: f64, at_most: Option<f64>, at_least: Option<f64>, unit: &str) -> Option<f64> {
        let bar = BarResult::new(&Bar::for_test("bar", "1", at_most, at_least), "bar".into(), Verdict::Holds);
        slack(&BarResult { value: Some(value), unit: unit.into(), ..bar })
            .map(|slack| (slack * 100.0).round() / 100.0)
    }

    #[test]
    fn a_bound_is_compared_with_its_value() {
        assert_eq!(of(600.0, Some(5000.0), None, "ns"), Some(8.33));
        assert_eq!(of(97.0, None, Some(1.0), "sections"), Some(97.0));
        assert_eq!(of(0.0, Some(100.0), None, "ns"), Some(f64::INFINITY));
        assert_eq!(of(0.0, Some(0.0), None, "ticks"), None);
        assert_eq!(of(-1300.0, Some(0.0), None, "ns"), Some(f64::INFINITY));
        assert_eq!(of(-5600.0, Some(-3000.0), None, "ns"), Some(1.87));
        assert_eq!(of(601.0, Some(600.0), None, "ns"), None, "it fails");
    }

    #[test]
    fn of_a_ratio_the_distance_from_1_is_compared() {
        assert_eq!(of(0.95, None, Some(0.8), "x Zawrs"), Some(4.0));
        assert_eq!(of(2.78, None, Some(1.05), "x uncured"), Some(35.6));
        assert_eq!(of(1.035, Some(1.085), None, "x bare"), Some(2.43));
        assert_eq!(of(0.6, Some(0.8), None, "x without"), Some(2.0));
        assert_eq!(of(1.0, Some(1.2), None, "x idle"), Some(10.0), "it is at 1, within the noise");
    }

    #[test]
    fn what_is_to_be_no_worse_than_1_may_be_better_by_half() {
        assert_eq!(of(1.05, None, Some(0.99), "x ideal"), Some(1.24));
        assert_eq!(of(1.5, None, Some(1.0), "x other"), Some(3.0));
        assert!(of(2.5, None, Some(1.0), "x other") > Some(3.0));
    }
}
