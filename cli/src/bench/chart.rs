//! Charts as SVG: no fonts, scripts or other resources from outside, and the same bytes for the same figures.
use super::{
    charts::{ChartResult, LineResult},
    experiment::{Chart, Scalar},
    look::{Look, is_policy, look},
    results::{CaseResult, HistogramResult},
};
use miette::{Result, miette};
use plotters::{element::ComposedElement, prelude::*};
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
type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
/// A filled shape and its outline, in pixels around a place.
type MarkerElement<'a, C> = ComposedElement<C, SVGBackend<'a>, Polygon<(i32, i32)>, PathElement<(i32, i32)>>;

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
            let panels: Vec<Panel<'_>> = shown
                .iter()
                .filter_map(|case| {
                    Some(Panel {
                        title: case.shown(cases),
                        histogram: case.histograms.get(name)?,
                        look: look(policy(case), 0),
                    })
                })
                .filter(|panel| !panel.histogram.buckets.is_empty())
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

/// The policy of a case.
fn policy(case: &CaseResult) -> Option<&str> {
    match case.params.get("policy") {
        Some(Scalar::Text(name)) => Some(name),
        _ => None,
    }
}

/// A histogram of one case.
struct Panel<'a> {
    title: String,
    histogram: &'a HistogramResult,
    look: Look,
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
fn histograms(chart: &Chart, panels: &[Panel<'_>]) -> Result<String> {
    let mut svg = String::new();
    {
        let height = TITLE_HEIGHT + PANEL_HEIGHT * panels.len() as u32;
        let root = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        root.fill(&WHITE).map_err(failed)?;
        let body = root.titled(&chart.title, (FONT, 20)).map_err(failed)?;
        let scale = Scale { log: chart.x_log };
        let bounds = panels.iter().flat_map(|panel| panel.histogram.buckets.iter().map(|(bound, _)| *bound));
        let x = scale.around(bounds, false);
        let shares: Vec<Vec<(f64, f64)>> = panels.iter().map(|panel| shares(panel.histogram)).collect();
        let y = Scale { log: true }
            .around(shares.iter().flatten().map(|(_, share)| *share).chain([100.0]), false);
        for (index, area) in body.split_evenly((panels.len(), 1)).iter().enumerate() {
            let stems = shares[index].iter().map(|(bound, share)| (scale.place(*bound), share.log10()));
            panel(chart, area, &panels[index], scale, (x.clone(), y.clone()), stems)?;
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
    Panel { title, look, .. }: &Panel<'_>,
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
    let style = look.colour.stroke_width(3);
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
    /// The policy that it is of, if it is of one.
    policy: Option<String>,
    computed: bool,
}

/// How lines look: each policy as in every other chart.
fn looks(lines: &[LineData]) -> Vec<Look> {
    let before = |index: usize| {
        let same = |line: &&LineData| line.policy == lines[index].policy;
        lines[..index].iter().filter(same).count()
    };
    lines.iter().enumerate().map(|(index, line)| look(line.policy.as_deref(), before(index))).collect()
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
            None => {
                let policy = policy(case).map(str::to_owned);
                lines.push(LineData { title, points: vec![point], policy, computed: false });
            }
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
        // A line may be called as the policy that it is of: `spumone`; it is no other line then.
        policy: is_policy(&line.title).then(|| line.title.clone()),
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
        for (index, (line, look)) in lines.iter().zip(looks(lines)).enumerate() {
            let style = look.colour.stroke_width(2);
            let places = line.points.iter().map(|(x, [_, y, _])| (scale.place(*x), *y));
            name(&legend, index, line, look)?;
            // What is computed is dashed. A single point would be no line.
            if line.computed && line.points.len() > 1 {
                context.draw_series(DashedLineSeries::new(places, 6, 4, style)).map_err(failed)?;
                continue;
            }
            context.draw_series(LineSeries::new(places.clone(), style)).map_err(failed)?;
            let range = |(x, [low, _, high]): &(f64, [f64; 3])| {
                PathElement::new(vec![(scale.place(*x), *low), (scale.place(*x), *high)], style)
            };
            context.draw_series(line.points.iter().map(range)).map_err(failed)?;
            context.draw_series(places.map(|place| marker(place, look))).map_err(failed)?;
        }
        root.present().map_err(failed)?;
    }
    Ok(svg)
}

/// A line's marker at a place.
fn marker<'a, C>(place: C, Look { colour, marker }: Look) -> MarkerElement<'a, C> {
    let fill = if marker.is_filled { colour } else { WHITE };
    let outline = marker.corners.iter().chain(&marker.corners[..1]).copied().collect::<Vec<_>>();
    EmptyElement::at(place)
        + Polygon::new(marker.corners.to_vec(), fill.filled())
        + PathElement::new(outline, colour.stroke_width(1))
}

/// Writes the name of the line number `index` into the legend, behind a piece of the line.
fn name(legend: &Area<'_>, index: usize, line: &LineData, look: Look) -> Result<()> {
    let y = 24 + 20 * index as i32;
    let style = look.colour.stroke_width(2);
    let is_dashed = line.computed && line.points.len() > 1;
    let stretches: &[(i32, i32)] = if is_dashed { &[(0, 8), (12, 20)] } else { &[(0, 20)] };
    for (from, to) in stretches {
        legend.draw(&PathElement::new(vec![(*from, y), (*to, y)], style)).map_err(failed)?;
    }
    if !is_dashed {
        legend.draw(&marker((10, y), look)).map_err(failed)?;
    }
    legend.draw(&Text::new(line.title.clone(), (28, y - 7), (FONT, 13))).map_err(failed)
}

#[cfg(test)]
mod tests;
