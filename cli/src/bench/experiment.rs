//! An experiment's file. See `experiments/README.md` for the format as a person writes it.
use super::{definitions, tlb::Tlb};
use crate::checkout;
use miette::{Result, miette};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
};

/// The form that an experiment is run in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// As the figures are reported.
    Full,
    /// Quick: to see that all works, and roughly what comes out.
    Short,
}

/// A value that may differ between the forms: `5` or `{ full = 5, short = 1 }`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Forms<T> {
    /// The same in both forms. It is tried first, since a list of two could be read as an `Each`.
    Same(T),
    /// One value for each form.
    Each(Each<T>),
}

/// One value for each form.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Each<T> {
    full: T,
    short: T,
}

impl<T> Forms<T> {
    /// The value in one form.
    pub fn get(&self, form: Form) -> &T {
        match (self, form) {
            (Self::Same(value), _) => value,
            (Self::Each(each), Form::Full) => &each.full,
            (Self::Each(each), Form::Short) => &each.short,
        }
    }
}

/// The value of a parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Scalar {
    /// A whole number.
    Integer(i64),
    /// Another number.
    Float(f64),
    /// A word.
    Text(String),
}

impl Scalar {
    /// As a number, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Integer(value) => Some(*value as f64),
            Self::Float(value) => Some(*value),
            Self::Text(_) => None,
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(value) => value.fmt(f),
            Self::Float(value) => value.fmt(f),
            Self::Text(value) => value.fmt(f),
        }
    }
}

/// A parameter's values: one, or a list over which it is varied.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Range {
    /// Varied: one case for each.
    List(Vec<Scalar>),
    /// Fixed.
    One(Scalar),
}

impl Range {
    /// All values.
    pub fn values(&self) -> &[Scalar] {
        match self {
            Self::List(values) => values,
            Self::One(value) => std::slice::from_ref(value),
        }
    }
}

/// Parameters by name.
pub type Parameters = BTreeMap<String, Forms<Range>>;

/// An experiment.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Its name: the file's.
    #[serde(skip)]
    pub name: String,
    /// Where its file is; paths in it are relative to this folder.
    #[serde(skip)]
    pub folder: PathBuf,
    /// One line.
    pub title: String,
    /// What it asks, and what one should know to read the answer.
    pub question: String,
    /// Slices of the lockstep clock, in instructions: one run of each lockstep case for each. Their range is the error bar.
    #[serde(default = "default_q")]
    pub q: Forms<Vec<u32>>,
    /// Runs of each icount case. They differ by QEMU's `-seed`, from which Linux gets its random numbers, and by
    /// `${repetition}` where the manifest uses it.
    #[serde(default = "once")]
    pub repetitions: Forms<u32>,
    /// Parameters of all cases.
    #[serde(default)]
    pub parameters: Parameters,
    /// What is run.
    #[serde(rename = "case")]
    pub cases: Vec<Case>,
    /// Numbers that are taken from each run.
    #[serde(default, rename = "metric")]
    pub metrics: Vec<Metric>,
    /// Distributions that are taken from each run.
    #[serde(default, rename = "histogram")]
    pub histograms: Vec<Histogram>,
    /// Expressions with a name, for those of bars, derived figures and charts: see [`definitions`].
    #[serde(default)]
    pub definitions: BTreeMap<String, String>,
    /// What is stated beside the bars.
    #[serde(default)]
    pub derived: Vec<Derived>,
    /// What must hold.
    #[serde(default, rename = "bar")]
    pub bars: Vec<Bar>,
    /// Pictures.
    #[serde(default, rename = "chart")]
    pub charts: Vec<Chart>,
}

fn default_q() -> Forms<Vec<u32>> {
    Forms::Each(Each { full: vec![240, 245, 250, 255, 260], short: vec![250] })
}

fn once() -> Forms<u32> {
    Forms::Same(1)
}

/// One system, run on one machine with one clock, perhaps with parameters that vary.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Name for references: `[a-z0-9-]+`.
    pub name: String,
    /// Name for people.
    pub title: String,
    /// Template of the manifest.
    pub system: Template,
    /// What it runs on.
    #[serde(default)]
    pub machine: Machine,
    /// What time is measured in.
    pub clock: ClockKind,
    /// Parameters of this case; they go before the experiment's own.
    #[serde(default)]
    pub with: Parameters,
    /// Names of the metrics that are taken; all if left out.
    pub metrics: Option<Vec<String>>,
    /// Names of the histograms that are taken; all if left out.
    pub histograms: Option<Vec<String>>,
    /// Paths whose instructions are counted (see `tools/qemu-plugins/README.md`, `mark`).
    #[serde(default)]
    pub marks: BTreeMap<String, Mark>,
    /// Windows that a guest's program marks, by name, with their numbers (see [`super::windows`]).
    #[serde(default)]
    pub windows: BTreeMap<String, u16>,
    /// Models of TLBs that the runs are fed to in these windows; traps aren't counted then.
    pub tlb: Option<Tlb>,
    /// The run is good even if a guest says that it failed: that is what the case is to show.
    #[serde(default)]
    pub guests_may_fail: bool,
    /// Most seconds of the host that one run may take.
    #[serde(default = "hour")]
    pub timeout_s: u64,
}

/// Where the template of a manifest is: in a file, or in several, whose texts stand one behind the other.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Template {
    /// One file.
    Whole(PathBuf),
    /// Its parts, in their order. What the manifest names is looked for beside the first one.
    Parts(Vec<PathBuf>),
}

impl Template {
    /// Its files.
    pub fn files(&self) -> &[PathBuf] {
        match self {
            Self::Whole(file) => std::slice::from_ref(file),
            Self::Parts(files) => files,
        }
    }
}

fn hour() -> u64 {
    3600
}

/// What a case runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Machine {
    /// The hypervisor, on the manifest's board.
    #[default]
    Ainori,
    /// No hypervisor: the manifest's only guest, on a machine with as many harts as it has vCPUs, and with its memory.
    Bare,
}

/// What time is measured in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClockKind {
    /// Instructions of one hart.
    Icount,
    /// Lockstep virtual time of several harts.
    Lockstep,
}

/// Instructions from the first execution of one address to the first of another after it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mark {
    /// Where it begins: a hexadecimal address, or a place in a program (see [`super::paths`]).
    pub from: String,
    /// Where it ends.
    pub to: String,
}

/// A number taken from each run: `at` a place in the run's document, or an expression of metrics before it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metric {
    /// Name for expressions: `[a-z0-9_]+`.
    pub name: String,
    /// Name for people.
    pub title: String,
    /// Unit of the value.
    pub unit: String,
    /// JSON pointer (RFC 6901) into the run's document.
    pub at: Option<String>,
    /// What the number there is multiplied by, to have it in the unit.
    #[serde(default = "one")]
    pub scale: f64,
    /// What the number there is divided by: a numeric parameter, as how often something was done.
    pub per: Option<String>,
    /// What is taken if there is nothing `at` that place: 0 for a counter that is left out while it is 0.
    pub missing: Option<f64>,
    /// Expression of other metrics and of numeric parameters.
    pub value: Option<String>,
}

/// A distribution taken from each run: pairs `[upper bound of the bucket, count]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Histogram {
    /// Name for references.
    pub name: String,
    /// Unit of the bounds.
    pub unit: String,
    /// JSON pointer into the run's document.
    pub at: String,
    /// What the bounds there are multiplied by, to have them in the unit.
    #[serde(default = "one")]
    pub scale: f64,
}

fn one() -> f64 {
    1.0
}

/// Something that must hold. Exactly one of the limits is given.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bar {
    /// For people.
    pub name: String,
    /// Expression; `{case.metric}` is the median over a case's samples, `{case.metric.max}` their maximum.
    pub value: String,
    /// Unit of the value.
    pub unit: String,
    /// The value may not be greater.
    pub at_most: Option<f64>,
    /// The value may not be less.
    pub at_least: Option<f64>,
    /// The bar is made once for each combination of these parameters' values.
    #[serde(default)]
    pub each: Vec<String>,
    /// Only for these values of parameters of `each`.
    #[serde(default)]
    pub only: BTreeMap<String, Range>,
    /// Why it may have more room than three times its value: without a reason a test refuses that.
    pub why: Option<String>,
}

#[cfg(test)]
impl Bar {
    /// A bar without parameters.
    pub fn for_test(name: &str, value: &str, at_most: Option<f64>, at_least: Option<f64>) -> Self {
        let (each, only) = Default::default();
        Self {
            name: name.into(),
            value: value.into(),
            unit: "x".into(),
            at_most,
            at_least,
            each,
            only,
            why: None,
        }
    }
}

/// A figure that the report states beside the bars: it is made of several cases, and has no limit.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Derived {
    /// For people.
    pub name: String,
    /// Expression as in a bar, of medians.
    pub value: String,
    /// Unit of the value.
    pub unit: String,
    /// It is made once for each combination of these parameters' values.
    #[serde(default)]
    pub each: Vec<String>,
    /// Only for these values of parameters of `each`.
    #[serde(default)]
    pub only: BTreeMap<String, Range>,
}

/// A picture: of a histogram in several cases, or of a metric against a parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chart {
    /// Above it.
    pub title: String,
    /// Names of the cases in it.
    pub cases: Vec<String>,
    /// Histogram to show: a panel for each case.
    pub histogram: Option<String>,
    /// Parameter on the x axis.
    pub x: Option<String>,
    /// Metric on the y axis: a line for each combination of the other parameters.
    pub y: Option<String>,
    /// Only the cases whose parameters have these values.
    #[serde(default)]
    pub only: BTreeMap<String, Scalar>,
    /// What is on the x axis.
    pub x_label: String,
    /// What is on the y axis.
    pub y_label: String,
    /// Logarithmic x axis.
    #[serde(default)]
    pub x_log: bool,
    /// More lines, from expressions. Through histograms they are upright: a deadline, say.
    #[serde(default, rename = "line")]
    pub lines: Vec<Line>,
}

/// A line of a chart that is computed: an ideal, say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// In the legend.
    pub title: String,
    /// Expression as in a bar; the parameter of the x axis is known by its name. In a chart of a histogram it is a place on the x axis.
    pub value: String,
}

impl Experiment {
    /// Reads an experiment's file.
    pub fn load(path: &Path) -> Result<Self> {
        let text = String::from_utf8(checkout::read(path)?)
            .map_err(|error| miette!("{} is not text: {error}", path.display()))?;
        let folder = path.parent().unwrap_or(Path::new("."));
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        Self::parse(&text, folder, &name).map_err(|error| error.wrap_err(path.display().to_string()))
    }

    /// Reads the text of an experiment called `name`; paths in it are relative to `folder`.
    pub fn parse(text: &str, folder: &Path, name: &str) -> Result<Self> {
        let mut experiment: Self = toml::from_str(text).map_err(|error| miette!("{error}"))?;
        definitions::expand(&mut experiment)?;
        Ok(Self { name: name.to_owned(), folder: folder.to_owned(), ..experiment })
    }
}
