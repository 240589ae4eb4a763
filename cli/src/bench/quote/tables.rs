//! Tables of results and bars, for pages in Markdown.
use crate::bench::{
    experiment::Form,
    judge,
    results::Results,
    table::{distance, number, value},
    verdict::{BarResult, Verdict},
};
use std::fmt::Write;

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

/// A row for each of the results: those with most failing bars first, then those with most undecided ones.
pub fn results(all: &[(String, Results)]) -> String {
    let counted = |results: &Results, verdicts: &[Verdict]| {
        results.bars.iter().filter(|bar| verdicts.contains(&bar.verdict)).count()
    };
    let mut rows: Vec<_> = all
        .iter()
        .map(|(name, results)| {
            let fails = counted(results, &[Verdict::Fails, Verdict::Missing]);
            (
                fails,
                counted(results, &[Verdict::Undecided]),
                counted(results, &[Verdict::Holds]),
                name,
                results,
            )
        })
        .collect();
    rows.sort_by_key(|(fails, undecided, _, name, _)| {
        (std::cmp::Reverse(*fails), std::cmp::Reverse(*undecided), (*name).clone())
    });
    let mut text = "\n| results | bars that fail | undecided | hold | slices | hypervisor | date |\n|---|---|---|---|---|---|---|\n".to_owned();
    for (fails, undecided, holds, name, results) in rows {
        let form = if results.form == Form::Short { " (short form)" } else { "" };
        let fails = if fails == 0 { "0".into() } else { format!("**{fails}**") };
        let _ = writeln!(
            text,
            "| `{name}`{form} | {fails} | {undecided} | {holds} | {} | `{}` | {} |",
            slices(results),
            results.versions.kernel,
            day(results)
        );
    }
    text
}

/// The bars that fail, or whose figures are missing.
pub fn failing(all: &[(String, Results)]) -> String {
    bars(all, |bar| matches!(bar.verdict, Verdict::Fails | Verdict::Missing))
}

/// The bars that are undecided though there are pairs enough to decide them.
pub fn undecided(all: &[(String, Results)]) -> String {
    bars(all, |bar| bar.verdict == Verdict::Undecided && bar.pairs >= judge::LEAST_PAIRS)
}

fn bars(all: &[(String, Results)], is_meant: impl Fn(&BarResult) -> bool) -> String {
    let mut text =
        "\n| results | bar | value | limit | distance | p |\n|---|---|---|---|---|---|\n".to_owned();
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
