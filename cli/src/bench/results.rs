//! The results of an experiment, as they are written to JSON and read again to be compared.
use super::{
    charts::ChartResult,
    experiment::{ClockKind, Form, Machine, Scalar},
    only::Only,
    plan::Sample,
    template::Values,
    verdict::BarResult,
    versions::Versions,
};
use crate::checkout;
use indexmap::IndexMap;
use miette::{Result, miette};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What an experiment found. The same for the same inputs, but for [`Self::date`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// Name of the experiment.
    pub experiment: String,
    /// In a line.
    pub title: String,
    /// What it asks.
    pub question: String,
    /// The form that it was run in.
    pub form: Form,
    /// The part of it that was run; empty for all. What is not here has left its bars and charts out as well.
    #[serde(default)]
    pub only: Only,
    /// When the results were put together (UTC, RFC 3339).
    pub date: String,
    /// The command that gives them again.
    pub command: String,
    /// What the figures are, and what they are not.
    pub machine: String,
    /// Everything that took part.
    pub versions: Versions,
    /// The cases, each with one value for each parameter.
    pub cases: Vec<CaseResult>,
    /// What had to hold.
    pub bars: Vec<BarResult>,
    /// Figures that are derived from several cases, without a limit.
    #[serde(default)]
    pub derived: Vec<DerivedResult>,
    /// What its charts show, beside the cases: they can be drawn again from here.
    #[serde(default)]
    pub charts: Vec<ChartResult>,
}

/// A case with one value for each of its parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseResult {
    /// Name of the case.
    pub name: String,
    /// Name for people.
    pub title: String,
    /// Values of its parameters.
    pub params: Values,
    /// What it ran on.
    pub machine: Machine,
    /// Harts of the machine.
    pub harts: u32,
    /// Its memory in bytes.
    pub memory: u64,
    /// The CPU model of its harts, as QEMU takes it.
    pub cpu: String,
    /// What time was measured in.
    pub clock: ClockKind,
    /// Its runs.
    pub samples: Vec<SampleResult>,
    /// Metrics over the samples.
    pub metrics: IndexMap<String, MetricResult>,
    /// Distributions, summed over the samples.
    pub histograms: IndexMap<String, HistogramResult>,
    /// Why figures are missing, in words.
    pub problems: Vec<String>,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SampleResult {
    /// What makes it one of its own.
    #[serde(flatten)]
    pub sample: Sample,
    /// Key of the run in the store.
    pub key: String,
    /// Hash of the lockstep schedule: the same for identical runs.
    pub schedule: Option<String>,
    /// Its metrics.
    pub metrics: IndexMap<String, f64>,
    /// Hash of its whole document, histograms and counters included: the first 32 digits of SHA-256. Results of
    /// November 2026 that are older than this field have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<String>,
}

impl SampleResult {
    /// Is the other one the same run once more? Slices make one of the same figures where there is one hart, though its document names the slice and the schedule. Repetitions have nothing of that kind in their
    /// documents, so those tell: one that began at another time may have the same figures and be another run.
    pub fn is_same_run(&self, other: &Self) -> bool {
        self.metrics == other.metrics
            && (matches!(self.sample, Sample::Q(_)) || self.document == other.document)
    }
}

/// A metric over the samples of a case. The range is the error bar.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetricResult {
    /// The one in the middle; with an even number of samples, between the two in the middle.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
    /// Their unit.
    pub unit: String,
}

impl MetricResult {
    /// Summarises samples; `None` if there is none.
    pub fn of(samples: &[f64], unit: &str) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let half = sorted.len() / 2;
        let median =
            if sorted.len() % 2 == 1 { sorted[half] } else { (sorted[half - 1] + sorted[half]) / 2.0 };
        Some(Self { median, min, max, unit: unit.to_owned() })
    }
}

/// A distribution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistogramResult {
    /// Unit of the bounds.
    pub unit: String,
    /// Upper bound and count of each bucket that isn't empty, by rising bound.
    pub buckets: Vec<(f64, u64)>,
}

/// A figure that is derived from several cases, over the pairs of their samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DerivedResult {
    /// For people, with the values that it is for.
    pub name: String,
    /// Its median and range over the pairs.
    pub value: MetricResult,
    /// The pairs: one for each q or repetition.
    pub pairs: usize,
}

impl CaseResult {
    /// `(4) beside Linux, policy = spumone`: the title, and the parameters that vary among the results of this case.
    pub fn shown(&self, among: &[CaseResult]) -> String {
        let values = self.varied(among).map(|(name, value)| format!(", {name} = {value}"));
        format!("{}{}", self.title, values.collect::<String>())
    }

    /// The parameters that vary among the results of this case.
    pub fn varied<'a>(&'a self, among: &'a [CaseResult]) -> impl Iterator<Item = (&'a String, &'a Scalar)> {
        let same_case = || among.iter().filter(|other| other.name == self.name);
        self.params
            .iter()
            .filter(move |(name, value)| same_case().any(|other| other.params.get(*name) != Some(value)))
    }
}

impl Results {
    /// Reads results that were written as JSON.
    pub fn load(path: &Path) -> Result<Self> {
        serde_json::from_slice(&checkout::read(path)?)
            .map_err(|error| miette!("{} does not hold the results of a bench: {error}", path.display()))
    }

    /// The metrics that any of the cases has, with their units: the columns of a table.
    pub fn metrics(&self) -> IndexMap<&str, &str> {
        let metrics = self.cases.iter().flat_map(|case| &case.metrics);
        metrics.map(|(name, metric)| (name.as_str(), metric.unit.as_str())).collect()
    }

    /// As JSON.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("plain data has a JSON form") + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_stands_in_the_middle_of_the_range() {
        let odd = MetricResult::of(&[3.0, 1.0, 2.0], "s").unwrap();
        assert_eq!((odd.min, odd.median, odd.max), (1.0, 2.0, 3.0));
        assert_eq!(MetricResult::of(&[4.0, 1.0, 2.0, 3.0], "s").unwrap().median, 2.5);
        assert_eq!(MetricResult::of(&[], "s"), None);
    }
}
