//! Results on the terminal.
use super::{
    results::{MetricResult, Results},
    verdict::{BarResult, MustBe, Verdict, ordered},
};
use crate::table::Rows;
use std::fmt::Write;

/// All of it: cases with their metrics, bars, and what to know about the figures.
pub fn results(results: &Results) -> String {
    let mut text = format!("{}\n\n", results.title);
    if !results.only.is_all() {
        let _ = writeln!(text, "Only a part of the experiment: {}\n", results.only);
    }
    let _ = writeln!(text, "{}\n", cases(results));
    text += &judged(results);
    for problem in super::evaluate::problems(&results.cases) {
        let _ = writeln!(text, "Problem: {problem}");
    }
    let _ = writeln!(text, "{}", results.machine);
    text
}

/// Bars, and what is derived without a limit.
pub fn judged(results: &Results) -> String {
    let mut text = String::new();
    if !results.bars.is_empty() {
        let _ = writeln!(text, "{}\n\n{JUDGED}\n", bars(&results.bars));
    }
    if !results.derived.is_empty() {
        let _ = writeln!(text, "{}\n", derived(results));
    }
    text
}

/// A row for each case, a column for each metric.
fn cases(results: &Results) -> Rows {
    let metrics = results.metrics();
    let columns = metrics.iter().map(|(name, unit)| format!("{name}\n{unit}"));
    let header: Vec<String> = ["case".into()].into_iter().chain(columns).chain(["samples".into()]).collect();
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let mut rows = Rows::new(&header, &header[1..]);
    for case in &results.cases {
        let figures =
            metrics.keys().map(|name| case.metrics.get(*name).map_or_else(|| "-".into(), with_range));
        let samples = case.samples.len().to_string();
        rows.add_row([case.shown(&results.cases)].into_iter().chain(figures).chain([samples]));
    }
    rows
}

fn bars(bars: &[BarResult]) -> Rows {
    let mut rows = Rows::new(&["bar", "value", "must be", "unit", "against the limit", ""], &["value"]);
    for bar in ordered(bars) {
        rows.add_row([
            bar.name.clone(),
            value(bar),
            format!("{} {}", bar.must_be.words(), number(bar.limit)),
            bar.unit.clone(),
            distance(bar),
            verdict(bar),
        ]);
    }
    rows
}

fn derived(results: &Results) -> Rows {
    let mut rows = Rows::new(&["derived figure", "value", "unit", "pairs"], &["value", "pairs"]);
    for derived in &results.derived {
        let value = with_range(&derived.value);
        rows.add_row([derived.name.clone(), value, derived.value.unit.clone(), derived.pairs.to_string()]);
    }
    rows
}

/// Says that results are not of what is built now, for reasons that [`super::provenance::Standing`] knows.
pub fn old(reasons: &[String]) -> String {
    let hypervisor = reasons.iter().any(|reason| reason.starts_with("hypervisor "));
    let what = if hypervisor { "an older hypervisor" } else { "what has changed since" };
    format!("Measured with {what}: {}.", reasons.join("; "))
}

/// What came out for a bar: `1.02 (1.01 to 1.03)`, where it is about pairs.
pub fn value(bar: &BarResult) -> String {
    match (bar.value, bar.range) {
        (Some(median), Some([min, max])) => {
            with_range(&MetricResult { median, min, max, unit: String::new() })
        }
        (value, _) => value.map_or_else(|| "-".into(), number),
    }
}

/// How a bar's value stands against its limit, as a share of the limit: `4.1 % to spare`, `25.0 % too high`. A limit of 0 has no shares: `5 ns to spare`.
pub fn distance(bar: &BarResult) -> String {
    let Some(value) = bar.value else { return "-".into() };
    let room = bar.must_be.room(value, bar.limit);
    let side = match bar.must_be {
        _ if room > 0.0 => "to spare",
        MustBe::AtMost => "too high",
        MustBe::AtLeast => "too low",
    };
    match bar.limit {
        _ if room == 0.0 => "at the limit".into(),
        0.0 => format!("{} {} {side}", number(room.abs()), bar.unit),
        limit => format!("{:.1} % {side}", (room / limit).abs() * 100.0),
    }
}

/// Whether a bar holds, in a word or some, with what decides it.
pub fn verdict(bar: &BarResult) -> String {
    let word = match bar.verdict {
        Verdict::Holds => "holds",
        Verdict::Fails => "FAILS",
        Verdict::Missing => "NO DATA",
        Verdict::Undecided => "undecided",
        Verdict::NotInForm => "no data in this form",
    };
    match (bar.pairs, bar.p) {
        (0, _) => word.into(),
        (1, _) => format!("{word} (1 pair)"),
        (pairs, None) => format!("{word} ({pairs} pairs)"),
        (pairs, Some(p)) => format!("{word} (p = {}, {pairs} pairs)", number((p * 1e4).round() / 1e4)),
    }
}

/// How bars are judged, for people.
pub const JUDGED: &str = "A bar is decided by pairs: its value with the samples of one q (or repetition) at a time. It holds if all of three or four \
     pairs lie inside of its limit, or with five and more the exact one-sided test with their signs gives p of at most 0.05; it fails if that is so for the \
     outside; else, and with fewer than three pairs, it is undecided, which is no pass. A bar about the greatest or least of all runs is \
     decided by that alone.";

/// A figure: whole numbers as they are, others with five figures.
pub fn number(value: f64) -> String {
    rounded(value, 5)
}

/// A figure with so many digits, 1 to 9: whole numbers as they are.
pub fn rounded(value: f64, figures: i32) -> String {
    if value == value.trunc() && value.abs() < 1e15 {
        return format!("{value}");
    }
    let digits = (figures - 1 - value.abs().log10().floor() as i32).clamp(0, 9) as usize;
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Median and, where there is one, range: `1.25 (1.2 to 1.3)`.
pub fn with_range(metric: &MetricResult) -> String {
    match metric.min == metric.max {
        true => number(metric.median),
        false => format!("{} ({} to {})", number(metric.median), number(metric.min), number(metric.max)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::experiment::Bar;

    #[test]
    fn a_bar_says_how_far_it_is_from_its_limit() {
        let bar = |value, at_most, at_least| {
            let bar = Bar::for_test("bar", "1", at_most, at_least);
            let bar = BarResult::new(&bar, "bar".into(), Verdict::Undecided);
            BarResult { value: Some(value), pairs: 2, ..bar }
        };
        assert_eq!(distance(&bar(1.03, None, Some(1.0))), "3.0 % to spare");
        assert_eq!(distance(&bar(1.03, Some(1.0), None)), "3.0 % too high");
        assert_eq!(distance(&bar(0.97, None, Some(1.0))), "3.0 % too low");
        assert_eq!(distance(&bar(-1300.0, Some(0.0), None)), "1300 x to spare");
        assert_eq!(distance(&bar(-2000.0, Some(-3000.0), None)), "33.3 % too high");
        assert_eq!(distance(&bar(1.0, Some(1.0), None)), "at the limit");
        assert_eq!(verdict(&bar(1.0, Some(1.0), None)), "undecided (2 pairs)");
    }

    #[test]
    fn figures_are_short_but_exact_where_they_are_whole() {
        assert_eq!(number(334_567_891.0), "334567891");
        assert_eq!(number(1.034_567_89), "1.0346");
        assert_eq!(number(0.001_234_56), "0.0012346");
        assert_eq!(number(1234.5), "1234.5");
        assert_eq!(number(0.0), "0");
        let metric = MetricResult { median: 1.25, min: 1.2, max: 1.3, unit: "s".into() };
        assert_eq!(with_range(&metric), "1.25 (1.2 to 1.3)");
    }
}
