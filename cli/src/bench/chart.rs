//! Charts as SVG: no fonts, scripts or other resources from outside, and the same bytes for the same figures.
mod letters;
pub(super) mod scale;

use super::{
    charts::{ChartResult, LineResult},
    experiment::{Chart, Scalar},
    look::{Look, is_policy, look},
    results::{CaseResult, HistogramResult},
};
use letters::{FONT, LINE, SIZE};
use miette::{Result, miette};
use plotters::{element::ComposedElement, prelude::*, style::text_anchor::HPos};
use scale::Scale;
use std::{fmt::Display, ops::Range};

/// Width of a chart in pixels.
const WIDTH: u32 = 640;
/// Height of what lines are drawn in, with its axes.
const LINES_HEIGHT: u32 = 400;
/// Height of one histogram among several, with its axes and without its title and what is on its x axis.
const PANEL_HEIGHT: u32 = 210;
/// Between parts of a chart, and at its edges.
const GAP: u32 = 10;
/// Width of what stands beside the y axis.
const Y_LABELS: u32 = 100;
/// Right of the axes: half of the last number below stands there.
const RIGHT: u32 = 45;
/// Height of the numbers below the x axis.
const X_LABELS: u32 = 32;
/// Where the names of lines begin, behind pieces of these.
const NAMES: u32 = Y_LABELS / 2 + 30;
/// The colour of lines that are drawn upright through histograms.
const UPRIGHT: RGBColor = RGBColor(190, 0, 0);
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
            (!panels.is_empty()).then(|| histograms(chart, &panels, ideals)).transpose()
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

fn failed(error: impl Display) -> miette::Report {
    miette!("the chart can't be drawn: {error}")
}

/// An image of a height with a title above: its own text, and what `draw` adds below that.
fn titled(title: &str, height: u32, draw: impl FnOnce(&Area<'_>) -> Result<()>) -> Result<String> {
    let title = letters::lines(title, WIDTH - 2 * GAP);
    let above = letters::height(&title) + GAP;
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (WIDTH, above + height)).into_drawing_area();
        root.fill(&WHITE).map_err(failed)?;
        letters::write(&root, &title, (WIDTH as i32 / 2, GAP as i32 / 2), HPos::Center)?;
        draw(&root.split_vertically(above).1)?;
        root.present().map_err(failed)?;
    }
    Ok(svg)
}

/// Writes what is on the x axis at the bottom of an area. What is left of it.
fn footed<'a>(area: &Area<'a>, chart: &Chart) -> Result<Area<'a>> {
    let label = letters::lines(&chart.x_label, WIDTH - Y_LABELS);
    let (rest, below) = area.split_vertically(area.dim_in_pixel().1 - letters::height(&label) - GAP);
    letters::write(&below, &label, ((WIDTH + Y_LABELS) as i32 / 2, 0), HPos::Center)?;
    Ok(rest)
}

/// Height of what [`footed`] writes.
fn foot(chart: &Chart) -> u32 {
    letters::height(&letters::lines(&chart.x_label, WIDTH - Y_LABELS)) + GAP
}

/// One panel for each case, with the same axes. Shares are logarithmic: what is rare is what matters here.
fn histograms(chart: &Chart, panels: &[Panel<'_>], lines: &[LineResult]) -> Result<String> {
    let scale = Scale { log: chart.x_log };
    let bounds = || panels.iter().flat_map(|panel| panel.histogram.buckets.iter().map(|(bound, _)| *bound));
    let uprights = || lines.iter().flat_map(|line| line.points.iter().map(|(x, _)| *x));
    scale.check("what was measured", bounds())?;
    for line in lines {
        scale.check(&format!("the line {:?}", line.title), line.points.iter().map(|(x, _)| *x))?;
    }
    let x = scale.around(bounds().chain(uprights()), false);
    let shares: Vec<Vec<(f64, f64)>> = panels.iter().map(|panel| shares(panel.histogram)).collect();
    let y =
        Scale { log: true }.around(shares.iter().flatten().map(|(_, share)| *share).chain([100.0]), false);
    let captions: Vec<_> = panels.iter().map(|panel| letters::lines(&panel.title, WIDTH - 2 * GAP)).collect();
    let height = |index: usize| letters::height(&captions[index]) + PANEL_HEIGHT + foot(chart);
    titled(&chart.title, (0..panels.len()).map(height).sum(), |body| {
        let mut rest = body.clone();
        for (index, caption) in captions.iter().enumerate() {
            let (area, below) = rest.split_vertically(height(index));
            rest = below;
            letters::write(&area, caption, (WIDTH as i32 / 2, 0), HPos::Center)?;
            let area = footed(&area.split_vertically(letters::height(caption)).1, chart)?;
            let stems = shares[index].iter().map(|(bound, share)| (scale.place(*bound), share.log10()));
            panel(chart, &area, panels[index].look, scale, (x.clone(), y.clone()), stems, lines)?;
        }
        Ok(())
    })
}

/// Each bucket's share in percent.
fn shares(histogram: &HistogramResult) -> Vec<(f64, f64)> {
    let all: u64 = histogram.buckets.iter().map(|(_, count)| count).sum();
    histogram.buckets.iter().map(|(bound, count)| (*bound, *count as f64 * 100.0 / all as f64)).collect()
}

fn panel(
    chart: &Chart,
    area: &Area<'_>,
    look: Look,
    scale: Scale,
    (x, y): (Range<f64>, Range<f64>),
    stems: impl Iterator<Item = (f64, f64)>,
    lines: &[LineResult],
) -> Result<()> {
    let (floor, top, middle) = (y.start, y.end, (x.start + x.end) / 2.0);
    let mut context = ChartBuilder::on(area)
        .margin_right(RIGHT)
        .margin_top(GAP)
        .x_label_area_size(X_LABELS)
        .y_label_area_size(Y_LABELS)
        .build_cartesian_2d(x, y)
        .map_err(failed)?;
    context
        .configure_mesh()
        .label_style((FONT, SIZE))
        .axis_desc_style((FONT, SIZE))
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
    for (line, value) in lines.iter().filter_map(|line| Some((line, line.points.first()?.0))) {
        let x = scale.place(value);
        let upright = DashedLineSeries::new([(x, floor), (x, top)], 6, 4, UPRIGHT.stroke_width(2));
        context.draw_series(upright).map_err(failed)?;
        // Beside it, where there is more room.
        let (anchor, aside) = if x > middle { (HPos::Right, -6) } else { (HPos::Left, 6) };
        let (at, from) = context.backend_coord(&(x, top));
        let (left, above) = area.get_base_pixel();
        letters::write(area, std::slice::from_ref(&line.title), (at - left + aside, from - above), anchor)?;
    }
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
    let scale = Scale { log: chart.x_log };
    for line in lines {
        scale.check(&format!("the line {:?}", line.title), line.points.iter().map(|(x, _)| *x))?;
    }
    let points = || lines.iter().flat_map(|line| &line.points);
    let x = scale.around(points().map(|(x, _)| *x), false);
    let y = Scale { log: false }.around(points().flat_map(|(_, y)| *y), true);
    let names: Vec<_> = lines.iter().map(|line| letters::lines(&line.title, WIDTH - NAMES - GAP)).collect();
    let above = LINES_HEIGHT + foot(chart);
    let height = above + names.iter().map(|name| letters::height(name)).sum::<u32>() + GAP;
    titled(&chart.title, height, |body| {
        let (plot, mut rest) = body.split_vertically(above);
        let mut context = ChartBuilder::on(&footed(&plot, chart)?)
            .margin_right(RIGHT)
            .margin_top(GAP)
            .x_label_area_size(X_LABELS)
            .y_label_area_size(Y_LABELS)
            .build_cartesian_2d(x, y)
            .map_err(failed)?;
        context
            .configure_mesh()
            .label_style((FONT, SIZE))
            .axis_desc_style((FONT, SIZE))
            .y_desc(&chart.y_label)
            .x_labels(6)
            .x_label_formatter(&|place| scale.label(*place))
            .y_label_formatter(&|value| scale::number(*value))
            .light_line_style(WHITE)
            .draw()
            .map_err(failed)?;
        for ((line, look), words) in lines.iter().zip(looks(lines)).zip(&names) {
            let style = look.colour.stroke_width(2);
            let places = line.points.iter().map(|(x, [_, y, _])| (scale.place(*x), *y));
            let (own, below) = rest.split_vertically(letters::height(words));
            rest = below;
            name(&own, words, line, look)?;
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
        Ok(())
    })
}

/// A line's marker at a place.
fn marker<'a, C>(place: C, Look { colour, marker }: Look) -> MarkerElement<'a, C> {
    let fill = if marker.is_filled { colour } else { WHITE };
    let outline = marker.corners.iter().chain(&marker.corners[..1]).copied().collect::<Vec<_>>();
    EmptyElement::at(place)
        + Polygon::new(marker.corners.to_vec(), fill.filled())
        + PathElement::new(outline, colour.stroke_width(1))
}

/// Writes the name of a line into its part of the legend, behind a piece of the line.
fn name(legend: &Area<'_>, words: &[String], line: &LineData, look: Look) -> Result<()> {
    let (x, y) = (Y_LABELS as i32 / 2, LINE as i32 / 2);
    let style = look.colour.stroke_width(2);
    let is_dashed = line.computed && line.points.len() > 1;
    let stretches: &[(i32, i32)] = if is_dashed { &[(0, 8), (12, 20)] } else { &[(0, 20)] };
    for (from, to) in stretches {
        legend.draw(&PathElement::new(vec![(x + from, y), (x + to, y)], style)).map_err(failed)?;
    }
    if !is_dashed {
        legend.draw(&marker((x + 10, y), look)).map_err(failed)?;
    }
    letters::write(legend, words, (NAMES as i32, 0), HPos::Left)
}

#[cfg(test)]
mod tests;
