//! What an experiment's charts show, as results keep it: with it they are drawn again without the experiment's file and its runs.
use super::{evaluate, experiment::Chart, expression::Expression, plan::Plan, results::CaseResult};
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
    let result =
        |chart: &Chart| Ok(ChartResult { chart: chart.clone(), computed: computed(chart, plan, cases)? });
    plan.experiment.charts.iter().map(result).collect()
}

/// The lines that are given as expressions, at each value of the x axis.
fn computed(chart: &Chart, plan: &Plan, cases: &[CaseResult]) -> Result<Vec<LineResult>> {
    let Some(x) = &chart.x else { return Ok(Vec::new()) };
    let axis = plan.axis(chart, x)?;
    let mut lines = Vec::new();
    for line in &chart.lines {
        let expression = Expression::parse(&line.value)?;
        let mut points = Vec::new();
        for value in &axis {
            let mut bound = chart.only.clone();
            bound.insert(x.to_owned(), value.clone());
            if let Some(y) = evaluate::figure(plan, cases, &expression, &bound)? {
                points.push((value.number().unwrap_or_default(), y));
            }
        }
        if !points.is_empty() {
            lines.push(LineResult { title: line.title.clone(), points });
        }
    }
    Ok(lines)
}
