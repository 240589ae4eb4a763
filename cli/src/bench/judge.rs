//! Bars and derived figures, from the samples of cases.
//!
//! A bar about the least or greatest of all runs (`.min`, `.max` in its expression) is decided by that. Any other is a comparison of
//! typical runs, and those differ by their schedules: it is decided by pairs. A pair is the expression's value with the samples of one q
//! (or repetition). It takes [`LEAST_PAIRS`] pairs, and the exact [test](sign_flip) with the signs of their distances to the limit,
//! one-sided. The bar *holds* if p is at most [`LEVEL`] that they lie inside of the limit by chance, it *fails* if
//! p is at most that for the outside, and else it is *undecided*. Three or four pairs can't reach this level: there all must lie on one
//! side (p = 1/8, 1/16). Samples of the same run are one: see [`SampleResult::is_same_run`].
mod sign_flip;

use super::{
    definitions,
    experiment::{Bar, ClockKind, Experiment},
    expression::{Expression, Figure, Reference},
    lookup::{self, Place},
    plan::Sample,
    results::{CaseResult, DerivedResult, MetricResult, SampleResult},
    template::Values,
    verdict::{BarResult, MustBe, Verdict},
};
use miette::Result;

/// Fewest pairs that decide a comparison.
pub const LEAST_PAIRS: usize = 3;
/// What p may be at most, one-sided.
pub const LEVEL: f64 = 0.05;

/// What is known of the cases of an experiment.
#[derive(Clone, Copy)]
struct Known<'a>(&'a [CaseResult]);

impl<'a> Known<'a> {
    fn places(self) -> impl Iterator<Item = Place<'a>> {
        self.0.iter().map(|case| Place { case: &case.name, values: &case.params })
    }

    fn find(self, reference: &Reference, bound: &Values) -> Option<&'a CaseResult> {
        Some(&self.0[lookup::find(self.places(), reference, bound).ok()?])
    }

    /// The cases that an expression needs; `None` if one isn't there.
    fn needed(self, expression: &Expression, bound: &Values) -> Option<Vec<&'a CaseResult>> {
        expression.references().iter().map(|reference| self.find(reference, bound)).collect()
    }

    /// The value over all runs.
    fn whole(self, expression: &Expression, bound: &Values) -> Option<f64> {
        let value = |reference: &Reference| {
            let metric = self.find(reference, bound)?.metrics.get(&reference.metric)?;
            Some(match reference.figure {
                Figure::Min => metric.min,
                Figure::Median => metric.median,
                Figure::Max => metric.max,
            })
        };
        expression.value(|name| bound.get(name)?.number(), value)
    }

    /// The pairs, one for each sample that all of the cases have, and whether each case has all of its samples there. A
    /// case on another clock has no such samples: its median stands in each pair.
    fn pairs(self, expression: &Expression, bound: &Values) -> (Vec<Pair>, bool) {
        let cases = self.needed(expression, bound).unwrap_or_default();
        let has_q = |case: &&CaseResult| case.clock == ClockKind::Lockstep;
        let Some(first) = cases.iter().find(|case| has_q(case)).or(cases.first()) else {
            return (Vec::new(), false);
        };
        let paired: Vec<_> = cases.iter().filter(|case| case.clock == first.clock).collect();
        let own = |case: &'a CaseResult, sample: Sample| case.samples.iter().find(|own| own.sample == sample);
        let of = |sample: Sample| {
            let value = |reference: &Reference| {
                let case = self.find(reference, bound)?;
                if case.clock != first.clock {
                    return Some(case.metrics.get(&reference.metric)?.median);
                }
                own(case, sample)?.metrics.get(&reference.metric).copied()
            };
            expression.value(|name| bound.get(name)?.number(), value)
        };
        let mut pairs = Vec::<Pair>::new();
        let mut known = Vec::<Vec<Option<&SampleResult>>>::new();
        for sample in first.samples.iter().map(|own| own.sample) {
            let Some(value) = of(sample) else { continue };
            let all: Vec<_> = paired.iter().map(|case| own(case, sample)).collect();
            let is_known = known.iter().any(|before| {
                before.iter().zip(&all).all(|pair| matches!(pair, (Some(a), Some(b)) if a.is_same_run(b)))
            });
            pairs.push(Pair { value, is_another: !is_known });
            known.push(all);
        }
        let is_complete =
            paired.iter().all(|case| case.problems.is_empty() && case.samples.len() == pairs.len());
        (pairs, is_complete)
    }
}

/// An expression's value with the samples of one q or repetition.
struct Pair {
    value: f64,
    /// Its samples aren't all the same runs as those of an earlier pair.
    is_another: bool,
}

/// The values of all pairs.
fn values(pairs: &[Pair]) -> Vec<f64> {
    pairs.iter().map(|pair| pair.value).collect()
}

/// Judges the bars. In a part of the experiment, those that need a case that isn't there are left out: `--only` has left it out. If all of it
/// was run (`is_all`), none is: a case isn't there if the experiment has got it since, and the bar has no data then; nor has one for
/// values that the form doesn't have.
pub fn bars(experiment: &Experiment, cases: &[CaseResult], is_all: bool) -> Result<Vec<BarResult>> {
    let known = Known(cases);
    let mut results = Vec::new();
    for bar in &experiment.bars {
        let expression = Expression::parse(&bar.value)?;
        let combinations = lookup::combinations(known.places(), &expression, &bar.each, &bar.only);
        if combinations.is_empty() && is_all {
            results.push(BarResult::new(bar, bar.name.clone(), Verdict::NotInForm));
        }
        for bound in &combinations {
            if known.needed(&expression, bound).is_some() {
                results.push(judged(bar, known, &expression, bound));
            } else if is_all {
                results.push(BarResult::new(bar, named(&bar.name, bound), Verdict::Missing));
            }
        }
    }
    Ok(results)
}

/// The figures that an experiment derives from its cases. Those that need a case that isn't there are left out.
pub fn derived(experiment: &Experiment, cases: &[CaseResult]) -> Result<Vec<DerivedResult>> {
    let known = Known(cases);
    let mut results = Vec::new();
    for derived in &experiment.derived {
        let expression = Expression::parse(&derived.value)?;
        for bound in lookup::combinations(known.places(), &expression, &derived.each, &derived.only) {
            let (pairs, _) = known.pairs(&expression, &bound);
            results.extend(MetricResult::of(&values(&pairs), &derived.unit).map(|value| DerivedResult {
                name: named(&derived.name, &bound),
                value,
                pairs: pairs.len(),
            }));
        }
    }
    Ok(results)
}

/// Median and range of an expression over the pairs of cases, or its value if it is about the least or greatest of all runs; `bound` are
/// the parameters that have a value there. `None` if a case or a figure isn't there.
pub fn figure(
    experiment: &Experiment,
    cases: &[CaseResult],
    value: &str,
    bound: &Values,
) -> Result<Option<MetricResult>> {
    let expression = Expression::parse(&definitions::put_in(value, experiment)?)?;
    let known = Known(cases);
    let values = match expression.references().iter().all(|reference| reference.figure == Figure::Median) {
        true => values(&known.pairs(&expression, bound).0),
        false => known.whole(&expression, bound).into_iter().collect(),
    };
    Ok(MetricResult::of(&values, ""))
}

/// The value of an expression over all runs of the cases. `None` if a case or a figure isn't there.
pub fn whole(cases: &[CaseResult], expression: &Expression, bound: &Values) -> Option<f64> {
    Known(cases).whole(expression, bound)
}

fn judged(bar: &Bar, known: Known<'_>, expression: &Expression, bound: &Values) -> BarResult {
    let mut result = BarResult::new(bar, named(&bar.name, bound), Verdict::Missing);
    if expression.references().iter().any(|reference| reference.figure != Figure::Median) {
        result.value = known.whole(expression, bound);
        if let Some(value) = result.value {
            let is_inside = result.must_be.room(value, result.limit) >= 0.0;
            result.verdict = if is_inside { Verdict::Holds } else { Verdict::Fails };
        }
        return result;
    }
    let (pairs, is_complete) = known.pairs(expression, bound);
    if let Some(metric) = MetricResult::of(&values(&pairs), &bar.unit) {
        result.value = Some(metric.median);
        result.range = Some([metric.min, metric.max]);
        let others: Vec<f64> = pairs.iter().filter(|pair| pair.is_another).map(|pair| pair.value).collect();
        result.pairs = others.len();
        (result.verdict, result.p) = decide(&others, result.must_be, result.limit);
    }
    // A run without a figure may be the one that would have spoken against it.
    if !is_complete && result.verdict == Verdict::Holds {
        (result.verdict, result.p) = (Verdict::Undecided, None);
    }
    result
}

/// Whether pairs lie inside of a limit, and the p of that.
fn decide(pairs: &[f64], must_be: MustBe, limit: f64) -> (Verdict, Option<f64>) {
    if pairs.len() < LEAST_PAIRS {
        return (Verdict::Undecided, None);
    }
    let inside: Vec<f64> = pairs.iter().map(|value| must_be.room(*value, limit)).collect();
    if inside.iter().all(|room| *room == 0.0) {
        return (Verdict::Holds, None); // at the limit to the digit, in each of them
    }
    let outside: Vec<f64> = inside.iter().map(|room| -room).collect();
    let level = LEVEL.max(2f64.powi(-(pairs.len() as i32)));
    let (holds, fails) = (sign_flip::p(&inside), sign_flip::p(&outside));
    match () {
        () if holds <= level => (Verdict::Holds, Some(holds)),
        () if fails <= level => (Verdict::Fails, Some(fails)),
        () => (Verdict::Undecided, Some(holds.min(fails))),
    }
}

/// `name (f = 50, policy = ainori)`
fn named(name: &str, bound: &Values) -> String {
    let values: Vec<_> = bound.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    if values.is_empty() { name.to_owned() } else { format!("{name} ({})", values.join(", ")) }
}

#[cfg(test)]
mod tests;
