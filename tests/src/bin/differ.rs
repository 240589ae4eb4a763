//! Random programs on the bare hart and in guests, compared, until there were enough. See `guests/differ/README.md`.
use ainori_tests::differ::{Compared, MACHINES, Machine, Programs};
use clap::Parser;
use miette::{Result, miette};
use std::{process::ExitCode, time::Instant};

/// Runs programs that are made from seeds on the bare hart and in guests, and looks whether they see the same.
#[derive(Debug, Parser)]
#[command(name = "differ")]
struct Args {
    /// The first seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many seeds
    #[arg(long, default_value_t = 1)]
    count: u64,
    /// The first program of each seed
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// How many programs of each seed
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    programs: u64,
    /// Only on this machine; all by default
    #[arg(long, value_name = "NAME")]
    machine: Option<String>,
    /// After so many minutes no run is begun
    #[arg(long)]
    minutes: Option<u64>,
}

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    let machines: Vec<&Machine> = match &args.machine {
        None => MACHINES.iter().collect(),
        Some(name) => vec![Machine::named(name).ok_or_else(|| {
            let names: Vec<&str> = MACHINES.iter().map(|machine| machine.name).collect();
            miette!("there is no machine {name}: they are {}", names.join(", "))
        })?],
    };
    let begin = Instant::now();
    let is_over = || args.minutes.is_some_and(|minutes| begin.elapsed().as_secs() >= 60 * minutes);
    let (mut programs, mut traps, mut differences) = (0, 0, 0);
    for seed in args.seed..args.seed.saturating_add(args.count) {
        for machine in &machines {
            if is_over() {
                break;
            }
            let these = Programs { seed, first: args.first, count: args.programs };
            let Compared { traps: took, findings } = machine.compare(&these);
            for finding in &findings {
                println!("{finding}");
            }
            programs += these.count;
            traps += took;
            differences += findings.len();
        }
        if is_over() {
            println!("seed {seed} is the last one that was begun");
            break;
        }
    }
    println!("{programs} programs with {traps} traps, {differences} differences");
    Ok(if differences == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
