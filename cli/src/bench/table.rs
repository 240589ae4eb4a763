//! Results on the terminal.
use super::results::{BarResult, MetricResult, Results};
use crate::table::table;
use std::fmt::Write;

/// All of it: cases with their metrics, bars, and what to know about the figures.
pub fn results(results: &Results) -> String {
    let mut text = format!("{}\n\n", results.title);
    if !results.only.is_all() {
        let _ = writeln!(text, "Only a part of the experiment: {}\n", results.only);
    }
    let _ = writeln!(text, "{}\n", cases(results));
    if !results.bars.is_empty() {
        let _ = writeln!(text, "{}\n", bars(&results.bars));
    }
    for problem in super::evaluate::problems(&results.cases) {
        let _ = writeln!(text, "Problem: {problem}");
    }
    let _ = writeln!(text, "{}", results.machine);
    text
}

/// A row for each case, a column for each metric.
fn cases(results: &Results) -> comfy_table::Table {
    let metrics = results.metrics();
    let columns = metrics.iter().map(|(name, unit)| format!("{name}\n{unit}"));
    let header: Vec<String> = ["case".into()].into_iter().chain(columns).chain(["samples".into()]).collect();
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let mut rows = table(&header, &header[1..]);
    for case in &results.cases {
        let figures =
            metrics.keys().map(|name| case.metrics.get(*name).map_or_else(|| "-".into(), with_range));
        let samples = case.samples.len().to_string();
        rows.add_row([case.shown(&results.cases)].into_iter().chain(figures).chain([samples]));
    }
    rows
}

fn bars(bars: &[BarResult]) -> comfy_table::Table {
    let mut rows = table(&["bar", "value", "must be", "unit", ""], &["value"]);
    for bar in bars {
        rows.add_row([
            bar.name.clone(),
            value(bar),
            format!("{} {}", bar.must_be.words(), number(bar.limit)),
            bar.unit.clone(),
            verdict(bar).into(),
        ]);
    }
    rows
}

/// Says that results are not of what is built now, for reasons that [`super::provenance::Standing`] knows.
pub fn old(reasons: &[String]) -> String {
    let hypervisor = reasons.iter().any(|reason| reason.starts_with("hypervisor "));
    let what = if hypervisor { "an older hypervisor" } else { "what has changed since" };
    format!("Measured with {what}: {}.", reasons.join("; "))
}

/// What came out for a bar.
pub fn value(bar: &BarResult) -> String {
    let none = if bar.holds.is_none() { "-" } else { "missing" };
    bar.value.map_or_else(|| none.into(), number)
}

/// Whether a bar holds, in a word or some.
pub fn verdict(bar: &BarResult) -> &'static str {
    match (bar.value, bar.holds) {
        (_, None) => "not in this form",
        (None, _) => "unknown",
        (_, Some(true)) => "holds",
        (_, Some(false)) => "FAILS",
    }
}

/// A figure: whole numbers as they are, others with five figures.
pub fn number(value: f64) -> String {
    if value == value.trunc() && value.abs() < 1e15 {
        return format!("{value}");
    }
    let digits = (4 - value.abs().log10().floor() as i32).clamp(0, 9) as usize;
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
