//! What an experiment's charts show, as results keep it: with it they are drawn again without the experiment's file and its runs.
use super::{
    evaluate,
    experiment::{Chart, Experiment, Scalar},
    expression::Expression,
    judge,
    plan::Plan,
    results::CaseResult,
    template::Values,
};
use miette::Result;
use serde::{Deserialize, Serialize};

/// A chart of an experiment, with what it doesn't find in the cases.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChartResult {
    /// As the experiment has it.
    pub chart: Chart,
    /// Its lines that are computed, as far as there are figures for them.
    pub computed: Vec<LineResult>,
}

/// A line that was computed: an ideal, say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LineResult {
    /// In the legend.
    pub title: String,
    /// x and y, by rising x.
    pub points: Vec<(f64, f64)>,
}

/// All charts of an experiment, in its order.
pub fn charts(plan: &Plan, cases: &[CaseResult]) -> Result<Vec<ChartResult>> {
    let figure = |expression: &Expression, bound: &Values| evaluate::figure(plan, cases, expression, bound);
    let result = |chart: &Chart| {
        let axis = chart.x.as_ref().map(|x| plan.axis(chart, x)).transpose()?.unwrap_or_default();
        Ok(ChartResult { chart: chart.clone(), computed: computed(chart, &axis, figure)? })
    };
    plan.experiment.charts.iter().map(result).collect()
}

/// The same from cases that were taken before, with the charts of the experiment as it is today. The x axis has the values of the cases.
pub fn again(experiment: &Experiment, cases: &[CaseResult]) -> Result<Vec<ChartResult>> {
    let figure = |expression: &Expression, bound: &Values| Ok(judge::whole(cases, expression, bound));
    let result = |chart: &Chart| {
        let mut axis: Vec<Scalar> = Vec::new();
        for case in cases.iter().filter(|case| chart.cases.contains(&case.name)) {
            let value =
                chart.x.as_ref().and_then(|x| case.params.get(x)).filter(|value| !axis.contains(value));
            axis.extend(value.cloned());
        }
        axis.sort_by(|a, b| a.number().unwrap_or(0.0).total_cmp(&b.number().unwrap_or(0.0)));
        Ok(ChartResult { chart: chart.clone(), computed: computed(chart, &axis, figure)? })
    };
    experiment.charts.iter().map(result).collect()
}

/// The lines that are given as expressions, at each value of the x axis; through histograms upright, from 0 to 100 %.
fn computed(
    chart: &Chart,
    axis: &[Scalar],
    figure: impl Fn(&Expression, &Values) -> Result<Option<f64>>,
) -> Result<Vec<LineResult>> {
    let mut lines = Vec::new();
    let Some(x) = &chart.x else {
        for line in &chart.lines {
            let value = figure(&Expression::parse(&line.value)?, &chart.only)?;
            lines.extend(
                value.map(|x| LineResult { title: line.title.clone(), points: vec![(x, 0.0), (x, 100.0)] }),
            );
        }
        return Ok(lines);
    };
    for line in &chart.lines {
        let expression = Expression::parse(&line.value)?;
        let mut points = Vec::new();
        for value in axis {
            let mut bound = chart.only.clone();
            bound.insert(x.to_owned(), value.clone());
            if let Some(y) = figure(&expression, &bound)? {
                points.push((value.number().unwrap_or_default(), y));
            }
        }
        if !points.is_empty() {
            lines.push(LineResult { title: line.title.clone(), points });
        }
    }
    Ok(lines)
}
