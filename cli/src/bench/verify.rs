//! `ainori bench verify`: are committed results of what is built now, and does a sample of them come out again to the byte?
use super::{
    args::Verify,
    command::tools,
    execute::execute,
    key::Tools,
    plan::Run,
    provenance::{Cell, Standing, Today},
    report,
    results::Results,
    sameness, table,
};
use anstream::{eprintln, println};
use miette::{Result, miette};
use serde_json::Value;
use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// Exit code if a run gave something else, or with `--all` if something was left open.
const DIFFERS: u8 = 1;
/// Exit code if the user interrupted it.
const INTERRUPTED: u8 = 130;

/// A result that was read.
struct Known {
    file: PathBuf,
    results: Results,
    /// `None` if it can't be compared with what is built now.
    standing: Option<Standing>,
}

/// What came of the sample.
#[derive(Debug, Default)]
struct Tally {
    same: usize,
    differ: usize,
    /// For which no time was left.
    left: usize,
}

/// Does what the command line asks for. Returns the exit code; an error means that a result can't be read, or that nothing is built.
pub fn command(arguments: &Verify, root: &Path, stop: &Arc<AtomicBool>) -> Result<u8> {
    let files = match arguments.files.is_empty() {
        true => report::committed(root)?,
        false => arguments.files.clone(),
    };
    let read: Vec<Results> = files.iter().map(|file| Results::load(file)).collect::<Result<_>>()?;
    let Some(tools) = tools(arguments.kernel.as_deref(), true, stop)? else { return Ok(INTERRUPTED) };
    let mut today = Today::new(tools);
    let known: Vec<Known> = files
        .into_iter()
        .zip(read)
        .map(|(file, results)| {
            let standing = Standing::of(&results, &file, root, &mut today);
            println!("{}: {}", shown(&file, root), words(&standing));
            Known { file, results, standing: standing.ok() }
        })
        .collect();
    let old = known
        .iter()
        .filter(|one| one.standing.as_ref().is_none_or(|standing| !standing.old.is_empty()))
        .count();

    let (sample, all) = sample(arguments, &known);
    if all > 0 {
        println!(
            "\n{} of {all} runs that would be the same today are taken again (seed {}):",
            sample.len(),
            arguments.seed
        );
    }
    let Some(tally) = take(arguments, &sample, &today.tools, root, stop)? else {
        eprintln!("Interrupted.");
        return Ok(INTERRUPTED);
    };
    println!("\n{}", verdict(&tally, old, known.len(), all));
    let open = old > 0 || tally.left > 0 || tally.same == 0;
    Ok(if tally.differ > 0 || arguments.all && open { DIFFERS } else { 0 })
}

/// How a result stands, in a line.
fn words(standing: &Result<Standing>) -> String {
    match standing {
        Ok(standing) if standing.old.is_empty() => format!("of what is built now, {} runs", standing.runs),
        Ok(standing) => {
            let left = match standing.today.len() {
                0 => String::new(),
                today => format!(" ({today} of its {} runs would be the same today)", standing.runs),
            };
            format!("old{left}. {}", table::old(&standing.old))
        }
        Err(error) => format!("it can't be compared with what is built now: {error:#}"),
    }
}

/// The runs that are to be done again, with the number of those that could be.
fn sample<'a>(arguments: &Verify, known: &'a [Known]) -> (Vec<(&'a Known, &'a Standing, Cell)>, usize) {
    let mut candidates = Vec::new();
    for one in known {
        let Some(standing) = &one.standing else { continue };
        for &cell in &standing.today {
            let (_, sample) = cell.in_results(&one.results);
            candidates.push((sample.key.clone(), (one, standing, cell)));
        }
    }
    let candidates = sameness::shuffled(candidates, arguments.seed);
    let all = candidates.len();
    (candidates.into_iter().take(arguments.sample).map(|(_, one)| one).collect(), all)
}

/// Does runs again, one after the other, and tells what came of each. `None` if it was interrupted.
fn take(
    arguments: &Verify,
    sample: &[(&Known, &Standing, Cell)],
    tools: &Tools,
    root: &Path,
    stop: &Arc<AtomicBool>,
) -> Result<Option<Tally>> {
    let limit = Duration::from_secs_f64(arguments.minutes * 60.0);
    let begun = Instant::now();
    let mut tally = Tally::default();
    for &(known, standing, cell) in sample {
        let left = limit.saturating_sub(begun.elapsed());
        if left.is_zero() {
            tally.left += 1;
            continue;
        }
        let run = standing.run(cell);
        let name = format!("{}, {}", shown(&known.file, root), run.shown());
        let started = Instant::now();
        let told = match again(run, tools, left, stop) {
            End::Interrupted => return Ok(None),
            End::NoTime => {
                tally.left += 1;
                format!("no time left: {name}")
            }
            End::Failed(error) => {
                tally.differ += 1;
                format!("DIFFERS: {name}: {error}")
            }
            End::Done(document) => {
                match &sameness::differences(&known.results, standing, cell, document)?[..] {
                    [] => {
                        tally.same += 1;
                        format!("same: {name} ({:.0} s)", started.elapsed().as_secs_f64())
                    }
                    differ => {
                        tally.differ += 1;
                        format!("DIFFERS: {name}: {}", differ.join("; "))
                    }
                }
            }
        };
        println!("{told}");
    }
    Ok(Some(tally))
}

/// How a run ended.
enum End {
    Done(Value),
    Failed(miette::Report),
    NoTime,
    Interrupted,
}

/// Does a run in the time that is left. What the store has is not looked at.
fn again(run: &Run, tools: &Tools, left: Duration, stop: &Arc<AtomicBool>) -> End {
    let started = Instant::now();
    match execute(run, tools, run.timeout.min(left), stop) {
        Ok(Some(document)) => End::Done(document),
        Ok(None) => End::Interrupted,
        // What ended it was this limit, not its own.
        Err(_) if started.elapsed() >= left && left < run.timeout => End::NoTime,
        Err(_) if stop.load(Ordering::Relaxed) => End::Interrupted,
        Err(error) => End::Failed(error),
    }
}

/// What it comes to, for people.
fn verdict(tally: &Tally, old: usize, results: usize, all: usize) -> String {
    let taken = tally.same + tally.differ;
    let sample = match (all, taken) {
        (0, _) => "No run could be taken again: none of the results has one that would be the same today."
            .to_owned(),
        (_, 0) => "No run was taken again: there was no time (--minutes).".to_owned(),
        _ if tally.differ == 0 => format!("Taken again: {taken} runs, all the same to the byte."),
        _ => format!("Taken again: {taken} runs, {} of them DIFFER.", tally.differ),
    };
    let left = match tally.left {
        0 => String::new(),
        left => format!(" For {left} there was no time (--minutes)."),
    };
    format!("{sample}{left} {old} of {results} results are old.")
}

/// A file as the checkout's user calls it.
fn shown(file: &Path, root: &Path) -> String {
    file.strip_prefix(root).unwrap_or(file).display().to_string()
}

/// Checks the value of `--minutes`.
pub fn minutes(text: &str) -> Result<f64, String> {
    let minutes = text.parse::<f64>().ok().filter(|minutes| (0.0..=100_000.0).contains(minutes));
    minutes.ok_or_else(|| "it must be a number of minutes from 0 to 100000: 10, or 0.5".into())
}

/// For reports: what is built now. `None`, with a message, if something is not built, so that results can't be compared with it.
pub fn today(stop: &AtomicBool) -> Option<Today> {
    let tools = tools(None, true, stop).and_then(|tools| tools.ok_or_else(|| miette!("it was interrupted")));
    tools
        .map(Today::new)
        .inspect_err(|error| {
            eprintln!("Whether the results are of what is built now can't be said: {error:#}")
        })
        .ok()
}

/// Why a result is old, for the report that is made of it: empty if it isn't, or if that can't be said, which is told.
pub fn old(results: &Results, file: &Path, root: &Path, today: &mut Today) -> Vec<String> {
    match Standing::of(results, file, root, today) {
        Ok(standing) => standing.old,
        Err(error) => {
            eprintln!("Whether {} is of what is built now can't be said: {error:#}", shown(file, root));
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests;
