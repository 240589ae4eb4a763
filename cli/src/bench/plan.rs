//! An experiment, multiplied out into runs. Whatever is wrong with it is found here, before hours of runs.
use super::{
    chart::scale::Scale,
    experiment::{Bar, Case, ClockKind, Experiment, Form, Machine, Parameters, Range, Scalar},
    expression::{Expression, Reference},
    lookup::{self, Place},
    only::{self, Condition, Only, REPETITION},
    paths::{self, Address},
    template::{self, Values},
    tlb::Tlb,
    windows::{self, Window},
};
use crate::{
    apart::Apart,
    checkout,
    run::{ClockChoice, Options},
};
use ainori_manifest::{Board, Manifest};
use indexmap::IndexMap;
use miette::{Report, Result, WrapErr, miette};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    time::Duration,
};

/// What a system without a name is called. Not as its experiment: the hypervisor prints it, which moves all that follows by some instructions, so
/// the same system in two experiments would have two schedules.
const SYSTEM_NAME: &str = "bench";

/// An experiment in one form, with all its runs.
#[derive(Debug)]
pub struct Plan {
    /// The experiment.
    pub experiment: Experiment,
    /// The form.
    pub form: Form,
    /// The part of it that was asked for.
    pub only: Only,
    /// Cases, each with one value for each of its parameters, in the order of the file. Those that were not asked for are here
    /// as well, without runs.
    pub points: Vec<Point>,
}

/// A case with one value for each of its parameters.
#[derive(Debug)]
pub struct Point {
    /// Index of the case in the experiment.
    pub case: usize,
    /// Values of the parameters that the case's template uses.
    pub values: Values,
    /// Its runs: their figures differ by the error bar. None if the point was not asked for.
    pub runs: Vec<Run>,
}

/// What makes a sample one of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sample {
    /// The slice of the lockstep clock in instructions.
    Q(u32),
    /// The number of the run, from 1.
    Repetition(u32),
}

/// One run of QEMU.
#[derive(Debug)]
pub struct Run {
    /// For people.
    pub label: String,
    /// What it runs on.
    pub machine: Machine,
    /// The system.
    pub manifest: Manifest,
    /// What time is measured in.
    pub clock: ClockChoice,
    /// Which of the case's runs it is.
    pub sample: Sample,
    /// Paths whose instructions are counted: name, begin, end.
    pub marks: Vec<(String, Address, Address)>,
    /// Windows whose instructions and traps are counted.
    pub windows: Vec<Window>,
    /// Models of TLBs, which count in these windows in the place of what counts traps.
    pub tlb: Option<Tlb>,
    /// A guest that says it failed doesn't spoil the run.
    pub guests_may_fail: bool,
    /// Most host time that it may take.
    pub timeout: Duration,
}

impl Point {
    /// Was any of its runs asked for?
    pub fn is_run(&self) -> bool {
        !self.runs.is_empty()
    }
}

impl Sample {
    /// As a property of the run, for `--only`.
    fn property(self) -> (&'static str, String) {
        match self {
            Self::Q(q) => (only::Q, q.to_string()),
            Self::Repetition(number) => (REPETITION, number.to_string()),
        }
    }
}

impl Run {
    /// Where the machine's random numbers begin. Runs on the lockstep clock differ by their slices already.
    pub fn seed(&self) -> u32 {
        match self.sample {
            Sample::Q(_) => Options::DEFAULT_SEED,
            Sample::Repetition(number) => number,
        }
    }

    /// What its clock is called.
    pub fn clock_name(&self) -> &'static str {
        match self.clock {
            ClockChoice::Host => "host",
            ClockChoice::Icount => "icount",
            ClockChoice::Lockstep { .. } => "lockstep",
        }
    }

    /// The machine that it runs on: the manifest's board, or of it what the guest alone gets.
    pub fn board(&self) -> Board {
        let board = &self.manifest.board;
        match (self.machine, &self.manifest.system.guests[..]) {
            (Machine::Bare, [guest]) => {
                Board { harts: guest.vcpus.len() as u32, memory: guest.memory, ..board.clone() }
            }
            _ => board.clone(),
        }
    }

    /// `lhp policy=ainori f=30, q = 250`
    pub fn shown(&self) -> String {
        match self.sample {
            Sample::Q(q) => format!("{}, q = {q}", self.label),
            Sample::Repetition(number) => format!("{}, run {number}", self.label),
        }
    }
}

impl Plan {
    /// Plans an experiment, or the part of it for which the conditions of `only` hold.
    pub fn new(experiment: Experiment, form: Form, only: &[Condition]) -> Result<Self> {
        let mut points = Vec::new();
        for (index, case) in experiment.cases.iter().enumerate() {
            let planned = points_of(&experiment, form, case)
                .wrap_err_with(|| format!("case {} of the experiment {}", case.name, experiment.name))?;
            points.extend(planned.into_iter().map(|(values, runs)| Point { case: index, values, runs }));
        }
        let mut plan = Self { experiment, form, only: Only::default(), points };
        plan.check()
            .and_then(|()| plan.select(only))
            .wrap_err_with(|| format!("the experiment {}", plan.experiment.name))?;
        Ok(plan)
    }

    /// Leaves only the runs for which the conditions hold.
    fn select(&mut self, conditions: &[Condition]) -> Result<()> {
        let cases = &self.experiment.cases;
        let mut known = IndexMap::<String, Vec<String>>::new();
        for point in &self.points {
            for (name, value) in
                point.runs.iter().flat_map(|run| properties(cases, point.case, &point.values, run))
            {
                let values = known.entry(name.to_owned()).or_default();
                if !values.contains(&value) {
                    values.push(value);
                }
            }
        }
        self.only = Only::new(conditions, &known)?;
        for Point { case, values, runs } in &mut self.points {
            runs.retain(|run| self.only.leaves(properties(cases, *case, values, run)));
        }
        if self.runs().next().is_none() {
            return Err(miette!("--only leaves nothing of it: no run has {}", self.only));
        }
        Ok(())
    }

    /// The case that a point is of.
    pub fn case(&self, point: &Point) -> &Case {
        &self.experiment.cases[point.case]
    }

    /// All runs that were asked for.
    pub fn runs(&self) -> impl Iterator<Item = &Run> {
        self.points.iter().flat_map(|point| &point.runs)
    }

    /// Adds all that its runs read to the files of a command.
    pub fn reads(&self, files: Apart) -> Apart {
        let experiment = &self.experiment;
        let systems = experiment.cases.iter().flat_map(|case| case.system.files());
        let systems = systems.map(|file| experiment.folder.join(file));
        let files = systems.fold(files, |files, system| files.reads("the system of a case", Some(&system)));
        self.runs().flat_map(|run| &run.manifest.files).fold(files, |files, guest| {
            guest.all().fold(files, |files, (what, file)| files.reads(what, Some(file)))
        })
    }

    /// The one point that a reference means, where `bound` are the parameters that have a value there.
    pub fn find(&self, reference: &Reference, bound: &Values) -> Result<usize> {
        lookup::find(self.places(), reference, bound)
    }

    fn places(&self) -> impl Iterator<Item = Place<'_>> {
        self.points.iter().map(|point| Place { case: &self.case(point).name, values: &point.values })
    }

    /// See [`lookup::combinations`].
    fn combinations(
        &self,
        expression: &Expression,
        each: &[String],
        only: &BTreeMap<String, Range>,
    ) -> Vec<Values> {
        lookup::combinations(self.places(), expression, each, only)
    }

    /// Checks everything in the file that refers to something else in it.
    fn check(&self) -> Result<()> {
        let experiment = &self.experiment;
        unique("case", experiment.cases.iter().map(|case| &*case.name))?;
        unique("metric", experiment.metrics.iter().map(|metric| &*metric.name))?;
        unique("histogram", experiment.histograms.iter().map(|histogram| &*histogram.name))?;
        let metrics: Vec<&str> = experiment.metrics.iter().map(|metric| &*metric.name).collect();
        let histograms: Vec<&str> = experiment.histograms.iter().map(|histogram| &*histogram.name).collect();
        let parameters: BTreeSet<&str> =
            self.points.iter().flat_map(|point| point.values.keys()).map(String::as_str).collect();
        let given =
            experiment.cases.iter().flat_map(|case| case.with.keys()).chain(experiment.parameters.keys());
        if let Some(name) = given.into_iter().find(|name| only::RESERVED.contains(&&***name)) {
            return Err(miette!("no parameter can be called {name}: that is another property of a run"));
        }
        for metric in &experiment.metrics {
            match (&metric.at, &metric.value) {
                (Some(at), None) if at.starts_with('/') => {
                    if let Some(per) = &metric.per {
                        known("parameter", per, parameters.iter().copied())?;
                    }
                }
                (None, Some(value)) if metric.per.is_none() => {
                    let expression = Expression::parse(value)?;
                    for name in expression.names() {
                        known("metric or parameter", name, metrics.iter().chain(&parameters).copied())?;
                    }
                }
                _ => {
                    return Err(miette!(
                        "the metric {} needs either `at`, a JSON pointer, or `value`",
                        metric.name
                    ));
                }
            }
        }
        for case in &experiment.cases {
            for name in case.metrics.iter().flatten() {
                known("metric", name, metrics.iter().copied())?;
            }
            for name in case.histograms.iter().flatten() {
                known("histogram", name, histograms.iter().copied())?;
            }
        }
        for bar in &experiment.bars {
            self.check_bar(bar, &metrics).wrap_err_with(|| format!("the bar {:?}", bar.name))?;
        }
        for derived in &experiment.derived {
            self.check_value(&derived.value, &derived.each, &derived.only, &metrics)
                .wrap_err_with(|| format!("the derived figure {:?}", derived.name))?;
        }
        for chart in &experiment.charts {
            self.check_chart(chart, &metrics, &histograms)
                .wrap_err_with(|| format!("the chart {:?}", chart.title))?;
        }
        Ok(())
    }

    fn check_bar(&self, bar: &Bar, metrics: &[&str]) -> Result<()> {
        if bar.at_most.is_some() == bar.at_least.is_some() {
            return Err(miette!("it needs either `at_most` or `at_least`"));
        }
        self.check_value(&bar.value, &bar.each, &bar.only, metrics)
    }

    /// Checks an expression that is evaluated for each combination of some parameters' values.
    fn check_value(
        &self,
        value: &str,
        each: &[String],
        only: &BTreeMap<String, Range>,
        metrics: &[&str],
    ) -> Result<()> {
        let expression = Expression::parse(value)?;
        for name in expression.names().chain(only.keys().map(String::as_str)) {
            known("parameter in `each`", name, each.iter().map(String::as_str))?;
        }
        let combinations = self.combinations(&expression, each, only);
        if combinations.is_empty() && only.is_empty() {
            return Err(miette!("none of its cases has all the parameters {}", each.join(", ")));
        }
        for bound in &combinations {
            self.check_references(&expression, bound, metrics)?;
        }
        Ok(())
    }

    fn check_chart(
        &self,
        chart: &super::experiment::Chart,
        metrics: &[&str],
        histograms: &[&str],
    ) -> Result<()> {
        let scale = Scale { log: chart.x_log };
        for name in &chart.cases {
            known("case", name, self.experiment.cases.iter().map(|case| &*case.name))?;
        }
        match (&chart.histogram, &chart.x, &chart.y) {
            (Some(name), None, None) => {
                known("histogram", name, histograms.iter().copied())?;
                for line in &chart.lines {
                    let expression = Expression::parse(&line.value)?;
                    self.check_references(&expression, &chart.only, metrics)?;
                    // What needs figures of runs is known when it is drawn.
                    let value = expression.value(|name| chart.only.get(name)?.number(), |_| None);
                    scale.check(&format!("the line {:?}", line.title), value.into_iter())?;
                }
                Ok(())
            }
            (None, Some(x), Some(y)) => {
                known("metric", y, metrics.iter().copied())?;
                let axis = self.axis(chart, x)?;
                scale.check(x, axis.iter().filter_map(Scalar::number))?;
                for value in axis {
                    for line in &chart.lines {
                        let mut bound = chart.only.clone();
                        bound.insert(x.clone(), value.clone());
                        self.check_references(&Expression::parse(&line.value)?, &bound, metrics)?;
                    }
                }
                Ok(())
            }
            _ => Err(miette!("it needs either `histogram`, or `x` and `y`")),
        }
    }

    /// The values of a chart's x axis, in rising order.
    pub fn axis(&self, chart: &super::experiment::Chart, x: &str) -> Result<Vec<Scalar>> {
        let mut axis = Vec::new();
        for point in self.points.iter().filter(|point| chart.cases.contains(&self.case(point).name)) {
            let value = point.values.get(x).filter(|value| value.number().is_some());
            let value =
                value.ok_or_else(|| miette!("{x} is no numeric parameter of {}", self.case(point).name))?;
            if !axis.contains(value) {
                axis.push(value.clone());
            }
        }
        axis.sort_by(|a, b| a.number().partial_cmp(&b.number()).unwrap_or(std::cmp::Ordering::Equal));
        Ok(axis)
    }

    fn check_references(&self, expression: &Expression, bound: &Values, metrics: &[&str]) -> Result<()> {
        for reference in expression.references() {
            known("metric", &reference.metric, metrics.iter().copied())?;
            self.find(reference, bound)?;
        }
        Ok(())
    }
}

/// What `--only` can ask of a run.
fn properties<'a>(
    cases: &'a [Case],
    case: usize,
    values: &'a Values,
    run: &Run,
) -> impl Iterator<Item = (&'a str, String)> {
    let parameters = values.iter().map(|(name, value)| (name.as_str(), value.to_string()));
    [(only::CASE, cases[case].name.clone())].into_iter().chain(parameters).chain([run.sample.property()])
}

fn unique<'a>(what: &str, names: impl Iterator<Item = &'a str>) -> Result<()> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(miette!("two of its {what}s are called {name:?}"));
        }
    }
    Ok(())
}

fn known<'a>(what: &str, name: &str, mut names: impl Iterator<Item = &'a str>) -> Result<()> {
    if names.any(|known| known == name) { Ok(()) } else { Err(miette!("there is no {what} {name:?}")) }
}

/// Multiplies a case out: each combination of its parameters' values, with its runs.
fn points_of(experiment: &Experiment, form: Form, case: &Case) -> Result<Vec<(Values, Vec<Run>)>> {
    let (file, template) = read(experiment, case)?;
    let used = template::names(&template).wrap_err_with(|| file.display().to_string())?;
    if let Some(unused) = case.with.keys().find(|name| !used.contains(&***name)) {
        return Err(miette!("{} has no place ${{{unused}}}", file.display()));
    }
    let marks: Result<Vec<_>> = case
        .marks
        .iter()
        .map(|(name, mark)| {
            let address = |text| paths::resolve(text, &experiment.folder);
            Ok((name.clone(), address(&mark.from)?, address(&mark.to)?))
        })
        .collect();
    let marks = marks?;
    let windows = windows_of(case)?;
    if let Some(tlb) = &case.tlb {
        tlb.check()?;
        if windows.is_empty() {
            return Err(miette!("models of TLBs count in windows, and there are none"));
        }
    }

    let mut points = Vec::new();
    for values in products(&[&experiment.parameters, &case.with], &used, form) {
        let mut runs = Vec::new();
        let mut parsed: Option<(String, Manifest)> = None;
        for (clock, sample) in clocks(experiment, form, case.clock) {
            let mut all = values.clone();
            let number = match sample {
                Sample::Q(_) => 1,
                Sample::Repetition(number) => number,
            };
            all.insert(REPETITION.into(), Scalar::Integer(number.into()));
            let text = template::substitute(&template, &all).wrap_err_with(|| file.display().to_string())?;
            // Runs that differ by their slice alone have one manifest, and to parse it its images are read.
            let manifest = match &parsed {
                Some((same, manifest)) if *same == text => Manifest::clone(manifest),
                _ => parsed.insert((text.clone(), parse(&file, &text, experiment, case)?)).1.clone(),
            };
            runs.push(Run {
                label: label(case, &values),
                machine: case.machine,
                manifest,
                clock,
                sample,
                marks: marks.clone(),
                windows: windows.clone(),
                tlb: case.tlb.clone(),
                guests_may_fail: case.guests_may_fail,
                timeout: Duration::from_secs(case.timeout_s),
            });
        }
        if runs.is_empty() {
            return Err(miette!("it has no runs: `q` or `repetitions` is empty"));
        }
        points.push((values, runs));
    }
    Ok(points)
}

/// The windows that a case counts, in the order of their names.
fn windows_of(case: &Case) -> Result<Vec<Window>> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    let mut windows: Vec<Window> = Vec::new();
    for (name, &number) in &case.windows {
        if name.is_empty() || !name.chars().all(is_plain) {
            return Err(miette!("the window {name:?} needs a name of letters, digits, _ and -"));
        }
        if number == 0 || number > windows::MOST || windows.iter().any(|other| other.number == number) {
            return Err(miette!("the window {name} needs a number of its own, from 1 to {}", windows::MOST));
        }
        windows.push(Window { name: name.clone(), number });
    }
    Ok(windows)
}

/// The template of a case's manifest, and what it is called where something is wrong with it: its file, or the first one, with the names of the others.
fn read(experiment: &Experiment, case: &Case) -> Result<(PathBuf, String)> {
    let [first, others @ ..] = case.system.files() else {
        return Err(miette!(help = "name one at least", "`system` has no file"));
    };
    let mut name = experiment.folder.join(first).into_os_string();
    let mut text = String::new();
    for file in case.system.files() {
        let file = experiment.folder.join(file);
        text += &String::from_utf8(checkout::read(&file)?)
            .map_err(|error| miette!("{} is not text: {error}", file.display()))?;
        if !text.ends_with('\n') {
            text.push('\n');
        }
    }
    for other in others {
        name.push(" + ");
        name.push(other.file_name().unwrap_or_default());
    }
    Ok((name.into(), text))
}

/// Parses a manifest that suits its case.
fn parse(file: &Path, text: &str, experiment: &Experiment, case: &Case) -> Result<Manifest> {
    let folder = file.parent().unwrap_or(&experiment.folder);
    let manifest = Manifest::parse(&file.display().to_string(), text, folder, SYSTEM_NAME)
        .map_err(|findings| Report::new(*findings))?;
    suits(&manifest, case)?;
    Ok(manifest)
}

/// `lhp policy=ainori f=30`
pub fn label(case: &Case, values: &Values) -> String {
    let values = values.iter().map(|(name, value)| format!(" {name}={value}"));
    format!("{}{}", case.name, values.collect::<String>())
}

fn clocks(experiment: &Experiment, form: Form, clock: ClockKind) -> Vec<(ClockChoice, Sample)> {
    match clock {
        ClockKind::Icount => (1..=*experiment.repetitions.get(form))
            .map(|number| (ClockChoice::Icount, Sample::Repetition(number)))
            .collect(),
        ClockKind::Lockstep => {
            experiment.q.get(form).iter().map(|&q| (ClockChoice::Lockstep { q }, Sample::Q(q))).collect()
        }
    }
}

fn suits(manifest: &Manifest, case: &Case) -> Result<()> {
    let guests = &manifest.system.guests;
    let harts = match case.machine {
        Machine::Ainori => manifest.board.harts as usize,
        Machine::Bare if guests.len() == 1 => guests[0].vcpus.len(),
        Machine::Bare => {
            return Err(miette!("the bare machine runs one guest, but the manifest has {}", guests.len()));
        }
    };
    if case.clock == ClockKind::Icount && harts != 1 {
        return Err(miette!(
            help = "use clock = \"lockstep\"",
            "clock = \"icount\" counts the instructions of one hart, but there are {harts}"
        ));
    }
    Ok(())
}

/// All combinations of the values of the parameters that are `used`. Later layers go before earlier ones.
fn products(layers: &[&Parameters], used: &BTreeSet<&str>, form: Form) -> Vec<Values> {
    let mut ranges = BTreeMap::new();
    for (name, range) in layers.iter().copied().flatten() {
        ranges.insert(name, range.get(form).values());
    }
    let mut products = vec![Values::new()];
    for (name, range) in ranges.into_iter().filter(|(name, _)| used.contains(&***name)) {
        products = products
            .into_iter()
            .flat_map(|values| {
                range.iter().map(move |value| {
                    let mut values = values.clone();
                    values.insert(name.clone(), value.clone());
                    values
                })
            })
            .collect();
    }
    products
}

#[cfg(test)]
mod tests;
