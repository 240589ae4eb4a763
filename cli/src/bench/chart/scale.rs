//! Axes whose values may be shown by their logarithm.
use miette::{Result, miette};
use std::ops::Range;

/// How an axis places its values.
#[derive(Clone, Copy)]
pub struct Scale {
    /// By their logarithm.
    pub log: bool,
}

impl Scale {
    /// Refuses what has no place on it: `what` says what that is.
    pub fn check(self, what: &str, mut values: impl Iterator<Item = f64>) -> Result<()> {
        match values.find(|value| self.log && *value <= 0.0) {
            Some(value) => Err(miette!(
                help = "values must be above 0 there: leave out `x_log`",
                "{what} at {value} has no place on a logarithmic axis"
            )),
            None => Ok(()),
        }
    }

    /// Where a value is that [`Self::check`] doesn't refuse.
    pub fn place(self, value: f64) -> f64 {
        if self.log { value.log10() } else { value }
    }

    /// Text of a tick. A logarithmic axis names only whole powers of ten.
    pub fn label(self, place: f64) -> String {
        match self.log {
            true if (place - place.round()).abs() > 1e-6 => String::new(),
            true => number(10f64.powf(place.round())),
            false => number(place),
        }
    }

    /// The axis around values: to whole powers of ten, or with a little room.
    pub fn around(self, values: impl Iterator<Item = f64>, from_zero: bool) -> Range<f64> {
        let places = values.map(|value| self.place(value));
        let (low, high) = places.fold((f64::MAX, f64::MIN), |(low, high), at| (low.min(at), high.max(at)));
        if self.log {
            return low.floor()..(low.floor() + 1.0).max(high.ceil());
        }
        let room = if high > low { (high - low) * 0.05 } else { high.abs().max(1.0) * 0.05 };
        let low = if from_zero { low.min(0.0) } else { low - room };
        low..high + room
    }
}

/// A number without needless digits.
pub fn number(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 100.0 || size == 0.0 => 0,
        size if size >= 1.0 => 2,
        size => (2.0 - size.log10()).ceil() as usize,
    };
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_on_axes_are_short() {
        assert_eq!(number(0.001), "0.001");
        assert_eq!(number(1000.0), "1000");
        assert_eq!(number(0.25), "0.25");
        assert_eq!(number(0.0), "0");
        assert_eq!(Scale { log: true }.label(2.5), "");
        assert_eq!(Scale { log: true }.label(-3.0), "0.001");
    }

    #[test]
    fn what_has_no_logarithm_is_refused_on_such_an_axis_only() {
        let refused = |log, value: f64| Scale { log }.check("the line", [1.0, value].into_iter()).err();
        for value in [0.0, -0.0, -5.0] {
            assert!(refused(false, value).is_none());
            let error = refused(true, value).expect("it is refused").to_string();
            assert!(error.contains(&format!("the line at {value} has no place")), "{error}");
        }
        assert!(refused(true, 0.001).is_none());
    }
}
