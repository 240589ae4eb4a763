//! Tables of results and bars, for pages in Markdown.
use crate::bench::{
    experiment::Form,
    judge,
    results::Results,
    table::{distance, number, value, verdict},
    verdict::{BarResult, Verdict},
};
use std::{cmp::Reverse, fmt::Write};

/// The q's, hypervisor and date of results: `q = 240, 250, 260; hypervisor ea9e6469f655f9a7, 2026-11-22`.
pub fn source(results: &Results) -> String {
    let (q, versions) = (slices(results), &results.versions);
    format!("{q}; hypervisor {}, {}", versions.kernel, day(results))
}

/// `q = 240, 250`, or how many repetitions.
fn slices(results: &Results) -> String {
    let q: Vec<_> = results.versions.q.iter().map(ToString::to_string).collect();
    let most = results.cases.iter().map(|case| case.samples.len()).max().unwrap_or(0);
    if q.is_empty() { format!("{most} repetitions") } else { format!("q = {}", q.join(", ")) }
}

fn day(results: &Results) -> &str {
    results.date.split('T').next().unwrap_or_default()
}

/// A row for each of the results: those with most failing bars first, then those with most bars without data, then with most undecided ones.
/// "Older" is a hypervisor that isn't the one of the newest result.
pub fn results(all: &[(String, Results)]) -> String {
    let counted = |results: &Results, verdicts: &[Verdict]| {
        results.bars.iter().filter(|bar| verdicts.contains(&bar.verdict)).count()
    };
    let mut rows: Vec<_> = all
        .iter()
        .map(|(name, results)| {
            (
                counted(results, &[Verdict::Fails]),
                counted(results, &[Verdict::Missing, Verdict::NotInForm]),
                counted(results, &[Verdict::Undecided]),
                counted(results, &[Verdict::Holds]),
                name,
                results,
            )
        })
        .collect();
    rows.sort_by_key(|(fails, without, undecided, _, name, _)| {
        (Reverse(*fails), Reverse(*without), Reverse(*undecided), (*name).clone())
    });
    let newest = all.iter().map(|(_, results)| results).max_by_key(|results| &results.date);
    let mut text = "\n| results | bars that fail | have no data | are undecided | hold | slices | hypervisor | date |\n|---|---|---|---|---|---|---|---|\n".to_owned();
    for (fails, without, undecided, holds, name, results) in rows {
        let form = if results.form == Form::Short { " (short form)" } else { "" };
        let bold = |count| if count == 0 { "0".into() } else { format!("**{count}**") };
        let (fails, without) = (bold(fails), bold(without));
        let is_older = newest.is_some_and(|newest| newest.versions.kernel != results.versions.kernel);
        let age = if is_older { ", older" } else { "" };
        let _ = writeln!(
            text,
            "| `{name}`{form} | {fails} | {without} | {undecided} | {holds} | {} | `{}`{age} | {} |",
            slices(results),
            results.versions.kernel,
            day(results)
        );
    }
    text
}

/// The bars that fail.
pub fn failing(all: &[(String, Results)]) -> String {
    bars(all, |bar| bar.verdict == Verdict::Fails)
}

/// The bars whose results have no data for them, by results.
pub fn without_data(all: &[(String, Results)]) -> String {
    let mut text = "\n| results | bar | limit | data |\n|---|---|---|---|\n".to_owned();
    for (name, results) in all {
        for bar in results.bars.iter().filter(|bar| bar.verdict.has_no_data()) {
            let (title, words, limit) = (&bar.name, bar.must_be.words(), number(bar.limit));
            let _ =
                writeln!(text, "| `{name}` | {title} | {words} {limit} {} | {} |", bar.unit, verdict(bar));
        }
    }
    text
}

/// The bars that are undecided though there are pairs enough to decide them.
pub fn undecided(all: &[(String, Results)]) -> String {
    bars(all, |bar| bar.verdict == Verdict::Undecided && bar.pairs >= judge::LEAST_PAIRS)
}

/// The bars that too few pairs leave undecided, with a value on the wrong side of the limit.
pub fn doubtful(all: &[(String, Results)]) -> String {
    bars(all, |bar| {
        let is_outside = bar.value.is_some_and(|value| bar.must_be.room(value, bar.limit) < 0.0);
        bar.verdict == Verdict::Undecided && bar.pairs < judge::LEAST_PAIRS && is_outside
    })
}

fn bars(all: &[(String, Results)], is_meant: impl Fn(&BarResult) -> bool) -> String {
    let mut text =
        "\n| results | bar | value | limit | against the limit | p |\n|---|---|---|---|---|---|\n".to_owned();
    for (name, results) in all {
        for bar in results.bars.iter().filter(|bar| is_meant(bar)) {
            let p = bar.p.map_or_else(|| "-".into(), number);
            let (value, limit, distance) = (value(bar), number(bar.limit), distance(bar));
            let (title, words, unit) = (&bar.name, bar.must_be.words(), &bar.unit);
            let _ = writeln!(
                text,
                "| `{name}` | {title} | {value} {unit} | {words} {limit} | {distance} | {p} |"
            );
        }
    }
    text
}
