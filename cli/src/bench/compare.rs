//! What changed between two results beyond the error bar: where the ranges over the samples don't overlap.
use super::{
    provenance,
    results::{CaseResult, MetricResult, Results},
    table::{value, verdict, with_range},
    verdict::BarResult,
};
use crate::table::Rows;
use std::fmt::Write;

/// A metric whose ranges before and after don't overlap.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The case, with its parameters.
    pub case: String,
    /// The metric.
    pub metric: String,
    /// As it was.
    pub before: MetricResult,
    /// As it is.
    pub after: MetricResult,
}

/// What changed between two results.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Comparison {
    /// Metrics beyond the error bar.
    pub changes: Vec<Change>,
    /// Bars that are judged otherwise than before.
    pub bars: Vec<(BarResult, BarResult)>,
    /// Metrics that were compared.
    pub compared: usize,
    /// Metrics that were compared of which one side has a single sample: they have no error bar.
    pub single: usize,
    /// What only one of the results has, in words.
    pub unmatched: Vec<String>,
}

/// Compares two results of the same experiment.
pub fn compare(before: &Results, after: &Results) -> Comparison {
    let mut comparison = Comparison::default();
    let same = |a: &CaseResult, b: &CaseResult| a.name == b.name && a.params == b.params;
    for old in &before.cases {
        let Some(new) = after.cases.iter().find(|new| same(old, new)) else {
            comparison.unmatched.push(format!("{}: only before", old.shown(&before.cases)));
            continue;
        };
        for (name, metric) in &old.metrics {
            let Some(now) = new.metrics.get(name) else {
                comparison.unmatched.push(format!("{}, {name}: only before", old.shown(&before.cases)));
                continue;
            };
            comparison.compared += 1;
            comparison.single += usize::from(old.samples.len() == 1 || new.samples.len() == 1);
            if metric.max < now.min || now.max < metric.min {
                comparison.changes.push(Change {
                    case: old.shown(&before.cases),
                    metric: name.clone(),
                    before: metric.clone(),
                    after: now.clone(),
                });
            }
        }
    }
    let is_new = |new: &&CaseResult| !before.cases.iter().any(|old| same(old, new));
    comparison.unmatched.extend(
        after.cases.iter().filter(is_new).map(|new| format!("{}: only after", new.shown(&after.cases))),
    );
    for old in &before.bars {
        let new = after.bars.iter().find(|new| new.name == old.name);
        comparison
            .bars
            .extend(new.filter(|new| new.verdict != old.verdict).map(|new| (old.clone(), new.clone())));
    }
    comparison
}

/// A comparison for people.
pub fn show(comparison: &Comparison, before: &Results, after: &Results) -> String {
    let mut text = format!(
        "{}: {} ({:?}) and {} ({:?})\n",
        before.experiment, before.date, before.form, after.date, after.form
    );
    if before.form != after.form {
        let _ = writeln!(text, "One form is short and one is full: differences may mean nothing.");
    }
    if before.only != after.only {
        let part =
            |results: &Results| if results.only.is_all() { "all".into() } else { results.only.to_string() };
        let _ = writeln!(text, "Not the same part of it was run: {}, and {}.", part(before), part(after));
    }
    let programs = provenance::differences(before, &after.versions, "after");
    if !programs.is_empty() {
        let _ = writeln!(text, "Not of the same programs: {}.", programs.join("; "));
    }
    if comparison.single > 0 {
        let _ = writeln!(
            text,
            "Without an error bar, as one side has a single sample: {} of the metrics. Any difference of theirs is listed, and may mean \
             nothing.",
            comparison.single
        );
    }
    if !comparison.changes.is_empty() {
        let mut rows = Rows::new(
            &["case", "metric", "before", "after", "change", "unit"],
            &["before", "after", "change"],
        );
        for change in &comparison.changes {
            rows.add_row([
                change.case.clone(),
                change.metric.clone(),
                with_range(&change.before),
                with_range(&change.after),
                percent(change.before.median, change.after.median),
                change.after.unit.clone(),
            ]);
        }
        let _ = writeln!(text, "\n{rows}\n");
    }
    for (old, new) in &comparison.bars {
        let _ = writeln!(
            text,
            "Bar {}: {} ({}), was {} ({})",
            new.name,
            verdict(new),
            value(new),
            verdict(old),
            value(old)
        );
    }
    for unmatched in &comparison.unmatched {
        let _ = writeln!(text, "{unmatched}");
    }
    let _ = writeln!(
        text,
        "{} of {} metrics changed beyond the error bar (the range over the samples).",
        comparison.changes.len(),
        comparison.compared
    );
    text
}

fn percent(before: f64, after: f64) -> String {
    if before == 0.0 { "-".into() } else { format!("{:+.1} %", (after / before - 1.0) * 100.0) }
}

#[cfg(test)]
mod tests;
