//! The report as one HTML file that needs nothing else: no server, no script, no font, no picture from outside.
use super::{
    again::By,
    experiment::Form,
    results::Results,
    table::{JUDGED, distance, number, value, verdict, with_range},
    verdict::{BarResult, Verdict, ordered},
};
use maud::{DOCTYPE, Markup, PreEscaped, html};

const STYLE: &str = "\
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #1b1b1b; }
h1 { line-height: 1.2; } h2 { margin-top: 2.5rem; }
.box { overflow-x: auto; } table { border-collapse: collapse; }
th, td { padding: .3rem .8rem .3rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid #ddd; }
th:first-child, td:first-child { min-width: 9rem; overflow-wrap: anywhere; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.holds { color: #00664b; } .fails { color: #b3261e; font-weight: bold; } .unknown { color: #6b5b00; }
.small { color: #555; font-size: .9rem; } code { background: #f3f3f3; padding: .1rem .3rem; }
figure { margin: 1.5rem 0; overflow-x: auto; } svg { width: 100%; max-width: 44rem; height: auto; }
@media (max-width: 40rem) { body { margin: 1rem auto; } thead { display: none; } table, tbody, tr, td { display: block; }
tr { padding: .5rem 0; border-bottom: 1px solid #ddd; } td { padding: 0; border: 0; overflow-wrap: anywhere; }
td.number { text-align: left; white-space: normal; } td:first-child { font-weight: bold; }
td[data-of]::before { content: attr(data-of) \": \"; color: #555; } p code { overflow-wrap: anywhere; } }";

/// Writes the report; `charts` are SVG. `old` says why the results are not of what is built now; empty if they are.
pub fn report(results: &Results, charts: &[String], old: &[String], by: By) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (results.experiment) " - Ainori bench" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { (results.title) }
                @for paragraph in results.question.trim().split("\n\n") {
                    p { (paragraph) }
                }
                p.small {
                    (results.machine) " "
                    @match results.form {
                        Form::Full => {},
                        Form::Short => "This is the short form: fewer values and shorter runs than the full one. ",
                    }
                    @if !results.only.is_all() { "Only a part of the experiment was run: " (results.only) ". " }
                    "Command: " code { (results.command) } ", " (results.date) "."
                }
                @match by {
                    By::ItsRuns => {},
                    By::Today => p.small {
                        "Question, bars, derived figures and charts are those of the experiment as it is today, which may ask more than when the runs were made."
                    },
                    By::Then => p.small {
                        "Question, bars, derived figures and charts are those of when the runs were made: there is no such experiment any more."
                    },
                }
                @if !old.is_empty() { p.fails { (super::table::old(old)) } }
                @if !results.bars.is_empty() { h2 { "Bars" } (bars(results)) }
                @if !results.derived.is_empty() { h2 { "Derived figures" } (derived(results)) }
                @if !charts.is_empty() { h2 { "Charts" } }
                @for chart in charts {
                    figure { (PreEscaped(chart)) }
                }
                h2 { "Figures" }
                p { "Each is the median over the samples; where they differ, their range is in parentheses: it is the error bar." }
                (figures(results))
                @let problems = super::evaluate::problems(&results.cases);
                @if !problems.is_empty() {
                    h2 { "Problems" }
                    ul { @for problem in &problems { li { (problem) } } }
                }
                h2 { "What took part" }
                (versions(results))
            }
        }
    };
    page.into_string()
}

/// How a bar's verdict is coloured.
fn class(bar: &BarResult) -> &'static str {
    match bar.verdict {
        Verdict::Holds => "holds",
        Verdict::Fails => "fails",
        Verdict::Missing | Verdict::Undecided | Verdict::NotInForm => "unknown",
    }
}

fn bars(results: &Results) -> Markup {
    html! {
        p.small { (JUDGED) }
        div.box tabindex="0" { table {
            thead { tr { th { "bar" } th {} th { "value" } th { "must be" } th { "unit" } th { "against the limit" } } }
            tbody {
                @for bar in ordered(&results.bars) {
                    tr {
                        td { (bar.name) }
                        td class=(class(bar)) { (verdict(bar)) }
                        td.number data-of="value" { (value(bar)) }
                        td data-of="must be" { (bar.must_be.words()) " " (number(bar.limit)) }
                        td data-of="unit" { (bar.unit) }
                        td data-of="against the limit" { (distance(bar)) }
                    }
                }
            }
        } }
    }
}

fn derived(results: &Results) -> Markup {
    html! {
        div.box tabindex="0" { table {
            thead { tr { th { "figure" } th { "value" } th { "unit" } th { "pairs" } } }
            tbody {
                @for derived in &results.derived {
                    tr {
                        td { (derived.name) }
                        td.number data-of="value" { (with_range(&derived.value)) }
                        td data-of="unit" { (derived.value.unit) }
                        td.number data-of="pairs" { (derived.pairs) }
                    }
                }
            }
        } }
    }
}

/// A row for each case, a column for each metric.
fn figures(results: &Results) -> Markup {
    let metrics = results.metrics();
    html! {
        div.box tabindex="0" { table {
            thead {
                tr {
                    th { "case" }
                    @for (name, unit) in &metrics { th { (name) br; span.small { (unit) } } }
                    th { "samples" }
                }
            }
            tbody {
                @for case in &results.cases {
                    tr {
                        td { (case.shown(&results.cases)) }
                        @for (name, unit) in &metrics {
                            td.number data-of={ (name) ", " (unit) } {
                                (case.metrics.get(*name).map_or_else(|| "-".into(), with_range))
                            }
                        }
                        td.number data-of="samples" { (case.samples.len()) }
                    }
                }
            }
        } }
    }
}

fn versions(results: &Results) -> Markup {
    let versions = &results.versions;
    html! {
        div.box tabindex="0" { table {
            tbody {
                tr { td { "QEMU" } td { (versions.qemu) } }
                tr { td { "hypervisor" } td { code { (versions.kernel) } } }
                @for (name, hash) in &versions.kernels {
                    tr { td { (name) } td { code { (hash) } } }
                }
                tr { td { "lockstep.so" } td { code { (versions.lockstep) } } }
                tr { td { "paths.so" } td { code { (versions.paths) } } }
                @if let Some(windows) = &versions.windows {
                    tr { td { "windows.so" } td { code { (windows) } } }
                }
                @if let Some(tlb) = &versions.tlb {
                    tr { td { "tlb.so" } td { code { (tlb) } } }
                }
                @for (name, file) in &versions.files {
                    tr {
                        td { (name) }
                        td { @if let Some(says) = &file.says { (says) ", " } code { (file.hash) } }
                    }
                }
                @if let Some(commit) = &versions.commit {
                    tr { td { "commit" } td { code { (commit) } } }
                }
                @if !versions.q.is_empty() {
                    tr { td { "q" } td { (versions.q.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")) } }
                }
            }
        } }
        p.small { "Hashes are the first 16 digits of SHA-256." }
    }
}

#[cfg(test)]
mod tests;
