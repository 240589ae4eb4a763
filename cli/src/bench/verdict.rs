//! A bar, what came out for it, and whether it holds.
use super::experiment::Bar;
use serde::{Deserialize, Serialize};

/// Whether a bar holds. In the order in which a report lists them: what needs an eye comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It does not.
    Fails,
    /// A figure that it needs is missing. That is no pass.
    Missing,
    /// The form has none of the values that it is for.
    NotInForm,
    /// There are too few runs to tell, or they disagree. That is no pass either.
    Undecided,
    /// It does.
    Holds,
}

impl Verdict {
    /// Is there nothing to judge the bar by?
    pub fn has_no_data(self) -> bool {
        matches!(self, Self::Missing | Self::NotInForm)
    }
}

/// Exit code if a bar fails, or a figure that it needs is missing.
pub const FAILED: u8 = 1;
/// Exit code if no bar fails, but one is undecided.
pub const UNDECIDED: u8 = 3;

/// How a value must stand to its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MustBe {
    /// Not greater.
    #[serde(rename = "at most")]
    AtMost,
    /// Not less.
    #[serde(rename = "at least")]
    AtLeast,
}

impl MustBe {
    /// How far a value is inside the limit, in the value's unit: negative is outside.
    pub fn room(self, value: f64, limit: f64) -> f64 {
        match self {
            Self::AtMost => limit - value,
            Self::AtLeast => value - limit,
        }
    }

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::AtMost => "at most",
            Self::AtLeast => "at least",
        }
    }
}

/// What came out for a bar.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "Stored")]
pub struct BarResult {
    /// For people.
    pub name: String,
    /// What came out: the median over the pairs, or over all runs where the bar is about their least or greatest. `None` if a
    /// figure is missing.
    pub value: Option<f64>,
    /// The least and the greatest value over the pairs; `None` for a bar about the least or greatest of all runs.
    pub range: Option<[f64; 2]>,
    /// Runs that were compared with each other, one pair for each q or repetition; 0 for a bar about the least or greatest of all runs.
    pub pairs: usize,
    /// Of a bar that was decided by pairs: how probable as clear a result were if there were no difference to the limit.
    pub p: Option<f64>,
    /// Unit of value and limit.
    pub unit: String,
    /// How the value must stand to the limit: `at most` or `at least`.
    pub must_be: MustBe,
    /// The limit.
    pub limit: f64,
    /// Whether it is so.
    pub verdict: Verdict,
}

/// A bar's result as it is in a file. Files from before 25 November 2026 have `holds`, and compared medians.
#[derive(Deserialize)]
struct Stored {
    name: String,
    value: Option<f64>,
    range: Option<[f64; 2]>,
    #[serde(default)]
    pairs: usize,
    p: Option<f64>,
    unit: String,
    must_be: MustBe,
    limit: f64,
    holds: Option<bool>,
    verdict: Option<Verdict>,
}

impl From<Stored> for BarResult {
    fn from(stored: Stored) -> Self {
        let Stored { name, value, range, pairs, p, unit, must_be, limit, holds, verdict } = stored;
        let verdict = verdict.unwrap_or(match (value, holds) {
            (_, None) => Verdict::NotInForm,
            (None, _) => Verdict::Missing,
            (_, Some(true)) => Verdict::Holds,
            (_, Some(false)) => Verdict::Fails,
        });
        Self { name, value, range, pairs, p, unit, must_be, limit, verdict }
    }
}

impl BarResult {
    /// A bar of which nothing is known yet but its limit; `name` is for people.
    pub fn new(bar: &Bar, name: String, verdict: Verdict) -> Self {
        let (must_be, limit) = match (bar.at_most, bar.at_least) {
            (Some(limit), _) => (MustBe::AtMost, limit),
            (None, limit) => (MustBe::AtLeast, limit.unwrap_or(f64::INFINITY)),
        };
        let unit = bar.unit.clone();
        Self { name, value: None, range: None, pairs: 0, p: None, unit, must_be, limit, verdict }
    }
}

/// The exit code that bars mean: 0 if each holds that the form has values for, [`FAILED`] or [`UNDECIDED`].
pub fn code(bars: &[BarResult]) -> u8 {
    let has = |verdict| bars.iter().any(|bar| bar.verdict == verdict);
    match () {
        () if has(Verdict::Fails) || has(Verdict::Missing) => FAILED,
        () if has(Verdict::Undecided) => UNDECIDED,
        () => 0,
    }
}

/// The bars in the order of a report: those that fail first, then those that nothing is known of, then the undecided ones.
pub fn ordered(bars: &[BarResult]) -> Vec<&BarResult> {
    let mut ordered: Vec<_> = bars.iter().collect();
    ordered.sort_by_key(|bar| bar.verdict);
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_before_are_still_read() {
        let read = |rest: &str| -> BarResult {
            let text =
                format!(r#"{{"name": "a", "unit": "ns", "must_be": "at most", "limit": 2.0, {rest}}}"#);
            serde_json::from_str(&text).unwrap()
        };
        assert_eq!(read(r#""value": 1.0, "holds": true"#).verdict, Verdict::Holds);
        assert_eq!(read(r#""value": 3.0, "holds": false"#).verdict, Verdict::Fails);
        assert_eq!(read(r#""value": null, "holds": false"#).verdict, Verdict::Missing);
        assert_eq!(read(r#""value": null, "holds": null"#).verdict, Verdict::NotInForm);
        let new = read(r#""value": 1.0, "verdict": "undecided", "pairs": 2, "range": [0.5, 1.5]"#);
        assert_eq!((new.verdict, new.pairs, new.range), (Verdict::Undecided, 2, Some([0.5, 1.5])));
    }

    #[test]
    fn what_fails_comes_first_then_what_has_no_data_and_then_what_is_undecided() {
        let verdicts =
            [Verdict::Holds, Verdict::Undecided, Verdict::NotInForm, Verdict::Missing, Verdict::Fails];
        let bar = Bar::for_test("bar", "1", None, Some(1.0));
        let bars = verdicts.map(|verdict| BarResult::new(&bar, "bar".into(), verdict));
        let order: Vec<_> = ordered(&bars).iter().map(|bar| bar.verdict).collect();
        let wanted =
            [Verdict::Fails, Verdict::Missing, Verdict::NotInForm, Verdict::Undecided, Verdict::Holds];
        assert_eq!(order, wanted);
        assert_eq!([code(&bars), code(&bars[..4]), code(&bars[4..])], [FAILED; 3]);
        assert_eq!([code(&bars[..3]), code(&bars[2..3]), code(&[])], [UNDECIDED, 0, 0]);
    }
}
