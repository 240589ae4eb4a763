//! Counts interrupts that are held back, in many systems, until there are enough. See `tests/README.md`.
use ainori_tests::{
    campaign::{self, Campaign, Judged},
    held::{Case, Counts},
    seeds::Seeds,
};
use clap::Parser;
use miette::Result;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, path::PathBuf, process::ExitCode};

/// Holds interrupts back in systems that are made from seeds, while vCPUs move, and looks that each is taken once.
#[derive(Debug, Parser)]
#[command(name = "held-back")]
struct Args {
    /// The first seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Interrupts to hold back in all
    #[arg(long, default_value_t = 1_000_000)]
    held: u64,
    /// Interrupts to hold back in each system
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    each: u64,
    /// Runs beside each other; each keeps one core of the host busy
    #[arg(long, default_value_t = 1)]
    jobs: usize,
    /// Folder for results; a system that is in it already, of the same hypervisor, guests, plugins and tool, is not run again
    #[arg(long, value_name = "DIR", default_value = ".cache/soak/held")]
    out: PathBuf,
    /// Only shows the systems as manifests
    #[arg(long)]
    show: bool,
}

/// What came of one system.
#[derive(Debug, Serialize, Deserialize)]
struct Held {
    controller: String,
    counts: Counts,
    findings: Vec<String>,
}

type Record = campaign::Record<Held>;

impl Judged for Held {
    fn findings(&self) -> &[String] {
        &self.findings
    }
}

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    let count = args.held.div_ceil(args.each);
    let seeds = args.seed..args.seed.saturating_add(count);
    let case = |seed| Case::of_seed(seed, args.each);
    if args.show {
        for seed in seeds {
            let case = case(seed);
            println!("# seed {seed}: {}, --clock lockstep --q {}\n{}", case.summary(), case.q, case.system());
        }
        return Ok(ExitCode::SUCCESS);
    }
    let campaign = Campaign::begin(args.out.clone())?;
    let make = |seed| {
        let case = case(seed);
        campaign::Case { summary: case.summary(), system: case.system(), q: case.q }
    };
    let judge = |seed, system: &_| {
        let case = case(seed);
        let (counts, findings) = campaign::started(|| case.judge(&case.run_on(system)))
            .unwrap_or_else(|finding| (Counts::default(), vec![finding]));
        Held { controller: case.controller.into(), counts, findings }
    };
    let records = campaign.run(Seeds { seeds, count, jobs: args.jobs, minutes: None }, make, judge)?;
    let summary = Summary::of(&records);
    println!("{}Results: {}", summary.text(args.held), args.out.display());
    campaign.sum_up(&summary)?;
    Ok(match (campaign.is_stopped(), summary.failing == 0 && summary.all.held >= args.held) {
        (true, _) => ExitCode::from(130),
        (false, true) => ExitCode::SUCCESS,
        (false, false) => ExitCode::FAILURE,
    })
}

/// All systems, and those with each controller.
#[derive(Debug, Serialize)]
struct Summary {
    systems: usize,
    failing: usize,
    all: Counts,
    by_controller: BTreeMap<String, Counts>,
    host_seconds: f64,
}

impl Summary {
    fn of(records: &[Record]) -> Self {
        let mut summary = Self {
            systems: records.len(),
            failing: records.iter().filter(|record| !record.outcome.findings.is_empty()).count(),
            all: Counts::default(),
            by_controller: BTreeMap::new(),
            host_seconds: records.iter().map(|record| record.host_seconds).sum(),
        };
        for record in records {
            summary.all.add(&record.outcome.counts);
            summary
                .by_controller
                .entry(record.outcome.controller.clone())
                .or_default()
                .add(&record.outcome.counts);
        }
        summary
    }

    /// A row for each controller, and what that says of those that were `wanted`.
    fn text(&self, wanted: u64) -> String {
        let row = |name: &str, counts: &Counts| {
            let Counts { taken, held, migrations, latest_ns } = counts;
            let latest: String =
                latest_ns.iter().map(|(kind, ns)| format!("  {kind} {}", ns / 1_000)).collect();
            format!("{name:>10} {taken:>10} {held:>10} {migrations:>11}{latest}\n")
        };
        let rows: String = self.by_controller.iter().map(|(name, counts)| row(name, counts)).collect();
        let verdict = if self.failing != 0 {
            "NOT ALL IS WELL"
        } else if self.all.held < wanted {
            "NOT DONE, no verdict: too few were held back"
        } else {
            "None was lost, none came twice"
        };
        format!(
            "controller      taken  held back  migrations  latest of each kind, us\n{rows}{}{verdict}: {} systems, {} failing, {:.1} s of host time each. ",
            row("all", &self.all),
            self.systems,
            self.failing,
            self.host_seconds / self.systems.max(1) as f64
        )
    }
}
