//! Runs random sets of tasks, and compares each run with what `ainori check` says of the deadlines. See `tests/README.md`.
use ainori_tests::{
    checkout, hypervisor,
    seeds::{self, Seeds, kept, write},
    task_sets::{
        generate::{self, TaskSet, UTILISATIONS},
        judge::{self, Outcome},
    },
    version::{Programs, hash},
};
use clap::Parser;
use indicatif::ProgressBar;
use miette::{IntoDiagnostic, Result, WrapErr};
use serde::{Deserialize, Serialize};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    process::ExitCode,
    sync::atomic::{AtomicBool, Ordering},
    time::Instant,
};

/// Runs sets of tasks that are made from seeds, and compares them with the analysis of their deadlines.
#[derive(Debug, Parser)]
#[command(name = "task-sets")]
struct Args {
    /// The first seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many sets, with seeds that follow each other
    #[arg(long, default_value_t = 200)]
    count: u64,
    /// Begins no further set after so many minutes
    #[arg(long, value_name = "MINUTES")]
    minutes: Option<u64>,
    /// Runs beside each other; each keeps one core of the host busy
    #[arg(long, default_value_t = 1)]
    jobs: usize,
    /// Folder for results; a set that is in it already, of the same hypervisor, guests, plugins and tool, is not run again
    #[arg(long, value_name = "DIR", default_value = ".cache/task-sets")]
    out: PathBuf,
    /// Only shows the sets as manifests
    #[arg(long)]
    show: bool,
}

/// What is kept of one set.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    seed: u64,
    /// Of the programs and of the set: a result counts only for these.
    version: String,
    /// What is in it, in a line.
    summary: String,
    utilisation: u64,
    host_seconds: f64,
    outcome: Outcome,
}

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    if args.show {
        for seed in args.seeds() {
            let set = generate::set(seed);
            println!("# seed {seed}: {}, --clock lockstep --q {}\n{}", set.summary, set.q, set.system);
        }
        return Ok(ExitCode::SUCCESS);
    }
    std::fs::create_dir_all(&args.out).into_diagnostic().wrap_err_with(|| args.out.display().to_string())?;
    let plugins = vec![checkout(".cache/plugins/lockstep.so")];
    let programs = Programs::hold(&args.out, &hypervisor(), plugins).into_diagnostic()?;
    let stop = seeds::stop_at_signals()?;
    let seeds = Seeds { seeds: args.seeds(), jobs: args.jobs, minutes: args.minutes };
    let one = |seed, bar: &ProgressBar| args.one(seed, &programs, &stop, bar);
    let records = seeds.run(&stop, one, |record| !record.outcome.findings.is_empty())?;
    let summary = Summary::of(&records);
    println!("{}Results: {}", summary.text(), args.out.display());
    let json = serde_json::to_string_pretty(&summary).into_diagnostic()?;
    write(&args.out.join("summary.json"), &(json + "\n"))?;
    Ok(match (stop.load(Ordering::Relaxed), summary.failing) {
        (true, _) => ExitCode::from(130),
        (false, 0) => ExitCode::SUCCESS,
        (false, _) => ExitCode::FAILURE,
    })
}

impl Args {
    fn seeds(&self) -> std::ops::Range<u64> {
        self.seed..self.seed.saturating_add(self.count)
    }

    /// One set: from the folder, or run. `None` if somebody asked for the end meanwhile.
    fn one(
        &self,
        seed: u64,
        programs: &Programs,
        stop: &AtomicBool,
        bar: &ProgressBar,
    ) -> Result<Option<Record>> {
        let told = |record: Record| {
            for finding in &record.outcome.findings {
                bar.println(format!("seed {seed} ({}): {finding}", record.summary));
            }
            Some(record)
        };
        let set = generate::set(seed);
        let set = TaskSet { system: set.system.kernel(programs.kernel()), ..set };
        let version = || -> Result<String> {
            let parameters = hash([set.system.to_string(), set.q.to_string()]);
            let programs = programs.version(&set.system.files()).into_diagnostic()?;
            Ok(format!("{programs}-{parameters}"))
        };
        let made_of = version()?;
        let file = self.out.join(format!("{seed}.json"));
        if let Some(known) = kept(&file).filter(|known: &Record| known.version == made_of) {
            return Ok(told(known));
        }
        let begin = Instant::now();
        // A system that can't be started panics.
        let outcome = catch_unwind(AssertUnwindSafe(|| judge::judge(&set))).unwrap_or_else(|_| Outcome {
            findings: vec!["it could not be started".into()],
            ..Outcome::default()
        });
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        // Nobody knows what ran if somebody has built a file meanwhile.
        version()?;
        if !outcome.findings.is_empty() {
            write(&self.out.join(format!("{seed}.toml")), &set.system.to_string())?;
        }
        let record = Record {
            seed,
            version: made_of,
            summary: set.summary.clone(),
            utilisation: set.utilisation,
            host_seconds: begin.elapsed().as_secs_f64(),
            outcome,
        };
        write(&file, &serde_json::to_string_pretty(&record).into_diagnostic()?)?;
        Ok(told(record))
    }
}

/// All sets, and those of each utilisation.
#[derive(Debug, Serialize)]
struct Summary {
    sets: usize,
    failing: usize,
    /// Nothing could be said of them.
    unsaid: usize,
    rows: Vec<Row>,
    /// The longest response that was seen, in percent of its bound: the mean over all tasks, and the greatest.
    seen_mean_percent: f64,
    seen_most_percent: f64,
    host_seconds: f64,
}

/// What was said of sets, and what they did.
#[derive(Debug, Default, Clone, Serialize)]
struct Row {
    /// In percent; `None` of all.
    utilisation: Option<u64>,
    met: usize,
    /// Said to be unschedulable: a task may miss its deadline.
    unschedulable: usize,
    /// Of those: ran without a miss.
    pessimistic: usize,
    /// Said to meet all deadlines, and missed one.
    wrong: usize,
}

impl Row {
    fn of<'a>(utilisation: Option<u64>, records: impl Iterator<Item = &'a Record>) -> Self {
        let mut row = Self { utilisation, ..Self::default() };
        let chosen = records
            .filter(|record| utilisation.is_none_or(|wanted| record.utilisation == wanted))
            .filter(|record| !record.outcome.is_unsaid);
        for Outcome { is_met, has_missed, .. } in chosen.map(|record| &record.outcome) {
            row.met += usize::from(*is_met);
            row.unschedulable += usize::from(!is_met);
            row.pessimistic += usize::from(!is_met && !has_missed);
            row.wrong += usize::from(*is_met && *has_missed);
        }
        row
    }

    fn text(&self) -> String {
        let name = self.utilisation.map_or_else(|| "all".into(), |percent| format!("{percent} %"));
        let share = match self.unschedulable {
            0 => "-".into(),
            all => format!("{:.0} %", self.pessimistic as f64 * 100.0 / all as f64),
        };
        format!(
            "{name:>6} {:>6} {:>14} {:>16} {share:>10} {:>7}\n",
            self.met, self.unschedulable, self.pessimistic, self.wrong
        )
    }
}

impl Summary {
    fn of(records: &[Record]) -> Self {
        let seen: Vec<u64> =
            records.iter().flat_map(|record| record.outcome.seen_per_mille.iter().copied()).collect();
        let mut rows: Vec<Row> = UTILISATIONS.map(|percent| Row::of(Some(percent), records.iter())).into();
        rows.push(Row::of(None, records.iter()));
        Self {
            sets: records.len(),
            failing: records.iter().filter(|record| !record.outcome.findings.is_empty()).count(),
            unsaid: records.iter().filter(|record| record.outcome.is_unsaid).count(),
            rows,
            seen_mean_percent: seen.iter().sum::<u64>() as f64 / seen.len().max(1) as f64 / 10.0,
            seen_most_percent: seen.iter().copied().max().unwrap_or_default() as f64 / 10.0,
            host_seconds: records.iter().map(|record| record.host_seconds).sum(),
        }
    }

    fn text(&self) -> String {
        let head = "  load    met  unschedulable  of these no miss  pessimism   wrong\n";
        let rows: String = self.rows.iter().map(Row::text).collect();
        format!(
            "{head}{rows}The longest response seen is {:.1} % of its bound in the mean, {:.1} % at most.\n{} sets, {} failing, of {} nothing can be \
             said; {:.1} s of host time each. ",
            self.seen_mean_percent,
            self.seen_most_percent,
            self.sets,
            self.failing,
            self.unsaid,
            self.host_seconds / self.sets.max(1) as f64
        )
    }
}
