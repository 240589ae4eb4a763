//! Hostile guests beside those that must not notice: FreeRTOS, which measures how late it is, and the probe `fpkeep`, which looks
//! whether its registers keep what is in them.
//!
//! | module | subject |
//! |---|---|
//! | [`case`](mod@case) | one run with random inputs: which preset, how many vCPUs and harts, by seed |
//! | [`attacks`] | runs in which a guest does one thing that has hurt others before |
//! | [`campaign`] | many runs beside each other, kept on disk so that they can go on later |
//! | [`outcome`] | what became of one run |
//! | [`summary`] | what all runs of a campaign have shown |
//!
//! The binary `fuzz` of this crate runs campaigns; `tests/tests/emulator/hostile.rs` a fixed set.

pub mod attacks;
pub mod campaign;
pub mod case;
pub mod outcome;
pub mod summary;

pub use case::Case;

use crate::{
    Clock, System,
    bounds::{self, Finding, Kind, Rtos},
};
use ainori::report::{GuestOutcome, GuestReport, RunReport};
use ainori::serial::GuestResult;
use ainori_report::{StopReason, Stopped};

/// Virtual milliseconds from an RTOS's start until it measures: the others' first moments are not the subject.
const MEASURE_MS: u64 = 5;
/// From an attacker's start until it begins; later only if its vCPUs aren't all there by then.
const BEGIN_MS: u64 = 10;
/// What an RTOS measures longer than attacks are meant to last: for attackers that begin later, and for the last inputs.
const SPARE_MS: u64 = 20;

/// An RTOS computes for a part of so many microseconds, at most half of it.
const BURN_PERIOD_US: u64 = 10_000;

/// Parameters of an RTOS with a period of 1 ms that measures from before `ms` milliseconds of attacks until after them. That it did is
/// looked at ([`Trial::findings`]).
fn measuring(ms: u64, burn_percent: u64) -> String {
    let periods = BEGIN_MS - MEASURE_MS + ms + SPARE_MS;
    format!(
        "period_us=1000 periods={periods} begin_ms={MEASURE_MS} burn_percent={burn_percent} burn_period_us={BURN_PERIOD_US} report_ms=0"
    )
}

/// What a guest that attacks others comes to, if all is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// It ends by itself and says that all was well.
    Done,
    /// It is stopped for a fault.
    Fault,
    /// It is started again and again, and ends at least so often; each life that ends says that all was well.
    Again(usize),
    /// The same, but each life that ends is stopped for a fault, or says that all was well.
    FaultAgain(usize),
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
    /// Most milliseconds that a timer interrupt of theirs may come late, which they have to say: their equals take turns with them. `None`: nobody asks.
    pub patience_ms: Option<u64>,
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
        let rtoses = self.rtoses.iter().map(|(name, hart)| {
            // Without such a word nobody knows how many are enough: no number of them is.
            let periods = self.system.told(name, "periods").unwrap_or(0);
            Rtos { name, hart: *hart, periods }
        });
        let mut found = bounds::findings(report, self.preset, &rtoses.collect::<Vec<_>>());
        let hung = found.iter().any(|finding| finding.kind <= Kind::Emulator);
        if hung {
            return found;
        }
        let neighbours = self.neighbours.iter().map(|name| (name, Kind::Neighbour, Expected::Done));
        let hostile = self.hostile.iter().map(|(name, expected)| (name, Kind::Hostile, *expected));
        for (name, kind, expected) in neighbours.chain(hostile) {
            let outcome = match expected {
                Expected::Nothing => continue,
                Expected::Again(least) | Expected::FaultAgain(least) => {
                    let may_fault = matches!(expected, Expected::FaultAgain(_));
                    let guest = report.guests.iter().find(|guest| guest.name == *name);
                    found.extend(guest.map_or_else(Vec::new, |guest| unwell(guest, may_fault)));
                    let ends = guest.map_or(0, |guest| guest.ends().count());
                    if ends < least {
                        let text = format!("{name} ended {ends} times, not {least} times or more");
                        found.push(Finding { kind, text });
                    }
                    continue;
                }
                Expected::Done => GuestOutcome::Done,
                Expected::Fault => GuestOutcome::Faulted,
            };
            let guest = report.guests.iter().find(|guest| guest.name == *name);
            if guest.is_none_or(|guest| guest.outcome != outcome) {
                let ended = guest.map(|guest| (guest.outcome, guest.results.first()));
                found.push(Finding { kind, text: format!("{name} ended so: {ended:?}") });
            }
        }
        found.extend(self.starved(report));
        if found.is_empty() {
            found = self.unmeasured(report);
        }
        found
    }

    /// Neighbours that waited for their turn for too long.
    fn starved(&self, report: &RunReport) -> Vec<Finding> {
        let Some(most) = self.patience_ms else { return Vec::new() };
        let neighbours = report.guests.iter().filter(|guest| self.neighbours.contains(&guest.name));
        let delays = neighbours.map(|guest| (guest, bounds::number(guest, "tick_delay_ns")));
        delays
            .filter(|(_, ns)| ns.is_none_or(|ns| ns > most * 1_000_000))
            .map(|(guest, ns)| Finding {
                kind: Kind::Neighbour,
                text: format!("{}: a timer interrupt was {ns:?} ns late, at most {most} ms", guest.name),
            })
            .collect()
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
        let is_awaited = |expected| matches!(expected, Expected::Done | Expected::Fault);
        let mut found = Vec::new();
        for (rtos, _) in &self.rtoses {
            let measured = span(rtos);
            for (attacker, _) in self.hostile.iter().filter(|(_, expected)| is_awaited(*expected)) {
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

/// Lives of a guest that have ended, and don't say that all was well. Some may have been stopped for a fault instead.
fn unwell(guest: &GuestReport, may_fault: bool) -> Vec<Finding> {
    let former = guest.former_lives.iter().map(|life| (life.stopped.as_ref(), &life.results));
    // The last one may have ended, too; what it says of a shutdown may have been on its way yet when the run ended.
    let failed = guest.stopped.as_ref().is_some_and(|stopped| stopped.reason != StopReason::Shutdown);
    let last = (failed || !guest.results.is_empty()).then_some((guest.stopped.as_ref(), &guest.results));
    let is_well = |(stopped, results): &(Option<&Stopped>, &Vec<GuestResult>)| {
        let has_faulted = stopped.is_some_and(|stopped| stopped.reason == StopReason::Fault);
        may_fault && has_faulted
            || !results.is_empty() && results.iter().all(|result| result.get("ok") == Some(&true.into()))
    };
    let ill = former.chain(last).filter(|life| !is_well(life));
    ill.map(|(stopped, results)| Finding {
        kind: Kind::Hostile,
        text: format!("{}: a life ended so: {stopped:?}, {results:?}", guest.name),
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::tests::{guest, report, result};
    use ainori::report::Life;

    /// Guests that aren't in the report were not asked after.
    #[test]
    fn guests_that_are_missing_or_did_something_else_are_found() {
        let case = Case {
            seed: 9,
            preset: "round-robin",
            vcpus: 2,
            harts: 1,
            cpu: "rv64",
            ms: 200,
            kinds: None,
            q: 250,
            lives: case::Lives::One,
            mode: None,
        }
        .trial();
        let periods = case.system.told("freertos", "periods").unwrap();
        let named = |name: &str, reason| {
            let mut said = result(periods, 0);
            // The RTOS measures all that the others do.
            let (from, to) = if name == "freertos" { (1, 9) } else { (2, 8) };
            said["span"] = serde_json::json!({ "from": from, "to": to });
            GuestReport { name: name.into(), ..guest(Some(reason), Some(said)) }
        };
        let kinds = |others: &[(&str, &'static str)]| -> Vec<Kind> {
            let others = others.iter().map(|(name, reason)| named(name, reason));
            let found =
                case.findings(&report([named("freertos", "shutdown")].into_iter().chain(others).collect()));
            found.into_iter().map(|finding| finding.kind).collect()
        };
        assert_eq!(kinds(&[("fuzz", "shutdown"), ("fpkeep", "shutdown")]), []);
        assert_eq!(kinds(&[("fuzz", "fault"), ("fpkeep", "shutdown")]), [Kind::Hostile]);
        assert_eq!(kinds(&[("fuzz", "shutdown"), ("fpkeep", "failure")]), [Kind::Neighbour]);
        assert_eq!(kinds(&[("fpkeep", "shutdown")]), [Kind::Hostile]);
        assert_eq!(kinds(&[]), [Kind::Neighbour, Kind::Hostile]);
    }

    /// So long that no turns of its equals explain it.
    #[test]
    fn a_neighbour_that_waited_for_too_long_is_found() {
        let mut trial = attacks::all().remove(0);
        (trial.neighbours, trial.patience_ms) = (vec!["fpkeep".into()], Some(7));
        let found = |trial: &Trial, ns: u64| {
            let said = serde_json::json!({ "tick_delay_ns": ns, "ok": true });
            let neighbour = GuestReport { name: "fpkeep".into(), ..guest(Some("shutdown"), Some(said)) };
            trial.starved(&report(vec![neighbour])).len()
        };
        assert_eq!((found(&trial, 7_000_000), found(&trial, 7_000_001)), (0, 1));
        let silent = GuestReport { name: "fpkeep".into(), ..guest(Some("failure"), None) };
        assert_eq!(trial.starved(&report(vec![silent])).len(), 1, "nobody knows how late it was");
        trial.patience_ms = None;
        assert_eq!(found(&trial, 7_000_001), 0);
    }

    /// What a life came to is not forgotten because the next one has begun, nor because it was the last.
    #[test]
    fn a_life_that_ended_ill_is_found() {
        let results = |ok: Option<bool>| {
            ok.and_then(|ok| serde_json::json!({ "ok": ok }).as_object().cloned()).into_iter().collect()
        };
        let fault = || guest(Some("fault"), None).stopped;
        let life = |ok, stopped| Life { started: 1, stopped, results: results(ok), problems: Vec::new() };
        let former = |lives: Vec<Life>, may_fault| {
            unwell(&GuestReport { former_lives: lives, ..guest(None, None) }, may_fault).len()
        };
        let said = |oks: [Option<bool>; 2]| former(oks.map(|ok| life(ok, None)).into(), false);
        assert_eq!(said([Some(true), Some(true)]), 0);
        assert_eq!((said([Some(true), Some(false)]), said([None, Some(true)])), (1, 1));
        let faulted = |may_fault| former(vec![life(None, fault())], may_fault);
        assert_eq!((faulted(true), faulted(false)), (0, 1));
        assert_eq!(former(vec![life(Some(false), None)], true), 1);

        let last = |reason, ok, may_fault| {
            unwell(&GuestReport { results: results(ok), ..guest(reason, None) }, may_fault).len()
        };
        assert_eq!((last(None, None, false), last(Some("shutdown"), None, false)), (0, 0));
        assert_eq!((last(None, Some(true), false), last(None, Some(false), true)), (0, 1));
        assert_eq!((last(Some("fault"), None, true), last(Some("fault"), None, false)), (0, 1));
        assert_eq!(last(Some("failure"), None, true), 1);
    }

    /// One that never ends hasn't many lives.
    #[test]
    fn too_few_lives_are_found() {
        let mut trial = attacks::all().remove(0);
        (trial.neighbours, trial.rtoses, trial.patience_ms) = Default::default();
        let mut kinds = |expected| {
            trial.hostile = vec![("fuzz".into(), expected)];
            let living = GuestReport { name: "fuzz".into(), ..guest(None, None) };
            trial.findings(&report(vec![living])).into_iter().map(|finding| finding.kind).collect::<Vec<_>>()
        };
        assert_eq!(kinds(Expected::Again(0)), []);
        assert_eq!(
            (kinds(Expected::Again(1)), kinds(Expected::FaultAgain(1))),
            (vec![Kind::Hostile], vec![Kind::Hostile])
        );
    }

    /// Each kind of lives occurs, and those that go on are not waited for.
    #[test]
    fn some_fuzzing_guests_have_many_lives() {
        use case::Lives;
        let presets = vec!["ainori", "balance"];
        let range =
            case::Range { seed: 1, presets, vcpus: case::Range::ALL_VCPUS, ms: 40, kinds: None, mode: None };
        assert_eq!(range.pairs(), 16 + 8);
        for lives in [Lives::One, Lives::Many, Lives::Faults] {
            let case = (0..40).map(|index| range.case(index)).find(|case| case.lives == lives).unwrap();
            // There is time for one only if the run is long.
            for (ms, least) in [(20, 0), (1_000, 1)] {
                let expected = match lives {
                    Lives::One => Expected::Done,
                    Lives::Many => Expected::Again(least),
                    Lives::Faults => Expected::FaultAgain(least),
                };
                assert_eq!(Case { ms, ..case }.trial().hostile, [("fuzz".to_owned(), expected)]);
            }
        }
    }

    /// Else it would be a finding that it has measured any.
    #[test]
    fn each_rtos_is_told_how_many_periods_to_measure() {
        let presets = vec!["ainori", "round-robin", "partition"];
        let range =
            case::Range { seed: 1, presets, vcpus: case::Range::ALL_VCPUS, ms: 40, kinds: None, mode: None };
        let random = (0..6).map(|index| range.case(index).trial());
        for trial in attacks::all().into_iter().chain(random) {
            for (name, _) in &trial.rtoses {
                assert!(
                    trial.system.told(name, "periods").is_some_and(|periods| periods > 0),
                    "{}",
                    trial.name
                );
            }
        }
    }
}
