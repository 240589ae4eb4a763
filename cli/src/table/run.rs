//! What a person wants to see at the end of a run.
use super::{
    Rows, counters, fault,
    records::{self, MOST_TABLES},
    units::{named, tick_ns, ticks, within},
};
use crate::{
    report::{Clock, GuestOutcome, GuestReport, Outcome, RunReport},
    serial::GuestResult,
};
use ainori_report::{Next, StopReason, Stopped};
use serde_json::Value;
use std::fmt::Write;

/// How much is shown of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// The guests, and in a line each their vCPUs and the harts.
    Summary,
    /// Every counter.
    Everything,
}

/// A run: its time, guests, vCPUs, harts, faults and problems, and how it went.
pub fn run(report: &RunReport, detail: Detail) -> String {
    let mut text = String::new();
    for (mark, lines) in &report.console {
        let _ = writeln!(text, "Last lines of {mark}:");
        for line in lines {
            let _ = writeln!(text, "    {}", plain(line));
        }
    }
    let _ = writeln!(text, "{}\n\n{}", time(report), guests(report));
    if report.guests.iter().any(|guest| !guest.former_lives.is_empty()) {
        let _ = writeln!(text, "{}", lives(report));
    }
    for guest in &report.guests {
        text += &lists(guest, report);
    }
    text += &counters::summary(report);
    if report.end.is_none() && report.outcome != Outcome::Refused {
        let _ = writeln!(
            text,
            "\nThe hypervisor tells what it counted at its end, to which it did not come: nothing is known of vCPUs and harts."
        );
    }
    if detail == Detail::Everything {
        text += &counters::rest(report);
    }
    text += &fault::faults(report);
    if let Some(trace) = &report.trace {
        let lost = if trace.lost == 0 { String::new() } else { format!(", {} older ones lost", trace.lost) };
        let file = trace.file.display();
        let _ = writeln!(
            text,
            "Trace: {file}, {} records{lost}. https://ui.perfetto.dev shows it.",
            trace.records
        );
    }
    for problem in &report.problems {
        let _ = writeln!(text, "Problem: {}", plain(problem));
    }
    let _ = writeln!(text, "{}: {}.", report.system, report.words());
    text
}

/// What time the figures are in: the first thing to know of them.
fn time(report: &RunReport) -> String {
    let qemu = &report.qemu;
    let emulated = "An emulator has no caches and no TLB cost: these are not the times of a chip";
    match &report.clock {
        Clock::Host => format!(
            "Times are the host's (QEMU {qemu}): delays and speeds mean nothing. For figures: clock = \"lockstep\" in [run], or \
             --clock lockstep; icount with one hart."
        ),
        Clock::Icount => format!("Times are virtual: 4 ns per instruction (QEMU {qemu}). {emulated}."),
        Clock::Lockstep { q, ns, hash, .. } => format!(
            "Times are virtual: harts in lockstep, {ns} ns per instruction, q = {q} (QEMU {qemu}, schedule {}). {emulated}.",
            hash.as_deref().unwrap_or("unknown")
        ),
    }
}

fn guests(report: &RunReport) -> Rows {
    let mut rows = Rows::new(&["guest", "outcome", "stopped at", "results"], &["stopped at"]);
    for guest in &report.guests {
        let stopped =
            guest.stopped.as_ref().map_or_else(|| "-".into(), |stopped| ticks(report, stopped.time));
        rows.add_row([
            guest.name.clone(),
            outcome(guest, report),
            stopped,
            plain(&shown(&guest.results, report)),
        ]);
    }
    rows
}

fn outcome(guest: &GuestReport, report: &RunReport) -> String {
    let words = match (guest.outcome, guest.stopped.as_ref().map(|stopped| stopped.reason)) {
        (GuestOutcome::Done, _) => "done",
        (GuestOutcome::ShutDown, _) => "shut down, reported nothing",
        (GuestOutcome::Failed, _) if guest.is_given_up() => "failed: given up",
        (GuestOutcome::Failed, Some(StopReason::AllHartsStopped)) => "failed: stopped all its vCPUs",
        (GuestOutcome::Failed, Some(StopReason::Reboot)) => "failed: wanted a reboot",
        (GuestOutcome::Failed, Some(StopReason::Failure)) => "failed: said so as it stopped",
        (GuestOutcome::Failed, Some(StopReason::Watchdog)) => "failed: hung",
        (GuestOutcome::Failed, _) => "failed: said so in a result",
        (GuestOutcome::Faulted, _) => "faulted",
        (GuestOutcome::NotStarted, _) => return "not started".into(),
        (GuestOutcome::Running, _) => "running",
        (GuestOutcome::Restarting, _) => "restarting",
    };
    let life = match guest.former_lives.len() {
        former if guest.outcome == GuestOutcome::Restarting => format!(" after life {}", former + 1),
        0 => String::new(),
        former => format!(" in life {}", former + 1),
    };
    let background = if guest.background { " (background)" } else { "" };
    let silent = match report.host.silent.get(&guest.name) {
        // At the end of a run in order it says nothing that a guest in the background is silent.
        _ if report.end.is_some() || guest.stopped.is_some() => String::new(),
        Some(seconds) => format!(", silent for {seconds:.1} s"),
        None => ", said nothing".into(),
    };
    format!("{words}{life}{background}{silent}")
}

/// A guest's text without what would move a terminal's cursor or change its colours: tables are for reading.
fn plain(text: &str) -> String {
    let text = anstream::adapter::strip_str(text).to_string();
    text.chars().map(|c| if c.is_control() && !matches!(c, '\n' | '\t') { '\u{fffd}' } else { c }).collect()
}

/// Each life of the guests that were started again.
fn lives(report: &RunReport) -> Rows {
    let mut rows = Rows::new(
        &["guest", "life", "started at", "stopped at", "why", "results"],
        &["started at", "stopped at"],
    );
    for guest in report.guests.iter().filter(|guest| !guest.former_lives.is_empty()) {
        let former = guest.former_lives.iter().map(|life| (life.started, &life.stopped, &life.results));
        let all = former.chain([(guest.started.unwrap_or(0), &guest.stopped, &guest.results)]);
        for (number, (started, stopped, results)) in (1..).zip(all) {
            rows.add_row([
                guest.name.clone(),
                number.to_string(),
                // The hypervisor tells when a guest is started again, but not when it boots its guests.
                if number == 1 { "boot".into() } else { ticks(report, started) },
                stopped.as_ref().map_or_else(|| "-".into(), |stopped| ticks(report, stopped.time)),
                stopped.as_ref().map_or("", why).to_owned(),
                plain(&shown(results, report)),
            ]);
        }
    }
    rows
}

fn why(stopped: &Stopped) -> &'static str {
    match (stopped.reason, stopped.next) {
        (StopReason::Shutdown, Next::GiveUp) => "shutdown; given up",
        (StopReason::Shutdown, _) => "shutdown",
        (StopReason::Reboot, Next::GiveUp) => "reboot; given up",
        (StopReason::Reboot, _) => "reboot",
        (StopReason::Failure, Next::GiveUp) => "failure; given up",
        (StopReason::Failure, _) => "failure",
        (StopReason::Fault, Next::GiveUp) => "fault; given up",
        (StopReason::Fault, _) => "fault",
        (StopReason::Watchdog, Next::GiveUp) => "watchdog; given up",
        (StopReason::Watchdog, _) => "watchdog",
        (StopReason::AllHartsStopped, Next::GiveUp) => "stopped all its vCPUs; given up",
        (StopReason::AllHartsStopped, _) => "stopped all its vCPUs",
    }
}

/// Lines of a guest's results in a table, and characters of each: a guest can print any number, and a table that is laid out for a million of them
/// never ends.
const SHOWN_LINES: usize = 40;
const SHOWN_LENGTH: usize = 400;

/// A table for each list of records that a guest printed, in each of its lives.
fn lists(guest: &GuestReport, report: &RunReport) -> String {
    let lives = guest.former_lives.iter().map(|life| &life.results).chain([&guest.results]);
    let mut all = (1..).zip(lives).flat_map(|(life, results)| {
        records::lists(results).map(move |(name, records)| (life, name, records))
    });
    let mut text = String::new();
    for (life, name, records) in all.by_ref().take(MOST_TABLES) {
        let (rows, left) = records::table(&records, tick_ns(report), plain);
        let life = if guest.former_lives.is_empty() { String::new() } else { format!(" in life {life}") };
        let title = cut(plain(&format!("{}{life}, {}:", guest.name, name.replace('_', " "))));
        let _ = writeln!(text, "\n{}\n{rows}", title.replace('\n', " "));
        if left != 0 {
            let _ = writeln!(text, "and {left} more");
        }
    }
    match all.count() {
        0 => {}
        more => {
            let _ = writeln!(text, "\n{}: and {more} more lists", guest.name);
        }
    }
    text
}

/// A guest's results, a line each. Histograms are left to the JSON, and so is what is too much for a table; lists of records have tables of their own.
fn shown(results: &[GuestResult], report: &RunReport) -> String {
    let tick_ns = tick_ns(report);
    let summaries = results.iter().filter(|result| !result.contains_key("hist"));
    let fields = summaries.flat_map(|result| result.iter().map(move |(name, value)| (result, name, value)));
    let fields = fields.filter(|(_, _, value)| !value.is_null() && **value != Value::Bool(true));
    let mut fields = fields.map(|(result, name, value)| match records::records(value) {
        Some(records) => format!("{}: {}, see below", name.replace('_', " "), records.len()),
        None => named(name, within(result, name, value), tick_ns),
    });
    let mut lines: Vec<String> = fields.by_ref().take(SHOWN_LINES).map(cut).collect();
    match fields.count() {
        0 => {}
        more => lines.push(format!("and {more} more")),
    }
    lines.join("\n")
}

/// The beginning of a long line.
fn cut(mut line: String) -> String {
    if let Some((end, _)) = line.char_indices().nth(SHOWN_LENGTH) {
        line.truncate(end);
        line.push('…');
    }
    line
}
