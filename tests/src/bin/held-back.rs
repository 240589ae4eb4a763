//! Counts interrupts that are held back, in many systems, until there are enough. See `tests/README.md`.
use ainori_tests::{
    checkout,
    held::{Case, Counts},
    hypervisor,
    seeds::{self, Seeds, kept, write},
    version::{Programs, hash},
};
use clap::Parser;
use indicatif::ProgressBar;
use miette::{IntoDiagnostic, Result, WrapErr};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    process::ExitCode,
    sync::atomic::{AtomicBool, Ordering},
    time::Instant,
};

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

/// What is kept of one system.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    seed: u64,
    /// Of the programs and of the system: a result counts only for these.
    version: String,
    controller: String,
    /// What it is, in a line.
    summary: String,
    host_seconds: f64,
    counts: Counts,
    findings: Vec<String>,
}

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    if args.show {
        for seed in args.seeds() {
            let case = Case::of_seed(seed, args.each);
            println!("# seed {seed}: {}, --clock lockstep --q {}\n{}", case.summary(), case.q, case.system());
        }
        return Ok(ExitCode::SUCCESS);
    }
    std::fs::create_dir_all(&args.out).into_diagnostic().wrap_err_with(|| args.out.display().to_string())?;
    let plugins = vec![checkout(".cache/plugins/lockstep.so")];
    let programs = Programs::hold(&args.out, &hypervisor(), plugins).into_diagnostic()?;
    let stop = seeds::stop_at_signals()?;
    let (seeds, count) = (args.seeds(), args.held.div_ceil(args.each));
    let seeds = Seeds { seeds, count, jobs: args.jobs, minutes: None };
    let one = |seed, bar: &ProgressBar| args.one(seed, &programs, &stop, bar);
    let records = seeds.run(&stop, one, |record| !record.findings.is_empty())?;
    let summary = Summary::of(&records);
    println!("{}Results: {}", summary.text(args.held), args.out.display());
    let json = serde_json::to_string_pretty(&summary).into_diagnostic()?;
    write(&args.out.join("summary.json"), &(json + "\n"))?;
    Ok(match (stop.load(Ordering::Relaxed), summary.failing == 0 && summary.all.held >= args.held) {
        (true, _) => ExitCode::from(130),
        (false, true) => ExitCode::SUCCESS,
        (false, false) => ExitCode::FAILURE,
    })
}

impl Args {
    fn seeds(&self) -> std::ops::Range<u64> {
        self.seed..self.seed.saturating_add(self.held.div_ceil(self.each))
    }

    /// One system: from the folder, or run. `None` if somebody asked for the end meanwhile.
    fn one(
        &self,
        seed: u64,
        programs: &Programs,
        stop: &AtomicBool,
        bar: &ProgressBar,
    ) -> Result<Option<Record>> {
        let told = |record: Record| {
            for finding in &record.findings {
                bar.println(format!("seed {seed} ({}): {finding}", record.summary));
            }
            Some(record)
        };
        let case = Case::of_seed(seed, self.each);
        let system = case.system().kernel(programs.kernel());
        let version = || -> Result<String> {
            let parameters = hash([system.to_string(), case.q.to_string()]);
            let programs = programs.version(&system.files()).into_diagnostic()?;
            Ok(format!("{programs}-{parameters}"))
        };
        let made_of = version()?;
        let file = self.out.join(format!("{seed}.json"));
        if let Some(known) = kept(&file).filter(|known: &Record| known.version == made_of) {
            return Ok(told(known));
        }
        let begin = Instant::now();
        // A system that can't be started panics.
        let (counts, findings) = catch_unwind(AssertUnwindSafe(|| case.judge(&case.run_on(&system))))
            .unwrap_or_else(|_| (Counts::default(), vec!["it could not be started".into()]));
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        // Nobody knows what ran if somebody has built a file meanwhile.
        version()?;
        if !findings.is_empty() {
            write(&self.out.join(format!("{seed}.toml")), &system.to_string())?;
        }
        let record = Record {
            seed,
            version: made_of,
            controller: case.controller.into(),
            summary: case.summary(),
            host_seconds: begin.elapsed().as_secs_f64(),
            counts,
            findings,
        };
        write(&file, &serde_json::to_string_pretty(&record).into_diagnostic()?)?;
        Ok(told(record))
    }
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
            failing: records.iter().filter(|record| !record.findings.is_empty()).count(),
            all: Counts::default(),
            by_controller: BTreeMap::new(),
            host_seconds: records.iter().map(|record| record.host_seconds).sum(),
        };
        for record in records {
            summary.all.add(&record.counts);
            summary.by_controller.entry(record.controller.clone()).or_default().add(&record.counts);
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
