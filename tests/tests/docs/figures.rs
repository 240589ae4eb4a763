//! Figures in the documentation have something behind them: a command that takes them again, or a result.
//!
//! A *figure* is a number with a unit or a percent sign in a paragraph or an item of a list. Its paragraph must name a *source*: figures
//! that `ainori bench quote` has put there, a command, a link to where it was measured, or a comment that readers don't see:
//! `<!-- source: what, when -->`, or `<!-- source: file: code -->` for a constant, which the file must have as it stands there. Tables and
//! blocks of code aren't looked at: their figures stand beside their commands.
use super::{files, read};
use std::{collections::BTreeMap, path::PathBuf};

/// Words behind a number that make it a figure.
const UNITS: [&str; 24] = [
    "%",
    "ns",
    "us",
    "ms",
    "s",
    "second",
    "seconds",
    "minute",
    "minutes",
    "hour",
    "hours",
    "instruction",
    "instructions",
    "byte",
    "bytes",
    "B",
    "KB",
    "KiB",
    "MB",
    "MiB",
    "GB",
    "GiB",
    "times",
    "messages",
];

/// What a source looks like in a paragraph: a comment, code that is a command, a link.
const SOURCES: [&str; 11] = [
    "<!-- quote ",
    "<!-- source: ",
    "`./ainori ",
    "`cargo ",
    "`make ",
    "`tools/",
    "results/",
    "measuring.md",
    "paths/count",
    "budgets.toml",
    "selftest",
];

/// Paragraphs and items of lists, without blocks of code, tables and headings.
fn paragraphs(text: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut is_code = false;
    for line in text.lines() {
        let begin = line.trim_start();
        if begin.starts_with("```") {
            is_code = !is_code;
        } else if is_code || begin.starts_with(['|', '#']) || begin.starts_with("    ") {
            // not text
        } else if begin.is_empty() || begin.starts_with("- ") {
            found.push(line.to_owned());
        } else if let Some(last) = found.last_mut() {
            *last = format!("{last} {line}");
        }
    }
    found
}

/// A text without what stands between two marks.
fn without(text: &str, begin: &str, end: &str) -> String {
    let mut parts = text.split(begin);
    let first = parts.next().unwrap_or_default().to_owned();
    first + &parts.map(|part| part.split_once(end).map_or("", |(_, after)| after)).collect::<String>()
}

/// The figures in a paragraph: `2.5 us`.
fn figures(paragraph: &str) -> Vec<String> {
    let plain = without(&without(paragraph, "<!--", "-->"), "](", ")");
    let plain: String = plain.split('`').step_by(2).collect::<Vec<_>>().join(" code ");
    let words: Vec<&str> = plain.split_whitespace().collect();
    let is_number = |word: &str| {
        let word = word.trim_start_matches(['(', '*', '-', '+']).trim_end_matches([',', ')']);
        word.starts_with(|c: char| c.is_ascii_digit())
            && word.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | ','))
    };
    let is_unit = |word: &str| UNITS.contains(&word.trim_end_matches([',', '.', ')', ';', ':', '*']));
    let pairs = words.windows(2).filter(|pair| is_number(pair[0]) && is_unit(pair[1]));
    pairs.map(|pair| pair.join(" ")).collect()
}

fn has_source(paragraph: &str) -> bool {
    SOURCES.iter().any(|source| paragraph.contains(source))
}

#[test]
fn figures_have_a_source() {
    let pages = files("docs", ".md").into_iter().chain([PathBuf::from("README.md")]);
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for page in pages {
        for paragraph in paragraphs(&read(&page)) {
            let figures = figures(&paragraph);
            if !figures.is_empty() && !has_source(&paragraph) {
                let begin: String = paragraph.trim().chars().take(60).collect();
                let shown = format!("{} in: {begin}", figures.join(", "));
                found.entry(page.display().to_string()).or_default().push(shown);
            }
        }
    }
    assert!(found.is_empty(), "no source, see the head of this file: {found:#?}");
}

/// A constant that changes takes the sentences along that tell it.
#[test]
fn constants_are_as_their_sources_say() {
    let mut checked = 0;
    let mut wrong = Vec::new();
    for page in files("docs", ".md").into_iter().chain([PathBuf::from("README.md")]) {
        for source in read(&page).split("<!-- source: ").skip(1).filter_map(|rest| rest.split(" -->").next())
        {
            let Some((file, code)) = source.split_once(": ").filter(|(file, _)| file.contains('/')) else {
                continue;
            };
            checked += 1;
            if !read(file).contains(code) {
                wrong.push(format!("{}: {file} doesn't have `{code}`", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked > 20, "the sources are written otherwise: only {checked} were found");
}

#[test]
fn what_a_figure_is() {
    let text = "It takes 2.5 us, or 12 % (`5 ms`), 3 harts.\n- 1,200 instructions\n\n| 5 s |\n```\n7 s\n```\n[5 ms](a.md)";
    let found: Vec<_> = paragraphs(text).iter().flat_map(|paragraph| figures(paragraph)).collect();
    assert_eq!(found, ["2.5 us,", "12 %", "1,200 instructions"]);
    assert!(has_source("5 us <!-- source: the log -->") && !has_source("5 us <!-- todo -->"));
}
