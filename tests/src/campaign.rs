//! Systems that are made from seeds, each of which is run once and judged: what came of each is kept in a folder, and not found out again.
use indicatif::ProgressBar;
use miette::{IntoDiagnostic, Result, WrapErr};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use crate::seeds::{self, Seeds, kept, write};
use crate::version::{Programs, hash};
use crate::{System, checkout, harts::usual_hypervisor};

/// What is kept of one system.
#[derive(Debug, Serialize, Deserialize)]
pub struct Record<T> {
    /// Of which it was made.
    pub seed: u64,
    /// Of the programs and of the system: a result counts only for these.
    pub version: String,
    /// What it is, in a line.
    pub summary: String,
    /// How long the host took for it.
    pub host_seconds: f64,
    /// What came of it.
    #[serde(flatten)]
    pub outcome: T,
}

/// What comes of a system.
pub trait Judged: Serialize + DeserializeOwned + Send {
    /// What isn't as it should be, in words.
    fn findings(&self) -> &[String];
}

/// A system with what its run needs.
pub struct Case {
    /// What it is, in a line.
    pub summary: String,
    /// The system.
    pub system: System,
    /// The slice of lockstep time.
    pub q: u32,
}

/// Runs a system: one that can't be started panics.
///
/// # Errors
/// The finding that it can't.
pub fn started<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|_| "it could not be started".into())
}

/// A folder of records, and the programs that make them.
pub struct Campaign {
    out: PathBuf,
    programs: Programs,
    stop: Arc<AtomicBool>,
}

impl Campaign {
    /// With the checkout's programs, and until somebody ends it.
    ///
    /// # Errors
    /// If the folder can't be made, or a program is missing.
    pub fn begin(out: PathBuf) -> Result<Self> {
        std::fs::create_dir_all(&out).into_diagnostic().wrap_err_with(|| out.display().to_string())?;
        let plugins = vec![checkout(".cache/plugins/lockstep.so")];
        let programs = Programs::hold(&out, &usual_hypervisor(), plugins).into_diagnostic()?;
        Ok(Self { out, programs, stop: seeds::stop_at_signals()? })
    }

    /// Has somebody ended it?
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// The record of each seed: `make` says what is made of it, and `judge` runs that, with its seed.
    ///
    /// # Errors
    /// If a record can't be written, or a program has changed meanwhile.
    pub fn run<T: Judged>(
        &self,
        seeds: Seeds<impl Iterator<Item = u64> + Send>,
        make: impl Fn(u64) -> Case + Sync,
        judge: impl Fn(u64, &System) -> T + Sync,
    ) -> Result<Vec<Record<T>>> {
        let one = |seed, bar: &ProgressBar| self.one(seed, make(seed), |system| judge(seed, system), bar);
        seeds.run(&self.stop, one, |record| !record.outcome.findings().is_empty())
    }

    /// One system: from the folder, or run. `None` if somebody asked for the end meanwhile.
    fn one<T: Judged>(
        &self,
        seed: u64,
        Case { summary, system, q }: Case,
        judge: impl FnOnce(&System) -> T,
        bar: &ProgressBar,
    ) -> Result<Option<Record<T>>> {
        let told = |record: Record<T>| {
            for finding in record.outcome.findings() {
                bar.println(format!("seed {seed} ({}): {finding}", record.summary));
            }
            Some(record)
        };
        let system = system.kernel(self.programs.kernel());
        let version = || -> Result<String> {
            let parameters = hash([system.to_string(), q.to_string()]);
            let programs = self.programs.version(&system.files()).into_diagnostic()?;
            Ok(format!("{programs}-{parameters}"))
        };
        let made_of = version()?;
        let file = self.out.join(format!("{seed}.json"));
        if let Some(known) = kept(&file).filter(|known: &Record<T>| known.version == made_of) {
            return Ok(told(known));
        }
        let begin = Instant::now();
        let outcome = judge(&system);
        if self.is_stopped() {
            return Ok(None);
        }
        // Nobody knows what ran if somebody has built a file meanwhile.
        version()?;
        if !outcome.findings().is_empty() {
            write(&self.out.join(format!("{seed}.toml")), &system.to_string())?;
        }
        let host_seconds = begin.elapsed().as_secs_f64();
        let record = Record { seed, version: made_of, summary, host_seconds, outcome };
        write(&file, &serde_json::to_string_pretty(&record).into_diagnostic()?)?;
        Ok(told(record))
    }

    /// Writes what all of them come to, as `summary.json`.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn sum_up(&self, summary: &impl Serialize) -> Result<()> {
        let json = serde_json::to_string_pretty(summary).into_diagnostic()?;
        write(&self.out.join("summary.json"), &(json + "\n"))
    }
}
