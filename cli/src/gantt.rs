//! A picture of a start at which on each hart all tasks arrive at once, and each job takes all that it may.
use crate::deadlines::{Deadlines, HartReport, VerdictKind};
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
const FONT: &str = "sans-serif";
/// What of the time is shown: so many of the longest period or response, whichever is longer.
const PERIODS: u64 = 2;
/// Most jobs of a task that are shown: more can't be told apart in [`WIDTH`].
const MOST_JOBS: u64 = 100;
const MET: RGBColor = RGBColor(0, 114, 178);
const MISSED: RGBColor = RGBColor(200, 0, 0);
const UNSAID: RGBColor = RGBColor(130, 130, 130);

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

fn draw(area: &Area<'_>, hart: &HartReport) -> Result<()> {
    let end = end(hart);
    let ms = |ns: u64| ns as f64 / 1e6;
    let rows = hart.tasks.len();
    // The most urgent at the top.
    let middle = |task: usize| (rows - 1 - task) as f64;
    let mut chart = ChartBuilder::on(area)
        .caption(
            format!(
                "hart {}: all tasks arrive at once, without jitter and blocking; {:.1} % is left",
                hart.hart, hart.left_percent
            ),
            (FONT, 15),
        )
        .margin(8)
        .margin_right(20)
        .x_label_area_size(38)
        .y_label_area_size(190)
        .build_cartesian_2d(0.0..ms(end), -0.5..rows as f64 - 0.5)
        .map_err(failed)?;
    let name = |y: &f64| {
        let row = hart.tasks.iter().enumerate().find(|(task, _)| (middle(*task) - y).abs() < 0.1);
        row.map_or(String::new(), |(_, task)| format!("{}/{}", task.guest, task.task))
    };
    chart
        .configure_mesh()
        .disable_mesh()
        .y_labels(rows)
        .y_label_formatter(&name)
        .x_desc("ms; below a row arrivals, above it deadlines in red; a task is red if it may miss one, grey if nothing can be said")
        .label_style((FONT, 12))
        .draw()
        .map_err(failed)?;
    let slices = synchronous(&hart.streams, &hart.windows, end).slices;
    let bars = slices.iter().map(|slice| {
        let colour = match hart.tasks[slice.task].verdict {
            VerdictKind::Met => MET,
            VerdictKind::Unsaid => UNSAID,
            VerdictKind::Missed | VerdictKind::Unbounded => MISSED,
        };
        let y = middle(slice.task);
        let to = slice.to.max(slice.from + end / u64::from(WIDTH)); // short ones would be left out
        Rectangle::new([(ms(slice.from), y - 0.3), (ms(to), y + 0.3)], colour.filled())
    });
    chart.draw_series(bars).map_err(failed)?;
    // Arrivals below each row, deadlines above.
    for (task, report) in hart.tasks.iter().enumerate() {
        let y = middle(task);
        let arrivals = || (0..end).step_by(usize::try_from(report.period_ns.max(1)).unwrap_or(usize::MAX));
        let mark = |at: u64, from: f64, to: f64, colour: RGBColor| {
            PathElement::new(vec![(ms(at), from), (ms(at), to)], colour.stroke_width(1))
        };
        chart.draw_series(arrivals().map(|at| mark(at, y - 0.48, y - 0.3, BLACK))).map_err(failed)?;
        let deadlines = arrivals().map(|at| at.saturating_add(report.deadline_ns)).filter(|at| *at <= end);
        chart.draw_series(deadlines.map(|at| mark(at, y + 0.3, y + 0.48, MISSED))).map_err(failed)?;
    }
    Ok(())
}
