//! Finds one lock-holder preemption in a trace of `systems/lhp-spumone.toml`, and the same period of FreeRTOS in one of
//! `systems/lhp-ainori.toml`; prints what happened there, and draws it. The story is told in docs/lhp-event.md.
//!
//! ```text
//! cargo run --release --package ainori --example lhp-event -- SPUMONE AINORI [--svg FILE]
//! ```
//!
//! Of all periods it takes the one in which, under `spumone`, all of Linux's other vCPUs spin longest, if in the same
//! period under `ainori` a spinning vCPU has the preempted one fetched.
mod event;
mod picture;
mod timeline;

use clap::Parser;
use event::Event;
use miette::{IntoDiagnostic, Result, miette};
use std::path::PathBuf;
use timeline::Timeline;

/// Most nanoseconds by which the two runs may differ in when FreeRTOS takes its hart for the same period.
const SAME: u64 = 100_000;
/// Time that a window shows on either side of the event, in nanoseconds.
const MARGIN: u64 = 500_000;

#[derive(Parser)]
struct Arguments {
    /// A trace of systems/lhp-spumone.toml
    spumone: PathBuf,
    /// A trace of systems/lhp-ainori.toml
    ainori: PathBuf,
    /// Draw both to FILE
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let spumone = Timeline::read(&arguments.spumone)?;
    let ainori = Timeline::read(&arguments.ainori)?;
    let (before, after) = (event::all(&spumone), event::all(&ainori));
    let same = |one: &Event| after.iter().find(|other| one.begin.abs_diff(other.begin) < SAME);
    let pairs = before.iter().filter_map(|one| Some((one, same(one)?)));
    let told = pairs.clone().filter(|(one, other)| one.in_kernel() && other.is_cured());
    let (one, other) = told.clone().max_by_key(|(one, _)| one.all_spin()).ok_or_else(|| {
        miette!(
            "in none of the {} periods that both traces show does a vCPU in its kernel lose its hart, and is fetched under \
             ainori",
            pairs.count()
        )
    })?;
    println!(
        "FreeRTOS takes its hart {} times under spumone, {} times under ainori; {} periods would do",
        before.len(),
        after.len(),
        told.count()
    );
    for (name, event) in [("spumone", one), ("ainori", other)] {
        println!("\n{name}\n{event}");
    }
    let [from, to] = [one.begin.min(other.begin) - MARGIN, one.end.max(other.end) + MARGIN];
    println!("\nwindow: --from {}us --to {}us", from / 1000, to.div_ceil(1000));
    if let Some(file) = arguments.svg {
        let panels = [("spumone", &spumone, one), ("ainori", &ainori, other)];
        std::fs::write(file, picture::svg(&panels, MARGIN)?).into_diagnostic()?;
    }
    Ok(())
}
