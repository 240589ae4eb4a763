//! Runs hostile guests beside an RTOS and a guest that looks at its registers, under every preset; tells what didn't hold.
//! See guests/fuzz/README.md.
use ainori_tests::{
    fuzz::{
        Trial, attacks,
        campaign::{self, Store},
        case::Range,
        outcome::Outcome,
        summary::Summary,
    },
    harts::usual_hypervisor,
    mode::{MODES, Mode},
};
use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use std::{
    path::PathBuf,
    process::ExitCode,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::{Duration, Instant},
};

/// Hostile guests on the hypervisor, in lockstep virtual time.
#[derive(Debug, Parser)]
struct Args {
    /// Seed of the campaign.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Inputs to try, over all runs.
    #[arg(long, default_value_t = 100_000)]
    count: u64,
    /// Presets, by turns; all if none is given.
    #[arg(long, value_delimiter = ',')]
    preset: Vec<String>,
    /// vCPUs of the fuzzing guest: a number or a range; without it, any number that a guest can have.
    #[arg(long, value_parser = range)]
    vcpus: Option<(u32, u32)>,
    /// Kinds of inputs (guests/fuzz/README.md), as a mask (decimal); all of them if it isn't given.
    #[arg(long)]
    kinds: Option<u32>,
    /// How the fuzzing guests' addresses are translated, and on which harts: two-stage, shadow-single, shadow-multi; with `-no-h` behind the last two on harts without H. Without it as tests are run
    #[arg(long, value_parser = mode)]
    mode: Option<Mode>,
    /// Virtual milliseconds of each run.
    #[arg(long, default_value_t = 200)]
    ms: u64,
    /// Runs beside each other.
    #[arg(long, default_value_t = 1)]
    jobs: usize,
    /// Seconds of the host after which no further run is begun.
    #[arg(long)]
    time: Option<u64>,
    /// The attacks whose names contain this (`-`: all of them) instead of random inputs.
    #[arg(long)]
    attack: Option<String>,
    /// Instructions of a slice in lockstep, for attacks: each runs with each of these, as another slice is another order of events.
    #[arg(long, value_delimiter = ',', default_value = "250")]
    q: Vec<u32>,
    /// Folder for the outcomes; the same call with the same folder goes on there: what ran on the same hypervisor, guests, plugins and tool isn't run again. Failed manifests and consoles go into `failed/`.
    #[arg(long, default_value = ".cache/fuzz")]
    out: PathBuf,
}

/// "4" or "1-16".
fn range(text: &str) -> Result<(u32, u32), String> {
    let (least, most) = text.split_once('-').unwrap_or((text, text));
    let number = |text: &str| text.parse::<u32>().map_err(|error| format!("{text:?}: {error}"));
    match (number(least)?, number(most)?) {
        (least, most) if (1..=most).contains(&least) && most <= Range::ALL_VCPUS.1 => Ok((least, most)),
        _ => Err(format!("from 1 to {}, the smaller one first", Range::ALL_VCPUS.1)),
    }
}

fn mode(text: &str) -> Result<Mode, String> {
    let names = || MODES.map(|mode| mode.to_string()).join(", ");
    MODES.into_iter().find(|mode| mode.to_string() == text).ok_or_else(|| format!("one of {}", names()))
}

fn presets(wanted: &[String]) -> Result<Vec<&'static str>, String> {
    let all: Vec<&'static str> = ainori_sched::presets().iter().map(|preset| preset.name).collect();
    if wanted.is_empty() {
        return Ok(all);
    }
    let find = |name: &String| all.iter().copied().find(|known| known == name);
    wanted
        .iter()
        .map(|name| {
            find(name).ok_or_else(|| format!("there is no preset {name}; there are {}", all.join(", ")))
        })
        .collect()
}

fn main() -> ExitCode {
    let args = Args::parse();
    match campaign(&args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("fuzz: {why}");
            ExitCode::from(2)
        }
    }
}

/// Returns whether all held.
fn campaign(args: &Args) -> Result<bool, String> {
    let presets = presets(&args.preset)?;
    let kernel = args.mode.map_or_else(usual_hypervisor, Mode::hypervisor);
    let store = Store::open(&args.out, &kernel).map_err(|error| error.to_string())?;
    let cases = Range {
        seed: args.seed,
        presets: presets.clone(),
        vcpus: args.vcpus.unwrap_or(Range::ALL_VCPUS),
        ms: args.ms,
        kinds: args.kinds,
        mode: args.mode,
    };
    let mut list = args.attack.as_ref().map(|part| {
        let wanted =
            |name: &str, preset| (part == "-" || name.contains(part.as_str())) && presets.contains(&preset);
        let all = args.mode.map_or_else(attacks::all, attacks::in_mode);
        let trials = all.into_iter().filter(|trial| wanted(&trial.name, trial.preset));
        let with = |trial: &Trial, q| {
            let name = if args.q.len() == 1 { trial.name.clone() } else { format!("{}-q{q}", trial.name) };
            (Trial { name, ..trial.clone() }, q)
        };
        trials.flat_map(|trial| args.q.iter().map(move |q| with(&trial, *q))).collect::<Vec<_>>().into_iter()
    });
    let steps = list.as_ref().map_or(args.count, |list| list.len() as u64);
    if steps == 0 {
        return Err("no attack has such a name; see tests/src/fuzz/attacks.rs".into());
    }
    let bar = ProgressBar::new(steps).with_style(
        ProgressStyle::with_template("{bar:30} {human_pos}/{human_len} {elapsed} {eta} left {msg}")
            .expect("a valid template"),
    );
    let end = args.time.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let (stop, inputs) = (AtomicBool::new(false), AtomicU64::new(0));
    let is_over =
        || end.is_some_and(|end| Instant::now() >= end) || inputs.load(Ordering::Relaxed) >= args.count;
    let mut index = 0;
    let mut summary = Summary::new(list.is_none().then_some(cases.pairs()));
    let next = || match &mut list {
        Some(list) => list.next().filter(|_| end.is_none_or(|end| Instant::now() < end)),
        None if is_over() => None,
        None => {
            let case = cases.case(index);
            index += 1;
            Some((case.trial(), case.q))
        }
    };
    let told = |outcome: Outcome, earlier: bool| {
        inputs.fetch_add(outcome.inputs, Ordering::Relaxed);
        bar.inc(if args.attack.is_some() { 1 } else { outcome.inputs });
        for finding in &outcome.findings {
            bar.suspend(|| println!("{}: {:?}: {}", outcome.trial, finding.kind, finding.text));
        }
        summary.add(&outcome, earlier);
    };
    let began = Instant::now();
    campaign::run(&store, args.jobs.max(1), &stop, next, told).map_err(|error| error.to_string())?;
    bar.finish_and_clear();
    println!("{summary}\n{:.0} s.", began.elapsed().as_secs_f64());
    let json = serde_json::to_vec_pretty(&summary).map_err(|error| error.to_string())?;
    let path = args.out.join("summary.json");
    std::fs::write(&path, json).map_err(|error| format!("{}: {error}", path.display()))?;
    let (failed, runs) = (summary.total.runs_failed, summary.total.runs);
    if failed > 0 {
        println!(
            "{failed} of {runs} runs failed; manifests and consoles are in {}",
            args.out.join("failed").display()
        );
    }
    Ok(failed == 0)
}
