//! What the trials of a campaign have shown together: as a table for people, and as JSON.
use super::outcome::Outcome;
use crate::bounds::{Greatest, Kind};
use serde::Serialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::{self, Display, Formatter},
};

/// A campaign.
#[derive(Debug, Default, Serialize)]
pub struct Summary {
    /// Versions of the programs; several only if trials have different guests.
    pub versions: BTreeSet<String>,
    /// By preset.
    pub presets: BTreeMap<String, Figures>,
    /// All of them.
    pub total: Figures,
    /// Pairs of a preset and a number of hostile vCPUs that occurred.
    pub pairs: usize,
    /// Pairs that could occur; `None` for attacks.
    pub pairs_possible: Option<usize>,
    /// Findings by kind.
    pub findings: BTreeMap<Kind, u64>,
}

/// What some trials have shown.
#[derive(Debug, Default, Clone, PartialEq, Serialize)]
pub struct Figures {
    /// Trials.
    pub runs: u64,
    /// Those of them that an earlier call ran.
    pub runs_earlier: u64,
    /// Those with findings.
    pub runs_failed: u64,
    /// Inputs, or turns of attacks.
    pub inputs: u64,
    /// Those of them that an earlier call tried.
    pub inputs_earlier: u64,
    /// Lives after which a guest was started again.
    pub lives: u64,
    /// How late a neighbour that is no RTOS took its tick at most; `None` if nobody measured it.
    pub neighbour_ns: Option<u64>,
    /// Periods that RTOSes measured.
    pub periods: u64,
    /// How near they came to their bounds.
    #[serde(flatten)]
    pub greatest: Greatest,
    /// Numbers of hostile vCPUs that occurred.
    pub vcpus: BTreeSet<u32>,
    /// Host seconds of all runs.
    pub seconds: f64,
}

impl Figures {
    fn add(&mut self, outcome: &Outcome, earlier: bool) {
        self.runs += 1;
        self.runs_failed += u64::from(!outcome.findings.is_empty());
        self.inputs += outcome.inputs;
        if earlier {
            self.runs_earlier += 1;
            self.inputs_earlier += outcome.inputs;
        }
        self.lives += outcome.lives;
        self.neighbour_ns = self.neighbour_ns.max(outcome.neighbour_ns);
        self.periods += outcome.periods;
        self.greatest = self.greatest.max(outcome.greatest);
        self.vcpus.extend((outcome.vcpus > 0).then_some(outcome.vcpus));
        self.seconds += outcome.seconds;
    }
}

impl Summary {
    /// Without any trial so far.
    pub fn new(pairs_possible: Option<usize>) -> Self {
        Self { pairs_possible, ..Self::default() }
    }

    /// Adds a trial, which may be of an earlier call.
    pub fn add(&mut self, outcome: &Outcome, earlier: bool) {
        self.versions.insert(outcome.version.clone());
        let preset = self.presets.entry(outcome.preset.clone()).or_default();
        let vcpus_before = preset.vcpus.len();
        preset.add(outcome, earlier);
        self.pairs += preset.vcpus.len() - vcpus_before;
        self.total.add(outcome, earlier);
        for finding in &outcome.findings {
            *self.findings.entry(finding.kind).or_default() += 1;
        }
    }
}

impl Display for Summary {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let [top, below] = [
            [
                "",
                "",
                "",
                "",
                "",
                "task",
                "handler",
                "irqs-off us",
                "irqs-off us",
                "neighbour",
                "numbers",
                "",
                "",
            ],
            [
                "preset",
                "runs",
                "inputs",
                "restarts",
                "periods",
                "us",
                "us",
                "at RTOS",
                "elsewhere",
                "ms",
                "of vCPUs",
                "host s",
                "failed",
            ],
        ];
        row(f, top)?;
        row(f, below)?;
        let total = ("total", &self.total);
        let presets = self.presets.iter().map(|(name, figures)| (name.as_str(), figures));
        for (name, figures) in presets.chain([total]) {
            let us = |ns: Option<u64>| ns.map_or("-".into(), |ns| format!("{:.1}", ns as f64 / 1e3));
            let cells = [
                name.to_owned(),
                figures.runs.to_string(),
                figures.inputs.to_string(),
                figures.lives.to_string(),
                figures.periods.to_string(),
                us(figures.greatest.task_ns),
                us(figures.greatest.handler_ns),
                us(figures.greatest.irqs_off_beside_rtos_ns),
                us(figures.greatest.irqs_off_elsewhere_ns),
                figures.neighbour_ns.map_or("-".into(), |ns| format!("{:.1}", ns as f64 / 1e6)),
                figures.vcpus.len().to_string(),
                format!("{:.0}", figures.seconds),
                figures.runs_failed.to_string(),
            ];
            row(f, cells.each_ref().map(String::as_str))?;
        }
        let of = self.pairs_possible.map_or(String::new(), |possible| format!(" of {possible}"));
        writeln!(f, "{}{of} pairs of a preset and a number of vCPUs occurred.", self.pairs)?;
        if self.total.runs_earlier > 0 {
            writeln!(
                f,
                "{} runs with {} inputs are of earlier calls, of the same version and parameters.",
                self.total.runs_earlier, self.total.inputs_earlier
            )?;
        }
        write!(f, "Findings: {:?}", self.findings)
    }
}

/// A line of the table.
fn row(f: &mut Formatter<'_>, cells: [&str; 13]) -> fmt::Result {
    let [first, rest @ ..] = cells;
    write!(f, "{first:<26}")?;
    for (cell, width) in rest.iter().zip([6, 11, 10, 10, 9, 9, 12, 12, 10, 9, 8, 8]) {
        write!(f, "{cell:>width$}")?;
    }
    writeln!(f)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::case::{Case, Lives};

    /// The outcome of a run with these figures.
    fn outcome(preset: &'static str, vcpus: u32, task_ns: u64, irqs_off: (u64, u64)) -> Outcome {
        let case = Case {
            seed: 1,
            preset,
            vcpus,
            harts: 2,
            cpu: "rv64",
            ms: 20,
            kinds: None,
            q: 250,
            lives: Lives::One,
            mode: None,
        };
        let outcome = Outcome::new(&case.trial(), 250, "version".into());
        assert_eq!(outcome.vcpus, vcpus);
        let (irqs_off_beside_rtos_ns, irqs_off_elsewhere_ns) = irqs_off;
        Outcome {
            inputs: 100,
            lives: 2,
            neighbour_ns: Some(task_ns * 1_000),
            periods: 20,
            greatest: Greatest {
                task_ns: Some(task_ns),
                handler_ns: Some(task_ns / 2),
                irqs_off_beside_rtos_ns: Some(irqs_off_beside_rtos_ns),
                irqs_off_elsewhere_ns: Some(irqs_off_elsewhere_ns),
            },
            ..outcome
        }
    }

    fn summary() -> Summary {
        let mut summary = Summary::new(Some(6));
        let mut failed = outcome("delayed", 2, 9_000, (4_000, 60_000));
        failed.find(Kind::IrqsOff, "60 us");
        summary.add(&outcome("ainori", 1, 2_000, (3_000, 20_000)), true);
        summary.add(&outcome("ainori", 1, 1_500, (4_500, 10_000)), false);
        summary.add(&outcome("ainori", 3, 1_600, (1_000, 1_000)), false);
        summary.add(&failed, false);
        summary
    }

    #[test]
    fn figures_are_those_of_each_preset() {
        let summary = summary();
        let wanted = Figures {
            runs: 3,
            runs_earlier: 1,
            inputs: 300,
            inputs_earlier: 100,
            lives: 6,
            neighbour_ns: Some(2_000_000),
            periods: 60,
            greatest: Greatest {
                task_ns: Some(2_000),
                handler_ns: Some(1_000),
                irqs_off_beside_rtos_ns: Some(4_500),
                irqs_off_elsewhere_ns: Some(20_000),
            },
            vcpus: [1, 3].into(),
            ..Figures::default()
        };
        assert_eq!(summary.presets["ainori"], wanted);
        assert_eq!((summary.total.runs, summary.total.runs_failed, summary.total.periods), (4, 1, 80));
        assert_eq!((summary.pairs, &summary.findings), (3, &[(Kind::IrqsOff, 1)].into()));
    }

    #[test]
    fn the_table_tells_all_of_them() {
        let text = summary().to_string();
        let line = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap();
        let cells: Vec<&str> = line("ainori").split_whitespace().collect();
        assert_eq!(
            cells,
            ["ainori", "3", "300", "6", "60", "2.0", "1.0", "4.5", "20.0", "2.0", "2", "0", "0"]
        );
        assert!(text.contains("\n3 of 6 pairs"), "{text}");
        assert!(text.contains("1 runs with 100 inputs are of earlier calls"), "{text}");
        assert!(text.ends_with("Findings: {IrqsOff: 1}"), "{text}");
    }

    /// As is the case for boards of one hart, and attacks without an RTOS.
    #[test]
    fn what_was_not_measured_is_not_zero() {
        let mut summary = Summary::new(None);
        let measured = outcome("ainori", 1, 2_000, (3_000, 20_000));
        let greatest = Greatest { irqs_off_elsewhere_ns: None, ..measured.greatest };
        summary.add(&Outcome { greatest, neighbour_ns: None, vcpus: 0, ..measured }, false);
        let text = summary.to_string();
        let cells: Vec<&str> =
            text.lines().find(|line| line.starts_with("ainori")).unwrap().split_whitespace().collect();
        assert_eq!(cells[7..11], ["3.0", "-", "-", "0"]);
        assert!(text.contains("\n0 pairs"), "{text}");
    }

    #[test]
    fn json_has_the_same_figures() {
        let json = serde_json::to_value(summary()).unwrap();
        assert_eq!(json["presets"]["delayed"]["irqs_off_elsewhere_ns"], 60_000);
        assert_eq!(json["findings"]["irqs-off"], 1);
        assert_eq!((&json["pairs"], &json["pairs_possible"]), (&3.into(), &6.into()));
    }
}
