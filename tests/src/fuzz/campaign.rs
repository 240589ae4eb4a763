//! Many trials beside each other. Each result is appended to a file when it is there, so a campaign that was interrupted goes on.
use super::{
    Trial,
    outcome::{Outcome, key},
};
use crate::{bounds::Kind, version::Programs};
use std::{
    collections::BTreeMap,
    fs::{File, OpenOptions},
    io::{BufRead, BufReader, Result, Write},
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

/// The file of outcomes, and what is in it already.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    programs: Programs,
    file: Mutex<File>,
    /// By [`Outcome::key`].
    done: BTreeMap<String, Outcome>,
}

impl Store {
    /// Opens a campaign's folder, or makes it. All trials will run on a copy of this hypervisor.
    pub fn open(folder: &Path, kernel: &Path) -> Result<Self> {
        let programs = Programs::hold(folder, kernel, vec![crate::checkout(".cache/plugins/lockstep.so")])?;
        Self::with(folder, programs)
    }

    fn with(folder: &Path, programs: Programs) -> Result<Self> {
        std::fs::create_dir_all(folder.join("failed"))?;
        let path = folder.join("outcomes.jsonl");
        let mut done = BTreeMap::new();
        if path.exists() {
            // The last line may have been cut; lines of tools that kept less aren't of this version.
            let lines = BufReader::new(File::open(&path)?).lines().map_while(Result::ok);
            for outcome in lines.filter_map(|line| serde_json::from_str::<Outcome>(&line).ok()) {
                done.insert(outcome.key.clone(), outcome);
            }
        }
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        if file.metadata()?.len() > 0 {
            writeln!(file)?;
        }
        Ok(Self { folder: folder.to_owned(), programs, file: Mutex::new(file), done })
    }

    /// The version of what a trial runs on.
    fn version(&self, trial: &Trial) -> Result<String> {
        self.programs.version(&trial.system.files())
    }

    /// The outcome of a trial: of an earlier call (then the second value is true) if that was of the same programs and parameters, or of `attempt`.
    fn outcome(
        &self,
        trial: &Trial,
        q: u32,
        attempt: impl FnOnce(Outcome, &Trial) -> (Outcome, Vec<String>),
    ) -> Result<(Outcome, bool)> {
        let version = self.version(trial)?;
        if let Some(earlier) = self.done.get(&key(trial, q, &version)) {
            return Ok((earlier.clone(), true));
        }
        let here = Trial { system: trial.system.clone().kernel(self.programs.kernel()), ..trial.clone() };
        let (outcome, serial) = attempt(Outcome::new(trial, q, version), &here);
        // Nobody knows what ran if somebody has built a file meanwhile.
        self.version(trial)?;
        self.keep(&outcome, trial, &serial)?;
        Ok((outcome, false))
    }

    fn keep(&self, outcome: &Outcome, trial: &Trial, serial: &[String]) -> Result<()> {
        if !outcome.findings.is_empty() {
            let file = |end: &str| self.folder.join("failed").join(format!("{}{end}", outcome.trial));
            std::fs::write(file(".toml"), trial.system.to_string())?;
            std::fs::write(file(".log"), serial.join("\n"))?;
        }
        let line = serde_json::to_string(outcome).map_err(std::io::Error::other)?;
        writeln!(lock(&self.file), "{line}")
    }
}

/// Runs trials until `next` has no more, `jobs` at a time; `told` hears of each, and whether it is of an earlier call. Returns when all that were begun
/// have ended.
pub fn run(
    store: &Store,
    jobs: usize,
    stop: &AtomicBool,
    next: impl FnMut() -> Option<(Trial, u32)> + Send,
    told: impl FnMut(Outcome, bool) + Send,
) -> Result<()> {
    let (next, told, failed) = (Mutex::new(next), Mutex::new(told), Mutex::new(None));
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let Some((trial, q)) = lock(&next)() else { return };
                    match store.outcome(&trial, q, attempt) {
                        Ok((outcome, earlier)) => lock(&told)(outcome, earlier),
                        Err(error) => {
                            *lock(&failed) = Some(error);
                            stop.store(true, Ordering::Relaxed);
                        }
                    }
                }
            });
        }
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn attempt(mut outcome: Outcome, trial: &Trial) -> (Outcome, Vec<String>) {
    // `System::run` panics if the system can't be started.
    let Ok((run, findings)) = catch_unwind(AssertUnwindSafe(|| trial.run(outcome.q))) else {
        outcome.find(Kind::Emulator, "the system could not be started");
        return (outcome, Vec::new());
    };
    outcome.findings = findings;
    outcome.measure(trial, &run.report);
    (outcome, run.serial)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Guest, System, fuzz::Case};

    /// A folder with a hypervisor, a plugin and a guest.
    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in ["kernel", "plugin"] {
            std::fs::write(folder.path().join(name), name).unwrap();
        }
        folder
    }

    fn open(folder: &Path) -> Store {
        let out = folder.join("out");
        let programs =
            Programs::with(&out, &folder.join("kernel"), vec![folder.join("plugin")], b"QEMU").unwrap();
        Store::with(&out, programs).unwrap()
    }

    /// A trial like those of campaigns, without files, which tests of the host don't have.
    fn trial(args: &str) -> Trial {
        let case = Case {
            seed: 9,
            preset: "ainori",
            vcpus: 2,
            harts: 2,
            cpu: "rv64",
            ms: 20,
            kinds: None,
            q: 250,
            lives: crate::fuzz::case::Lives::One,
            mode: None,
        }
        .trial();
        let system = System::on(2).policy("ainori").with(Guest::fuzz(args).file(Path::new("/dev/null")));
        Trial { system, ..case }
    }

    /// Would this call run the trial?
    fn runs(store: &Store, trial: &Trial, q: u32) -> bool {
        let attempt = |mut outcome: Outcome, here: &Trial| {
            assert_eq!(here.system.to_string(), trial.system.to_string());
            outcome.inputs = 7;
            (outcome, Vec::new())
        };
        let (outcome, earlier) = store.outcome(trial, q, attempt).unwrap();
        assert_eq!((outcome.inputs, outcome.q), (7, q));
        !earlier
    }

    #[test]
    fn the_same_trial_of_the_same_programs_goes_on() {
        let folder = folder();
        assert!(runs(&open(folder.path()), &trial("seed=9 ms=20"), 250));
        assert!(!runs(&open(folder.path()), &trial("seed=9 ms=20"), 250));
    }

    /// They had the same name, which was all that was asked for.
    #[test]
    fn other_parameters_are_another_trial() {
        let folder = folder();
        assert!(runs(&open(folder.path()), &trial("seed=9 ms=20"), 250));
        for (args, q) in [("seed=9 ms=200", 250), ("seed=9 ms=20 kinds=1", 250), ("seed=9 ms=20", 149)] {
            assert!(runs(&open(folder.path()), &trial(args), q), "{args}, q {q}");
        }
        let mut asked = trial("seed=9 ms=20");
        asked.rtoses.clear();
        assert!(runs(&open(folder.path()), &asked, 250));
        // All of them are kept.
        assert!(!runs(&open(folder.path()), &trial("seed=9 ms=20"), 250));
    }

    #[test]
    fn other_programs_run_again() {
        for name in ["kernel", "plugin"] {
            let folder = folder();
            assert!(runs(&open(folder.path()), &trial(""), 250));
            std::fs::write(folder.path().join(name), "another").unwrap();
            assert!(runs(&open(folder.path()), &trial(""), 250), "{name}");
            std::fs::write(folder.path().join(name), name).unwrap();
            assert!(!runs(&open(folder.path()), &trial(""), 250), "{name}");
        }
    }

    /// A build in the middle of a run: whatever came of it isn't kept.
    #[test]
    fn runs_with_files_that_change_are_not_kept() {
        let folder = folder();
        let store = open(folder.path());
        let attempt = |outcome: Outcome, _: &Trial| {
            std::fs::write(folder.path().join("plugin"), "another").unwrap();
            (outcome, Vec::new())
        };
        assert!(store.outcome(&trial(""), 250, attempt).is_err());
        std::fs::write(folder.path().join("plugin"), "plugin").unwrap();
        assert!(runs(&open(folder.path()), &trial(""), 250));
    }

    /// Lines that were cut, and those from before outcomes had versions, are no outcomes.
    #[test]
    fn lines_without_a_version_do_not_count() {
        let folder = folder();
        std::fs::create_dir(folder.path().join("out")).unwrap();
        let old = r#"{"trial":"ainori-2-vcpus-2-harts-0000000000000009","preset":"ainori","q":250,"inputs":10467,"kinds":{},"task_ns":0,"handler_ns":0,"stretch":0,"seconds":1.0,"findings":[]}"#;
        std::fs::write(folder.path().join("out/outcomes.jsonl"), format!("{old}\n{}", &old[..50])).unwrap();
        assert!(runs(&open(folder.path()), &trial(""), 250));
        assert!(!runs(&open(folder.path()), &trial(""), 250));
    }
}
