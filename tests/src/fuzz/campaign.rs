//! Many trials beside each other. Each result is appended to a file when it is there, so a campaign that was interrupted goes on.
use super::Trial;
use crate::bounds::{Finding, number};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fs::{File, OpenOptions},
    io::{BufRead, BufReader, Write},
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

/// What became of one trial.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    /// [`Trial::name`].
    pub trial: String,
    /// The preset.
    pub preset: String,
    /// Instructions of a slice in lockstep time.
    pub q: u32,
    /// Inputs that the fuzzing guest tried, or turns of an attack.
    pub inputs: u64,
    /// By kind.
    pub kinds: BTreeMap<String, u64>,
    /// How late the RTOS's task and tick handler were at most, in nanoseconds.
    pub task_ns: u64,
    /// See `task_ns`.
    pub handler_ns: u64,
    /// The longest stretch in the hypervisor on any core, in ticks of `time`.
    pub stretch: u64,
    /// Host seconds.
    pub seconds: f64,
    /// What doesn't hold.
    pub findings: Vec<Finding>,
}

/// The file of outcomes, and what is in it already.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    file: Mutex<File>,
    done: BTreeMap<String, Outcome>,
}

impl Store {
    /// Opens a campaign's folder, or makes it.
    pub fn open(folder: &Path) -> std::io::Result<Self> {
        std::fs::create_dir_all(folder.join("failed"))?;
        let path = folder.join("outcomes.jsonl");
        let mut done = BTreeMap::new();
        if path.exists() {
            // The last line may have been cut.
            let lines = BufReader::new(File::open(&path)?).lines().map_while(Result::ok);
            for outcome in lines.filter_map(|line| serde_json::from_str::<Outcome>(&line).ok()) {
                done.insert(outcome.trial.clone(), outcome);
            }
        }
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        if !done.is_empty() {
            writeln!(file)?;
        }
        Ok(Self { folder: folder.to_owned(), file: Mutex::new(file), done })
    }

    /// The outcome of a trial from an earlier run.
    pub fn earlier(&self, trial: &str) -> Option<&Outcome> {
        self.done.get(trial)
    }

    fn keep(&self, outcome: &Outcome, trial: &Trial, serial: &[String]) -> std::io::Result<()> {
        if !outcome.findings.is_empty() {
            let file = |end: &str| self.folder.join("failed").join(format!("{}{end}", outcome.trial));
            std::fs::write(file(".toml"), trial.system.to_string())?;
            std::fs::write(file(".log"), serial.join("\n"))?;
        }
        let line = serde_json::to_string(outcome).map_err(std::io::Error::other)?;
        writeln!(self.file.lock().unwrap_or_else(|poisoned| poisoned.into_inner()), "{line}")
    }
}

/// Runs trials until `next` has no more, `jobs` at a time; `told` hears of each. Returns when all that were begun have ended.
pub fn run(
    store: &Store,
    jobs: usize,
    stop: &AtomicBool,
    next: impl FnMut() -> Option<(Trial, u32)> + Send,
    told: impl FnMut(&Outcome) + Send,
) -> std::io::Result<()> {
    let (next, told, failed) = (Mutex::new(next), Mutex::new(told), Mutex::new(None));
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let Some((trial, q)) = lock(&next)() else { return };
                    let (outcome, serial) = match store.earlier(&trial.name) {
                        Some(outcome) => (outcome.clone(), None),
                        None => {
                            let (outcome, serial) = attempt(&trial, q);
                            (outcome, Some(serial))
                        }
                    };
                    if let Some(serial) = serial
                        && let Err(error) = store.keep(&outcome, &trial, &serial)
                    {
                        *lock(&failed) = Some(error);
                        stop.store(true, Ordering::Relaxed);
                    }
                    lock(&told)(&outcome);
                }
            });
        }
    });
    failed.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()).map_or(Ok(()), Err)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn attempt(trial: &Trial, q: u32) -> (Outcome, Vec<String>) {
    let mut outcome = Outcome {
        trial: trial.name.clone(),
        preset: trial.preset.into(),
        q,
        inputs: 0,
        kinds: BTreeMap::new(),
        task_ns: 0,
        handler_ns: 0,
        stretch: 0,
        seconds: 0.0,
        findings: Vec::new(),
    };
    // `System::run` panics if the system can't be started.
    let Ok((run, findings)) = catch_unwind(AssertUnwindSafe(|| trial.run(q))) else {
        let text = "the system could not be started".into();
        outcome.findings.push(Finding { kind: crate::bounds::Kind::Emulator, text });
        return (outcome, Vec::new());
    };
    outcome.findings = findings;
    outcome.seconds = run.report.host.seconds;
    outcome.stretch = run.report.cores.iter().map(|core| core.longest_stretch).max().unwrap_or(0);
    for guest in &run.report.guests {
        outcome.inputs += number(guest, "inputs").unwrap_or(0);
        outcome.task_ns = outcome.task_ns.max(number(guest, "delay_ns/max").unwrap_or(0));
        outcome.handler_ns = outcome.handler_ns.max(number(guest, "handler_delay_ns/max").unwrap_or(0));
        let kinds = guest.results.first().and_then(|result| result.get("kinds")?.as_object().cloned());
        for (kind, count) in kinds.unwrap_or_default() {
            *outcome.kinds.entry(kind).or_default() += count.as_u64().unwrap_or(0);
        }
    }
    (outcome, run.serial)
}
