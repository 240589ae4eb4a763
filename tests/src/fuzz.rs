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
        found
    }
}
