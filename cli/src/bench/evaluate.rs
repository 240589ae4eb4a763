//! From the documents of runs to metrics, their ranges, and bars.
use super::{
    code, document,
    engine::Done,
    experiment::{Histogram, Machine, Metric},
    expression::{Expression, Figure},
    judge, key,
    plan::{Plan, Point, Run},
    results::{CaseResult, HistogramResult, MetricResult, SampleResult},
    template::Values,
    verdict::BarResult,
};
use crate::deadlines::Deadlines;
use ainori_deadlines::costs::MIPS;
use ainori_sched::Policy;
use indexmap::IndexMap;
use miette::Result;
use serde_json::Value;
use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
};

/// Summarises each point that was run. `keys` has the key of each run, by point.
pub fn cases(plan: &Plan, keys: &[Vec<String>], done: &Done) -> Result<Vec<CaseResult>> {
    let selected = plan.points.iter().zip(keys).filter(|(point, _)| point.is_run());
    selected.map(|(point, keys)| case_result(plan, point, keys, done)).collect()
}

fn case_result(plan: &Plan, point: &Point, keys: &[String], done: &Done) -> Result<CaseResult> {
    let case = plan.case(point);
    let mut problems = Vec::new();
    let mut samples = Vec::new();
    let mut buckets: HashMap<&str, BTreeMap<u64, u64>> = HashMap::new();
    let histograms: Vec<&Histogram> = plan
        .experiment
        .histograms
        .iter()
        .filter(|histogram| takes(&case.histograms, &histogram.name))
        .collect();
    for (run, key) in point.runs.iter().zip(keys) {
        let Some(document) = done.documents.get(key) else {
            let why = done.failures.get(key).map_or("it was not run", String::as_str);
            problems.push(format!("{}: {why}", run.shown()));
            continue;
        };
        let missing = |what: &str, at: &str| format!("{}: no {what} at {at} of its document", run.shown());
        let seen = with_more(document, run)?;
        let mut metrics = IndexMap::new();
        for metric in plan.experiment.metrics.iter().filter(|metric| takes(&case.metrics, &metric.name)) {
            match sample(metric, &seen, &metrics, &point.values)? {
                Some(value) => drop(metrics.insert(metric.name.clone(), value)),
                None => problems.push(missing("number", metric.at.as_deref().unwrap_or(&metric.name))),
            }
        }
        for histogram in &histograms {
            match pairs(document.pointer(&histogram.at)) {
                Some(pairs) => {
                    let sum = buckets.entry(&histogram.name).or_default();
                    for (bound, count) in pairs {
                        *sum.entry(bound).or_default() += count;
                    }
                }
                None => problems.push(missing("histogram", &histogram.at)),
            }
        }
        let schedule = document.pointer("/clock/hash").and_then(Value::as_str).map(str::to_owned);
        let digest = Some(key::digest(document));
        samples.push(SampleResult {
            sample: run.sample,
            key: key.clone(),
            schedule,
            metrics,
            document: digest,
        });
    }
    let metrics = plan.experiment.metrics.iter().filter_map(|metric| {
        let values: Vec<f64> =
            samples.iter().filter_map(|sample| sample.metrics.get(&metric.name).copied()).collect();
        Some((metric.name.clone(), MetricResult::of(&values, &metric.unit)?))
    });
    let histograms = histograms.iter().filter_map(|histogram| {
        let buckets = buckets
            .get(&*histogram.name)?
            .iter()
            .map(|(bound, count)| (*bound as f64 * histogram.scale, *count))
            .collect();
        Some((histogram.name.clone(), HistogramResult { unit: histogram.unit.clone(), buckets }))
    });
    let board = point.runs[0].board();
    Ok(CaseResult {
        name: case.name.clone(),
        title: case.title.clone(),
        params: point.values.clone(),
        machine: case.machine,
        harts: board.harts,
        memory: board.memory,
        cpu: board.cpu,
        clock: case.clock,
        metrics: metrics.collect(),
        histograms: histograms.collect(),
        samples,
        problems,
    })
}

/// A case takes all that it doesn't leave out.
fn takes(wanted: &Option<Vec<String>>, name: &String) -> bool {
    wanted.as_ref().is_none_or(|wanted| wanted.contains(name))
}

/// What metrics see: the run's document and, under the hypervisor, how much code its policy is, and what is said of the deadlines of its system.
fn with_more<'a>(document: &'a Value, run: &Run) -> Result<Cow<'a, Value>> {
    let mut seen = Cow::Borrowed(document);
    if run.machine != Machine::Ainori {
        return Ok(seen);
    }
    seen.to_mut()["irqs_off_total"] = document::irqs_off_total(document).into();
    // The length of its times doesn't matter.
    if let Some(policy) = Policy::preset(&run.manifest.system.policy.preset, 1, 1_000) {
        seen.to_mut()["policy"] = code::lines(&policy)?;
    }
    if run.manifest.tasks.iter().any(|tasks| !tasks.is_empty()) {
        // Virtual time has so many instructions a second.
        seen.to_mut()["check"] = document::answers(&Deadlines::of(&run.manifest, MIPS)?);
    }
    Ok(seen)
}

/// A metric of one run.
fn sample(
    metric: &Metric,
    document: &Value,
    before: &IndexMap<String, f64>,
    values: &Values,
) -> Result<Option<f64>> {
    match (&metric.at, &metric.value) {
        (Some(at), _) => {
            let there = document.pointer(at).map_or(metric.missing, Value::as_f64);
            let per = metric.per.as_ref().map_or(Some(1.0), |name| values.get(name)?.number());
            Ok(there.zip(per).map(|(value, per)| value * metric.scale / per))
        }
        (None, Some(text)) => {
            let known = |name: &str| before.get(name).copied().or_else(|| values.get(name)?.number());
            Ok(Expression::parse(text)?.value(known, |_| None))
        }
        (None, None) => Ok(None),
    }
}

/// `[[bound, count], ...]`
fn pairs(histogram: Option<&Value>) -> Option<Vec<(u64, u64)>> {
    let pairs = histogram?.as_array()?.iter();
    pairs.map(|pair| Some((pair.get(0)?.as_u64()?, pair.get(1)?.as_u64()?))).collect()
}

/// Looks up a figure of a case that was run.
pub fn figure(
    plan: &Plan,
    cases: &[CaseResult],
    expression: &Expression,
    bound: &Values,
) -> Result<Option<f64>> {
    let value = |reference: &super::expression::Reference| {
        let point = &plan.points[plan.find(reference, bound).ok()?];
        let name = &plan.case(point).name;
        let case = cases.iter().find(|case| case.name == *name && case.params == point.values)?;
        let metric = case.metrics.get(&reference.metric)?;
        Some(match reference.figure {
            Figure::Min => metric.min,
            Figure::Median => metric.median,
            Figure::Max => metric.max,
        })
    };
    Ok(expression.value(|name| bound.get(name)?.number(), value))
}

/// Judges the bars of what was run, see [`judge::bars`].
pub fn bars(plan: &Plan, cases: &[CaseResult]) -> Result<Vec<BarResult>> {
    judge::bars(&plan.experiment, cases, plan.only.is_all())
}

/// Cases whose figures are not complete: `case: why`.
pub fn problems(cases: &[CaseResult]) -> Vec<String> {
    cases.iter().flat_map(|case| case.problems.iter().cloned()).collect()
}

#[cfg(test)]
mod tests;
