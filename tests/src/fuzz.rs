//! Hostile guests beside those that must not notice: FreeRTOS, which measures how late it is, and the probe `fpkeep`, which looks
//! whether its registers keep what is in them.
//!
//! | module | subject |
//! |---|---|
//! | [`case`](mod@case) | one run with random inputs: which preset, how many vCPUs and harts, by seed |
//! | [`attacks`] | runs in which a guest does one thing that has hurt others before |
//! | [`campaign`] | many runs beside each other, kept on disk so that they can go on later |
//!
//! The binary `fuzz` of this crate runs campaigns; `tests/tests/emulator/hostile.rs` a fixed set.

pub mod attacks;
pub mod campaign;
pub mod case;

pub use case::Case;

use crate::{
    Clock, System,
    bounds::{self, Finding, Kind},
};
use ainori::report::{GuestOutcome, RunReport};

/// Virtual milliseconds from an RTOS's start until it measures: the others' first moments are not the subject.
const MEASURE_MS: u64 = 5;
/// From an attacker's start until it begins; later only if its vCPUs aren't all there by then.
const BEGIN_MS: u64 = 10;
/// What an RTOS measures longer than attacks are meant to last: for attackers that begin later, and for the last inputs.
const SPARE_MS: u64 = 20;

/// Parameters of an RTOS with a period of 1 ms that measures from before `ms` milliseconds of attacks until after them. That it did is
/// looked at ([`Trial::findings`]).
fn measuring(ms: u64, burn_percent: u64) -> String {
    let periods = BEGIN_MS - MEASURE_MS + ms + SPARE_MS;
    format!(
        "period_us=1000 periods={periods} begin_ms={MEASURE_MS} burn_percent={burn_percent} burn_period_us=10000 report_ms=0"
    )
}

/// What a guest that attacks others comes to, if all is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// It ends by itself and says that all was well.
    Done,
    /// It is stopped for a fault.
    Fault,
    /// It is not waited for.
    Nothing,
}

/// A system with hostile guests, and what is to be asked of its run.
#[derive(Debug, Clone)]
pub struct Trial {
    /// What it is called in reports and files.
    pub name: String,
    /// The preset.
    pub preset: &'static str,
    /// The system, its preset included.
    pub system: System,
    /// Hostile guests.
    pub hostile: Vec<(String, Expected)>,
    /// RTOSes and their harts.
    pub rtoses: Vec<(String, u32)>,
    /// Guests that must find everything as they left it.
    pub neighbours: Vec<String>,
}

impl Trial {
    /// Runs it in lockstep time with slices of `q` instructions.
    pub fn run(&self, q: u32) -> (crate::Run, Vec<Finding>) {
        let run = self.system.run(Clock::Lockstep { q });
        let found = self.findings(&run.report);
        (run, found)
    }

    /// What doesn't hold of its run.
    pub fn findings(&self, report: &RunReport) -> Vec<Finding> {
        let rtoses: Vec<_> = self.rtoses.iter().map(|(name, hart)| (name.as_str(), *hart)).collect();
        let mut found = bounds::findings(report, self.preset, &rtoses);
        let hung = found.iter().any(|finding| finding.kind <= Kind::Emulator);
        if hung {
            return found;
        }
        for guest in &report.guests {
            let expected = self.hostile.iter().find(|(name, _)| *name == guest.name);
            let (kind, right) = match expected {
                Some((_, Expected::Nothing)) => continue,
                Some((_, Expected::Done)) => (Kind::Hostile, guest.outcome == GuestOutcome::Done),
                Some((_, Expected::Fault)) => (Kind::Hostile, guest.outcome == GuestOutcome::Faulted),
                None if self.neighbours.contains(&guest.name) => {
                    (Kind::Neighbour, guest.outcome == GuestOutcome::Done)
                }
                None => continue,
            };
            if !right {
                let text =
                    format!("{} ended so: {:?}, {:?}", guest.name, guest.outcome, guest.results.first());
                found.push(Finding { kind, text });
            }
        }
        if found.is_empty() {
            found = self.unmeasured(report);
        }
        found
    }

    /// Attacks that an RTOS didn't measure all of: that nothing was found says nothing of those.
    fn unmeasured(&self, report: &RunReport) -> Vec<Finding> {
        // An attack by a fault is over when the guest is stopped.
        let span = |name: &str| {
            let guest = report.guests.iter().find(|guest| guest.name == name)?;
            match &guest.stopped {
                Some(end) if guest.outcome == GuestOutcome::Faulted => Some((end.time, end.time)),
                _ => Some((bounds::number(guest, "span/from")?, bounds::number(guest, "span/to")?)),
            }
        };
        let ms = |ticks: u64| {
            ticks as f64 * 1e3 / report.board.as_ref().map_or(1e3, |board| board.timebase_hz as f64)
        };
        let mut found = Vec::new();
        for (rtos, _) in &self.rtoses {
            let measured = span(rtos);
            for (attacker, _) in self.hostile.iter().filter(|(_, expected)| *expected != Expected::Nothing) {
                let text = match (measured, span(attacker)) {
                    (Some((begin, end)), Some((first, last))) if begin <= first && last <= end => continue,
                    (Some((begin, end)), Some((first, last))) => format!(
                        "{rtos} measured from {:.1} to {:.1} ms, {attacker} attacked from {:.1} to {:.1} ms",
                        ms(begin),
                        ms(end),
                        ms(first),
                        ms(last)
                    ),
                    (None, _) => format!("{rtos} doesn't say when it measured"),
                    (_, None) => format!("{attacker} doesn't say when it attacked"),
                };
                found.push(Finding { kind: Kind::Emulator, text });
            }
        }
        found
    }
}
