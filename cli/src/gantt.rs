//! A picture of a start at which on each hart all tasks arrive at once, and each job takes all that it may.
use crate::deadlines::{Deadlines, HartReport, TaskReport, VerdictKind};
use ainori_deadlines::schedule::synchronous;
use miette::{Result, miette};
use plotters::prelude::*;
use std::fmt::Display;

/// Width in pixels.
const WIDTH: u32 = 920;
/// Height of a hart's panel without its tasks.
const PANEL_HEIGHT: u32 = 96;
/// Height of a task.
const ROW_HEIGHT: u32 = 26;
/// Least width of the names at the left.
const NAMES_WIDTH: u32 = 190;
const FONT: &str = "sans-serif";
const LABELS: f64 = 12.0;
/// Pixels of the shortest stretch in which a task runs: a shorter one is drawn so, as it couldn't be seen.
const SHORTEST: u64 = 2;
/// What of the time is shown: so many of the longest period or response, whichever is longer.
const PERIODS: u64 = 2;
/// Most jobs of a task, and most frames of windows, that are shown: more can't be told apart in [`WIDTH`].
const MOST_JOBS: u64 = 100;
const MET: RGBColor = RGBColor(0, 114, 178);
const MISSED: RGBColor = RGBColor(200, 0, 0);
const UNSAID: RGBColor = RGBColor(130, 130, 130);
/// Behind the row of a task whose guest has a window there.
const WINDOW: RGBColor = RGBColor(225, 225, 225);

fn failed(error: impl Display) -> miette::Report {
    miette!("the picture can't be drawn: {error}")
}

/// One panel for each hart that has tasks, one row for each task. The same bytes for the same answers.
///
/// # Errors
/// If there is no task.
pub fn svg(deadlines: &Deadlines) -> Result<String> {
    let harts = &deadlines.harts;
    if harts.is_empty() {
        return Err(miette!(
            help = "add [[guest.task]] to a guest, docs/manifest.md says how",
            "the manifest has no task to draw"
        ));
    }
    let height = |hart: &HartReport| PANEL_HEIGHT + ROW_HEIGHT * hart.tasks.len() as u32;
    let mut svg = String::new();
    {
        let size = (WIDTH, harts.iter().map(height).sum());
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        root.fill(&WHITE).map_err(failed)?;
        let mut rest = root.clone();
        for hart in harts {
            let (area, below) = rest.split_vertically(height(hart));
            draw(&area, hart)?;
            rest = below;
        }
        root.present().map_err(failed)?;
    }
    Ok(svg)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// Until when a hart is shown.
fn end(hart: &HartReport) -> u64 {
    let longest = hart.tasks.iter().map(|task| task.period_ns.max(task.response_ns.unwrap_or(0))).max();
    let shortest = hart.tasks.iter().map(|task| task.period_ns).min();
    let all = longest.unwrap_or(0).saturating_mul(PERIODS);
    all.min(shortest.unwrap_or(0).saturating_mul(MOST_JOBS)).max(1)
}

/// The unit of the time's axis, in which no number is long, and its nanoseconds.
fn unit(end: u64) -> (&'static str, f64) {
    match end {
        0..1_000_000 => ("us", 1e3),
        1_000_000..10_000_000_000 => ("ms", 1e6),
        _ => ("s", 1e9),
    }
}

fn name(task: &TaskReport) -> String {
    format!("{}/{}", task.guest, task.task)
}

/// Pixels that a name takes at most in usual fonts: nobody here has their metrics.
fn width(name: &str) -> u32 {
    let of = |letter: char| match letter {
        'm' | 'w' => 0.9,
        'f' | 'i' | 'j' | 'l' | 'r' | 't' | '-' | '/' => 0.5,
        _ => 0.7,
    };
    // plotters takes sizes as a font's height, of which letters are less (see `font-size` in what it writes).
    (name.chars().map(of).sum::<f64>() * LABELS / 1.24).ceil() as u32
}

fn draw(area: &Area<'_>, hart: &HartReport) -> Result<()> {
    let end = end(hart);
    let (unit, ns_of_unit) = unit(end);
    let time = |ns: u64| ns as f64 / ns_of_unit;
    let rows = hart.tasks.len();
    // The most urgent at the top.
    let middle = |task: usize| (rows - 1 - task) as f64;
    let names_width = hart.tasks.iter().map(|task| width(&name(task)) + 12).max().unwrap_or_default();
    let mut chart = ChartBuilder::on(area)
        .caption(
            format!(
                "hart {}: all tasks arrive at once, without jitter and blocking; {:.1} % is left for others",
                hart.hart, hart.left_percent
            ),
            (FONT, 15),
        )
        .margin(8)
        .margin_right(20)
        .x_label_area_size(38)
        .y_label_area_size(names_width.max(NAMES_WIDTH))
        .build_cartesian_2d(0.0..time(end), -0.5..rows as f64 - 0.5)
        .map_err(failed)?;
    let name = |y: &f64| {
        let row = hart.tasks.iter().enumerate().find(|(task, _)| (middle(*task) - y).abs() < 0.1);
        row.map_or(String::new(), |(_, task)| name(task))
    };
    // More frames couldn't be told apart.
    let shows_windows = end.checked_div(hart.windows.frame).is_some_and(|frames| frames <= MOST_JOBS);
    let windows = if shows_windows { "; pale: windows of its guest" } else { "" };
    chart
        .configure_mesh()
        .disable_mesh()
        .y_labels(rows)
        .y_label_formatter(&name)
        .x_desc(format!(
            "{unit}; below a row arrivals, above it deadlines in red; a task is red if it may miss one, grey if nothing can be said{windows}"
        ))
        .label_style((FONT, LABELS))
        .draw()
        .map_err(failed)?;
    let bar = |from: u64, to: u64, task: usize, colour: RGBColor| {
        let y = middle(task);
        Rectangle::new([(time(from), y - 0.3), (time(to), y + 0.3)], colour.filled())
    };
    if shows_windows {
        let windows = hart.streams.iter().enumerate().flat_map(|(task, stream)| {
            hart.windows.of(stream.guest, end).map(move |(from, to)| bar(from, to, task, WINDOW))
        });
        chart.draw_series(windows).map_err(failed)?;
    }
    let pixels = u64::from(chart.plotting_area().dim_in_pixel().0).max(1);
    let shortest = (end * SHORTEST).div_ceil(pixels);
    let slices = synchronous(&hart.streams, &hart.windows, end).slices;
    let bars = slices.iter().map(|slice| {
        let colour = match hart.tasks[slice.task].verdict {
            VerdictKind::Met => MET,
            VerdictKind::Unsaid => UNSAID,
            VerdictKind::Missed | VerdictKind::Unbounded => MISSED,
        };
        bar(slice.from, slice.to.max(slice.from + shortest), slice.task, colour)
    });
    chart.draw_series(bars).map_err(failed)?;
    // Arrivals below each row, deadlines above.
    for (task, report) in hart.tasks.iter().enumerate() {
        let y = middle(task);
        let arrivals = || (0..end).step_by(usize::try_from(report.period_ns.max(1)).unwrap_or(usize::MAX));
        let mark = |at: u64, from: f64, to: f64, colour: RGBColor| {
            PathElement::new(vec![(time(at), from), (time(at), to)], colour.stroke_width(1))
        };
        chart.draw_series(arrivals().map(|at| mark(at, y - 0.48, y - 0.3, BLACK))).map_err(failed)?;
        let deadlines = arrivals().map(|at| at.saturating_add(report.deadline_ns)).filter(|at| *at <= end);
        chart.draw_series(deadlines.map(|at| mark(at, y + 0.3, y + 0.48, MISSED))).map_err(failed)?;
    }
    Ok(())
}
