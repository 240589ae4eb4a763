//! What became of one trial, as it is kept.
use super::Trial;
use crate::{
    bounds::{Finding, Greatest, Kind, number},
    version::hash,
};
use ainori::report::RunReport;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// What became of one trial.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    /// [`Trial::name`].
    pub trial: String,
    /// The same for the same trial on the same programs only.
    pub key: String,
    /// Of all programs that took part ([`Programs::version`](crate::version::Programs::version)).
    pub version: String,
    /// The preset.
    pub preset: String,
    /// vCPUs of all hostile guests.
    pub vcpus: u32,
    /// Instructions of a slice in lockstep time.
    pub q: u32,
    /// What each guest was told: seed, length, kinds of inputs.
    pub args: BTreeMap<String, String>,
    /// Inputs that the fuzzing guest tried, or turns of an attack.
    pub inputs: u64,
    /// By kind.
    pub kinds: BTreeMap<String, u64>,
    /// Lives after which a guest was started again.
    #[serde(default)]
    pub lives: u64,
    /// How late a neighbour that is no RTOS took its tick at most, in nanoseconds; `None` if nobody measured it.
    #[serde(default)]
    pub neighbour_ns: Option<u64>,
    /// Periods that RTOSes measured.
    pub periods: u64,
    /// How near it came to its bounds.
    #[serde(flatten)]
    pub greatest: Greatest,
    /// Host seconds.
    pub seconds: f64,
    /// What doesn't hold.
    pub findings: Vec<Finding>,
}

/// Everything that a trial is made of, what is asked of it included, and what it runs on, as a hash.
pub fn key(trial: &Trial, q: u32, version: &str) -> String {
    let Trial { name, preset, system, hostile, rtoses, neighbours, patience_ms } = trial;
    let asked = format!("{hostile:?} {rtoses:?} {neighbours:?} {patience_ms:?}");
    hash([name, *preset, &system.to_string(), &asked, &q.to_string(), version])
}

impl Outcome {
    /// That of a trial that hasn't run.
    pub fn new(trial: &Trial, q: u32, version: String) -> Self {
        Self {
            trial: trial.name.clone(),
            key: key(trial, q, &version),
            version,
            preset: trial.preset.into(),
            vcpus: trial.hostile.iter().map(|(name, _)| trial.system.vcpus_of(name)).sum(),
            q,
            args: trial.system.args(),
            inputs: 0,
            kinds: BTreeMap::new(),
            lives: 0,
            neighbour_ns: None,
            periods: 0,
            greatest: Greatest::default(),
            seconds: 0.0,
            findings: Vec::new(),
        }
    }

    /// Adds something that doesn't hold.
    pub fn find(&mut self, kind: Kind, text: &str) {
        self.findings.push(Finding { kind, text: text.into() });
    }

    /// Takes the figures of a run.
    pub fn measure(&mut self, trial: &Trial, report: &RunReport) {
        self.seconds = report.host.seconds;
        for guest in &report.guests {
            let former = guest.former_lives.iter().map(|life| &life.results);
            for result in former.chain([&guest.results]).filter_map(|results| results.first()) {
                self.inputs += result.get("inputs").and_then(Value::as_u64).unwrap_or(0);
                for (kind, count) in result.get("kinds").and_then(Value::as_object).into_iter().flatten() {
                    *self.kinds.entry(kind.clone()).or_default() += count.as_u64().unwrap_or(0);
                }
            }
            self.lives += guest.former_lives.len() as u64;
        }
        let is_rtos = |name: &str| trial.rtoses.iter().any(|(rtos, _)| rtos == name);
        for guest in report.guests.iter().filter(|guest| is_rtos(&guest.name)) {
            self.periods += number(guest, "periods").unwrap_or(0);
        }
        let is_neighbour = |name: &String| trial.neighbours.contains(name);
        for guest in report.guests.iter().filter(|guest| is_neighbour(&guest.name)) {
            self.neighbour_ns = self.neighbour_ns.max(number(guest, "tick_delay_ns"));
        }
        let has_rtos = |hart| trial.rtoses.iter().any(|(_, its)| u64::from(*its) == hart);
        self.greatest = Greatest::of(report, |guest| is_rtos(&guest.name), has_rtos);
    }
}
