//! Charts as SVG: no fonts, scripts or other resources from outside, and the same bytes for the same figures.
use super::{
    charts::{ChartResult, LineResult},
    experiment::{Chart, Scalar},
    results::{CaseResult, HistogramResult},
};
use miette::{Result, miette};
use plotters::prelude::*;
use std::{fmt::Display, ops::Range};

/// Width of a chart in pixels.
const WIDTH: u32 = 920;
/// Height of a chart of lines, without its title.
const LINES_HEIGHT: u32 = 440;
/// Width of what names the lines, beside them.
const LEGEND_WIDTH: u32 = 270;
/// Height of one histogram among several.
const PANEL_HEIGHT: u32 = 190;
/// Height of the title.
const TITLE_HEIGHT: u32 = 36;
const FONT: &str = "sans-serif";
/// Colours that can be told apart with any kind of sight (Okabe and Ito).
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(0, 0, 0),
    RGBColor(150, 140, 30),
];

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// Draws a chart. `None` if none of its cases has figures.
pub fn svg(
    ChartResult { chart, computed: ideals }: &ChartResult,
    cases: &[CaseResult],
) -> Result<Option<String>> {
    let shown: Vec<&CaseResult> = cases
        .iter()
        .filter(|case| chart.cases.contains(&case.name))
        .filter(|case| {
            chart.only.iter().all(|(name, value)| case.params.get(name).is_none_or(|own| own == value))
        })
        .collect();
    match (&chart.histogram, &chart.x, &chart.y) {
        (Some(name), ..) => {
            let panels: Vec<(String, &HistogramResult)> = shown
                .iter()
                .filter_map(|case| Some((case.shown(cases), case.histograms.get(name)?)))
                .filter(|(_, histogram)| !histogram.buckets.is_empty())
                .collect();
            (!panels.is_empty()).then(|| histograms(chart, &panels)).transpose()
        }
        (None, Some(x), Some(y)) => {
            let mut lines = measured(&shown, cases, x, y);
            if lines.is_empty() {
                return Ok(None);
            }
            lines.extend(computed(ideals));
            line_chart(chart, &lines).map(Some)
        }
        _ => Ok(None), // the plan has refused it
    }
}

/// An axis whose values may be shown by their logarithm.
#[derive(Clone, Copy)]
struct Scale {
    log: bool,
}

impl Scale {
    fn place(self, value: f64) -> f64 {
        if self.log { value.max(f64::MIN_POSITIVE).log10() } else { value }
    }

    /// Text of a tick. A logarithmic axis names only whole powers of ten.
    fn label(self, place: f64) -> String {
        match self.log {
            true if (place - place.round()).abs() > 1e-6 => String::new(),
            true => number(10f64.powf(place.round())),
            false => number(place),
        }
    }

    /// The axis around values: to whole powers of ten, or with a little room.
    fn around(self, values: impl Iterator<Item = f64>, from_zero: bool) -> Range<f64> {
        let places = values.map(|value| self.place(value));
        let (low, high) = places.fold((f64::MAX, f64::MIN), |(low, high), at| (low.min(at), high.max(at)));
        if self.log {
            return low.floor()..(low.floor() + 1.0).max(high.ceil());
        }
        let room = if high > low { (high - low) * 0.05 } else { high.abs().max(1.0) * 0.05 };
        let low = if from_zero { low.min(0.0) } else { low - room };
        low..high + room
    }
}

/// A number without needless digits.
fn number(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 100.0 || size == 0.0 => 0,
        size if size >= 1.0 => 2,
        size => (2.0 - size.log10()).ceil() as usize,
    };
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

fn failed(error: impl Display) -> miette::Report {
    miette!("the chart can't be drawn: {error}")
}

/// One panel for each case, with the same axes. Shares are logarithmic: what is rare is what matters here.
fn histograms(chart: &Chart, panels: &[(String, &HistogramResult)]) -> Result<String> {
    let mut svg = String::new();
    {
        let height = TITLE_HEIGHT + PANEL_HEIGHT * panels.len() as u32;
        let root = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        root.fill(&WHITE).map_err(failed)?;
        let body = root.titled(&chart.title, (FONT, 20)).map_err(failed)?;
        let scale = Scale { log: chart.x_log };
        let bounds =
            panels.iter().flat_map(|(_, histogram)| histogram.buckets.iter().map(|(bound, _)| *bound));
        let x = scale.around(bounds, false);
        let shares: Vec<Vec<(f64, f64)>> = panels.iter().map(|(_, histogram)| shares(histogram)).collect();
        let y = Scale { log: true }
            .around(shares.iter().flatten().map(|(_, share)| *share).chain([100.0]), false);
        for (index, area) in body.split_evenly((panels.len(), 1)).iter().enumerate() {
            let stems = shares[index].iter().map(|(bound, share)| (scale.place(*bound), share.log10()));
            panel(chart, area, &panels[index].0, scale, (x.clone(), y.clone()), stems)?;
        }
        root.present().map_err(failed)?;
    }
    Ok(svg)
}

/// Each bucket's share in percent.
fn shares(histogram: &HistogramResult) -> Vec<(f64, f64)> {
    let all: u64 = histogram.buckets.iter().map(|(_, count)| count).sum();
    histogram.buckets.iter().map(|(bound, count)| (*bound, *count as f64 * 100.0 / all as f64)).collect()
}

fn panel(
    chart: &Chart,
    area: &Area<'_>,
    title: &str,
    scale: Scale,
    (x, y): (Range<f64>, Range<f64>),
    stems: impl Iterator<Item = (f64, f64)>,
) -> Result<()> {
    let floor = y.start;
    let mut context = ChartBuilder::on(area)
        .caption(title, (FONT, 14))
        .margin_right(20)
        .x_label_area_size(38)
        .y_label_area_size(70)
        .build_cartesian_2d(x, y)
        .map_err(failed)?;
    context
        .configure_mesh()
        .x_desc(&chart.x_label)
        .y_desc(&chart.y_label)
        .x_label_formatter(&|place| scale.label(*place))
        .y_label_formatter(&|place| Scale { log: true }.label(*place))
        .y_labels(5)
        .light_line_style(WHITE)
        .draw()
        .map_err(failed)?;
    let style = COLOURS[0].stroke_width(3);
    context
        .draw_series(stems.map(|(x, y)| PathElement::new(vec![(x, floor), (x, y)], style)))
        .map_err(failed)?;
    Ok(())
}

/// A line of a chart.
struct LineData {
    title: String,
    /// x, then y as least, median and greatest.
    points: Vec<(f64, [f64; 3])>,
    computed: bool,
}

/// A line for each case and combination of the parameters other than `x`.
fn measured(shown: &[&CaseResult], cases: &[CaseResult], x: &str, y: &str) -> Vec<LineData> {
    let mut lines: Vec<LineData> = Vec::new();
    for case in shown {
        let at = case.params.get(x).and_then(Scalar::number);
        let (Some(at), Some(metric)) = (at, case.metrics.get(y)) else { continue };
        let others = case.varied(cases).filter(|(name, _)| *name != x);
        let others: String = others.map(|(_, value)| format!(", {value}")).collect();
        let title = format!("{}{others}", case.title);
        let point = (at, [metric.min, metric.median, metric.max]);
        match lines.iter_mut().find(|line| line.title == title) {
            Some(line) => line.points.push(point),
            None => lines.push(LineData { title, points: vec![point], computed: false }),
        }
    }
    for line in &mut lines {
        line.points.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    }
    lines
}

/// The lines that were computed from expressions.
fn computed(lines: &[LineResult]) -> impl Iterator<Item = LineData> {
    lines.iter().map(|line| LineData {
        title: line.title.clone(),
        points: line.points.iter().map(|(x, y)| (*x, [*y; 3])).collect(),
        computed: true,
    })
}

fn line_chart(chart: &Chart, lines: &[LineData]) -> Result<String> {
    let mut svg = String::new();
    {
        let size = (WIDTH, TITLE_HEIGHT + LINES_HEIGHT);
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        root.fill(&WHITE).map_err(failed)?;
        let body = root.titled(&chart.title, (FONT, 20)).map_err(failed)?;
        let (body, legend) = body.split_horizontally(WIDTH - LEGEND_WIDTH);
        let scale = Scale { log: chart.x_log };
        let points = || lines.iter().flat_map(|line| &line.points);
        let x = scale.around(points().map(|(x, _)| *x), false);
        let y = Scale { log: false }.around(points().flat_map(|(_, y)| *y), true);
        let mut context = ChartBuilder::on(&body)
            .margin(10)
            .x_label_area_size(42)
            .y_label_area_size(74)
            .build_cartesian_2d(x, y)
            .map_err(failed)?;
        context
            .configure_mesh()
            .x_desc(&chart.x_label)
            .y_desc(&chart.y_label)
            .x_label_formatter(&|place| scale.label(*place))
            .y_label_formatter(&|value| number(*value))
            .light_line_style(WHITE)
            .draw()
            .map_err(failed)?;
        for (index, line) in lines.iter().enumerate() {
            let colour = COLOURS[index % COLOURS.len()];
            let style = colour.stroke_width(2);
            let places = line.points.iter().map(|(x, [_, y, _])| (scale.place(*x), *y));
            name(&legend, index, line, style)?;
            // What is computed is dashed. A single point would be no line.
            if line.computed && line.points.len() > 1 {
                context.draw_series(DashedLineSeries::new(places, 6, 4, style)).map_err(failed)?;
                continue;
            }
            context.draw_series(LineSeries::new(places.clone(), style)).map_err(failed)?;
            context
                .draw_series(places.map(|place| Circle::new(place, 3, colour.filled())))
                .map_err(failed)?;
            let range = |(x, [low, _, high]): &(f64, [f64; 3])| {
                PathElement::new(vec![(scale.place(*x), *low), (scale.place(*x), *high)], style)
            };
            context.draw_series(line.points.iter().map(range)).map_err(failed)?;
        }
        root.present().map_err(failed)?;
    }
    Ok(svg)
}

/// Writes the name of the line number `index` into the legend, behind a piece of the line.
fn name(legend: &Area<'_>, index: usize, line: &LineData, style: ShapeStyle) -> Result<()> {
    let y = 24 + 20 * index as i32;
    let stretches: &[(i32, i32)] = if line.computed { &[(0, 6), (10, 16)] } else { &[(0, 16)] };
    for (from, to) in stretches {
        legend.draw(&PathElement::new(vec![(*from, y), (*to, y)], style)).map_err(failed)?;
    }
    legend.draw(&Text::new(line.title.clone(), (24, y - 7), (FONT, 13))).map_err(failed)
}

#[cfg(test)]
mod tests;
