//! Both events as one picture: who had which hart, and where a vCPU said that it spins.
use super::{
    event::{self, Event},
    timeline::Timeline,
};
use miette::{Result, miette};
use plotters::prelude::*;
use std::fmt::Display;

const WIDTH: u32 = 920;
const PANEL_HEIGHT: u32 = 260;
const FONT: &str = "sans-serif";
/// FreeRTOS, then Linux's vCPUs: colours that can be told apart with any kind of sight (Okabe and Ito), but for the red.
const COLOURS: [(&str, RGBColor); 5] = [
    ("freertos/0", RGBColor(70, 70, 70)),
    ("linux/0", RGBColor(86, 180, 233)),
    ("linux/1", RGBColor(230, 159, 0)),
    ("linux/2", RGBColor(0, 158, 115)),
    ("linux/3", RGBColor(204, 121, 167)),
];
const SPIN: RGBColor = RGBColor(200, 0, 0);

fn failed(error: impl Display) -> miette::Report {
    miette!("the picture can't be drawn: {error}")
}

/// One panel for each: its name, its trace and what happened there, with so many nanoseconds on either side.
pub fn svg(panels: &[(&str, &Timeline, &Event)], margin: u64) -> Result<String> {
    let mut svg = String::new();
    {
        let size = (WIDTH, PANEL_HEIGHT * panels.len() as u32);
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        root.fill(&WHITE).map_err(failed)?;
        for (area, panel) in root.split_evenly((panels.len(), 1)).iter().zip(panels) {
            draw(area, *panel, margin)?;
        }
        root.present().map_err(failed)?;
    }
    Ok(svg)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

fn draw(area: &Area<'_>, (policy, timeline, event): (&str, &Timeline, &Event), margin: u64) -> Result<()> {
    let ms = |time: u64| (time as f64 - event.begin as f64) / 1e6;
    let (first, last) = (event.begin - margin, event.end + margin);
    let harts: Vec<&String> = timeline
        .slices
        .keys()
        .filter(|track| track.strip_prefix("hart ").is_some_and(|id| id.parse::<u32>().is_ok()))
        .collect();
    // On the right there is room for the key.
    let height = |hart: usize| (harts.len() - 1 - hart) as f64;
    let mut chart = ChartBuilder::on(area)
        .caption(format!("{policy}: who runs where"), (FONT, 16))
        .margin(10)
        .x_label_area_size(40)
        .y_label_area_size(52)
        .build_cartesian_2d(ms(first)..ms(last + (last - first) / 6), -0.5..harts.len() as f64 - 0.5)
        .map_err(failed)?;
    let name = |y: &f64| {
        let hart = harts.iter().enumerate().find(|(hart, _)| (height(*hart) - y).abs() < 0.1);
        hart.map_or(String::new(), |(_, name)| (*name).clone())
    };
    chart
        .configure_mesh()
        .disable_mesh()
        .y_labels(harts.len())
        .y_label_formatter(&name)
        .x_desc("ms since FreeRTOS has taken hart 1")
        .label_style((FONT, 13))
        .draw()
        .map_err(failed)?;
    let bar = |from: u64, to: u64, y: f64, style: ShapeStyle| {
        Rectangle::new([(ms(from.max(first)), y - 0.35), (ms(to.min(last)), y + 0.35)], style)
    };
    for (vcpu, colour) in COLOURS {
        let bars = harts.iter().enumerate().flat_map(|(hart, track)| {
            let shown = timeline.slices(track).iter();
            let shown = shown.filter(|slice| slice.name == vcpu && slice.end > first && slice.begin < last);
            shown.map(move |slice| bar(slice.begin, slice.end, height(hart), colour.filled()))
        });
        let key = move |(x, y)| Rectangle::new([(x, y - 5), (x + 12, y + 5)], colour.filled());
        chart.draw_series(bars).map_err(failed)?.label(vcpu).legend(key);
    }
    let spins = COLOURS.iter().flat_map(|(vcpu, _)| {
        let spins = event::stretches(timeline, vcpu, first..=last).into_iter();
        spins.filter_map(|spin| {
            let mut states = timeline.slices(vcpu).iter();
            let state = states.find(|state| (state.begin..=state.end).contains(&spin.begin))?;
            let hart = harts.iter().position(|hart| state.name.ends_with(hart.as_str()))?;
            let (from, to, y) = (ms(spin.begin), ms(spin.end), height(hart));
            Some(Rectangle::new([(from, y), (to, y + 0.35)], SPIN.filled().stroke_width(1)))
        })
    });
    let key = |(x, y)| Rectangle::new([(x, y - 5), (x + 12, y + 5)], SPIN.filled());
    chart.draw_series(spins.collect::<Vec<_>>()).map_err(failed)?.label("spins").legend(key);
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE)
        .border_style(BLACK)
        .label_font((FONT, 12))
        .draw()
        .map_err(failed)?;
    Ok(())
}
