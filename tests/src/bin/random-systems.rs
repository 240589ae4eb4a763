//! Runs random systems, each made from a seed, and tells which of them break a rule. See `docs/measuring.md` and
//! `ainori_tests::random`.
use ainori::report::GuestReport;
use ainori_tests::{
    Run,
    bounds::{Greatest, IRQS_OFF_BESIDE_RTOS_NS},
    random::{
        check::Violation,
        description::{Description, Job},
        generate::{self, Theme},
        oracle,
        run::{Runner, SAME_TWICE, plugins, version},
        shrink,
    },
    seeds::{self, Seeds, kept, write},
    version::Programs,
};
use clap::Parser;
use indicatif::ProgressBar;
use miette::{IntoDiagnostic, Result, WrapErr};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fmt::Write as _,
    path::PathBuf,
    process::ExitCode,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

/// Most runs that go into making one failing system smaller.
const SHRINK_TRIES: u32 = 60;
/// One system in so many is run twice in any case.
const TWICE_EVERY: u64 = 16;

/// Runs systems that are made from seeds, and checks what must hold for every system.
#[derive(Debug, Parser)]
#[command(name = "random-systems")]
struct Args {
    /// The first seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many systems, with seeds that follow each other
    #[arg(long, default_value_t = 20)]
    count: u64,
    /// Which systems
    #[arg(long, value_enum, default_value = "any")]
    theme: Theme,
    /// Begins no further system after so many minutes
    #[arg(long, value_name = "MINUTES")]
    minutes: Option<u64>,
    /// Runs beside each other; each keeps one core of the host busy
    #[arg(long, default_value_t = 1)]
    jobs: usize,
    /// Folder for results, failing systems and their logs; a system that is in it already, of the same hypervisor, guests, plugins and tool, is not run again
    #[arg(long, value_name = "DIR", default_value = ".cache/random-systems")]
    out: PathBuf,
    /// Another hypervisor than the checkout's
    #[arg(long, value_name = "ELF")]
    kernel: Option<PathBuf>,
    /// Runs each system twice, not just one in 16: both runs must be the same, byte for byte
    #[arg(long)]
    twice: bool,
    /// Leaves failing systems as they are
    #[arg(long)]
    no_shrink: bool,
    /// Only shows the systems as manifests, and what the tool would type
    #[arg(long)]
    show: bool,
}

/// What is kept of one system.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    seed: u64,
    /// Of the programs and of the system: a result counts only for these.
    version: String,
    /// What is in it, in a line.
    summary: String,
    host_seconds: f64,
    /// The machine's time, in milliseconds.
    #[serde(default)]
    machine_ms: u64,
    /// How near it came to its bounds.
    #[serde(default)]
    greatest: Greatest,
    violations: Vec<Broken>,
    /// The smallest system that was found to break the first of these rules, as a manifest.
    shrunk: Option<String>,
}

/// A [`Violation`] that can be read back.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Broken {
    rule: String,
    what: String,
}

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    if args.show {
        for seed in args.seeds() {
            let system = generate::themed(args.theme, seed);
            println!(
                "# {}\n# -plugin {}\n{system}",
                summary(&system),
                ainori_tests::random::run::operator(&system)
            );
        }
        return Ok(ExitCode::SUCCESS);
    }
    std::fs::create_dir_all(&args.out).into_diagnostic().wrap_err_with(|| args.out.display().to_string())?;
    let kernel = args.kernel.clone().unwrap_or_else(ainori_tests::harts::usual_hypervisor);
    let programs = Programs::hold(&args.out, &kernel, plugins()).into_diagnostic()?;
    let stop = seeds::stop_at_signals()?;
    let runner =
        Runner { kernel: Some(programs.kernel().to_owned()), stop: stop.clone(), ..Runner::default() };
    let seeds = Seeds { seeds: args.seeds(), count: args.count, jobs: args.jobs, minutes: args.minutes };
    let one = |seed, bar: &ProgressBar| args.one(seed, &runner, &programs, bar);
    let records = seeds.run(&stop, one, |record| !record.violations.is_empty())?;
    let ok = report(&args, &records)?;
    Ok(match (stop.load(Ordering::Relaxed), ok) {
        (true, _) => ExitCode::from(130),
        (false, true) => ExitCode::SUCCESS,
        (false, false) => ExitCode::FAILURE,
    })
}

impl Args {
    fn seeds(&self) -> std::ops::Range<u64> {
        self.seed..self.seed.saturating_add(self.count)
    }

    /// One system: from the folder, or run, and shrunk if it fails. `None` if it was interrupted.
    fn one(
        &self,
        seed: u64,
        runner: &Runner,
        programs: &Programs,
        bar: &ProgressBar,
    ) -> Result<Option<Record>> {
        let system = generate::themed(self.theme, seed);
        let twice = self.twice || seed.is_multiple_of(TWICE_EVERY);
        let made_of = || version(programs, &system, twice).into_diagnostic();
        let version = made_of()?;
        let file = self.out.join(format!("{seed}.json"));
        if let Some(known) = kept(&file).filter(|known: &Record| known.version == version) {
            return Ok(Some(known));
        }
        let begin = Instant::now();
        let judgement = Runner { twice, ..runner.clone() }.judge(&system);
        if judgement.interrupted {
            return Ok(None);
        }
        // Nobody knows what ran if somebody has built a file meanwhile.
        made_of()?;
        let host_seconds = begin.elapsed().as_secs_f64();
        let mut shrunk = None;
        if let Some(first) = judgement.violations.first() {
            bar.println(format!("seed {seed}: {}: {}", first.rule, first.what));
            write(&self.out.join(format!("{seed}.toml")), &manifest(&system, &judgement.violations))?;
            if let Some(run) = &judgement.run {
                write(&self.out.join(format!("{seed}.serial.log")), &run.serial.join("\n"))?;
            }
            if !self.no_shrink {
                // Whatever takes much longer than the failure did only hangs.
                let host_limit = begin.elapsed() * 3 + Duration::from_secs(10);
                let twice = first.rule == SAME_TWICE;
                let runner = Runner { host_limit: Some(host_limit), twice, ..runner.clone() };
                // Written each time, so that what was found is there even if nobody waits for the end.
                let file = self.out.join(format!("{seed}.shrunk.toml"));
                let keep = |smaller: &str| write(&file, smaller);
                shrunk = match smaller(&system, first, &runner, keep)? {
                    Shrunk::Interrupted => return Ok(None),
                    Shrunk::To(text) => text,
                };
            }
        }
        let violations = judgement
            .violations
            .iter()
            .map(|violation| Broken { rule: violation.rule.into(), what: violation.what.clone() });
        let record = Record {
            seed,
            version,
            summary: summary(&system),
            host_seconds,
            machine_ms: judgement.run.as_ref().map_or(0, machine_ms),
            greatest: judgement.run.as_ref().map(|run| greatest_of(&system, run)).unwrap_or_default(),
            violations: violations.collect(),
            shrunk,
        };
        write(&file, &serde_json::to_string_pretty(&record).into_diagnostic()?)?;
        Ok(Some(record))
    }
}

/// What came of shrinking.
enum Shrunk {
    /// Somebody ended it.
    Interrupted,
    /// The smallest system that was found, as a manifest; `None` if there is nothing to leave out.
    To(Option<String>),
}

/// Looks for a smaller system that breaks the same rule. `keep` gets each that is smaller than all before.
fn smaller(
    system: &Description,
    first: &Violation,
    runner: &Runner,
    keep: impl Fn(&str) -> Result<()>,
) -> Result<Shrunk> {
    let (mut interrupted, mut kept, mut smallest) = (false, Ok(()), None);
    shrink::shrink(system, SHRINK_TRIES, |candidate| {
        if interrupted {
            return false;
        }
        let judgement = runner.judge(candidate);
        interrupted |= judgement.interrupted;
        let fails = judgement.violations.first().is_some_and(|violation| violation.rule == first.rule);
        if fails && !interrupted {
            let text = manifest(candidate, &judgement.violations);
            kept = keep(&text);
            smallest = Some(text);
        }
        fails
    });
    kept?;
    Ok(if interrupted { Shrunk::Interrupted } else { Shrunk::To(smallest) })
}

/// A manifest that says what is wrong with it and how to run it again.
fn manifest(system: &Description, violations: &[Violation]) -> String {
    let mut text = String::new();
    for violation in violations {
        let _ = writeln!(text, "# {}: {}", violation.rule, violation.what.replace('\n', " "));
    }
    let operator = ainori_tests::random::run::operator(system);
    let _ = writeln!(
        text,
        "# ainori run FILE --clock lockstep --q {} --qemu-arg=-plugin --qemu-arg={operator}\n{system}",
        system.slice
    );
    text
}

/// What is in a system, in a line.
fn summary(system: &Description) -> String {
    let guests: Vec<String> =
        system.guests.iter().map(|guest| format!("{}x{}", guest.name, guest.vcpus)).collect();
    format!("{} harts, {}: {}", system.harts, system.preset, guests.join(" "))
}

/// How long the machine ran, in its own time. 0 if it didn't come to its end.
fn machine_ms(run: &Run) -> u64 {
    let (Some(end), Some(board)) = (&run.report.end, &run.report.board) else { return 0 };
    end.time * 1_000 / board.timebase_hz
}

/// Shows what failed, and writes the summary. True if nothing did.
fn report(args: &Args, records: &[Record]) -> Result<bool> {
    let mut rules: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for record in records {
        for violation in &record.violations {
            let seeds = rules.entry(&violation.rule).or_default();
            if seeds.last() != Some(&record.seed) {
                seeds.push(record.seed);
            }
        }
    }
    for (rule, seeds) in &rules {
        println!("{:5} systems break: {rule}: seeds {}", seeds.len(), list(seeds));
    }
    for record in records.iter().filter(|record| !record.violations.is_empty()) {
        println!("\nseed {} ({})", record.seed, record.summary);
        for violation in &record.violations {
            println!("  {}: {}", violation.rule, violation.what);
        }
        if let Some(shrunk) = &record.shrunk {
            println!("shrunk:\n{shrunk}");
        }
    }
    let greatest = greatest(records);
    for (what, (ns, seed)) in &greatest {
        println!("at most {ns:6} ns {what} (seed {seed})");
    }
    let failing = records.iter().filter(|record| !record.violations.is_empty()).count();
    let seconds: f64 = records.iter().map(|record| record.host_seconds).sum();
    let mean = seconds / records.len().max(1) as f64;
    println!(
        "{} systems from seed {}: {failing} failing; {mean:.1} s of host time each. Results: {}",
        records.len(),
        args.seed,
        args.out.display()
    );
    let greatest: BTreeMap<&str, serde_json::Value> = greatest
        .into_iter()
        .map(|(what, (ns, seed))| (what, serde_json::json!({ "ns": ns, "seed": seed })))
        .collect();
    let summary = serde_json::json!({
        "systems": records.len(),
        "failing": failing,
        "rules": rules,
        "greatest": greatest,
        "host_seconds": seconds,
    });
    write(&args.out.join("summary.json"), &format!("{summary:#}\n"))?;
    Ok(failing == 0)
}

/// How near a run came to its bounds.
fn greatest_of(system: &Description, run: &Run) -> Greatest {
    let is_rtos = |report: &GuestReport| {
        system.guests.iter().any(|guest| {
            guest.name == report.name
                && matches!(guest.job, Job::FreeRtos { .. })
                && oracle::promise(system, guest).punctual
        })
    };
    let has_rtos = |hart| oracle::longest_irqs_off_ns(system, hart as u32) == IRQS_OFF_BESIDE_RTOS_NS;
    Greatest::of(&run.report, is_rtos, has_rtos)
}

/// The greatest of each bounded time, and the first seed that had it.
fn greatest(records: &[Record]) -> BTreeMap<&'static str, (u64, u64)> {
    let mut greatest = BTreeMap::new();
    for record in records {
        for (what, ns) in record.greatest.named() {
            let Some(ns) = ns else { continue };
            let most = greatest.entry(what).or_insert((ns, record.seed));
            if ns > most.0 {
                *most = (ns, record.seed);
            }
        }
    }
    greatest
}

fn list(seeds: &[u64]) -> String {
    let shown: Vec<String> = seeds.iter().take(20).map(u64::to_string).collect();
    let more = if seeds.len() > shown.len() { " ..." } else { "" };
    shown.join(" ") + more
}
