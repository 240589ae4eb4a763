//! How long runs take on a host: what is known of like ones, and a guess for the others. It decides who does what and when, and no figure.
use super::{key, plan::Run};
use crate::output;
use miette::{Result, miette};
use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

/// Guess for a run of which nothing is known, in seconds for each hart.
const GUESS_S: f64 = 10.0;
/// How much longer a run takes while its instructions are counted.
const COUNTED: f64 = 2.0;

/// Known times: a file for each likeness (see [`key::likeness`]), so that a new hypervisor's runs are known by the old one's.
#[derive(Debug)]
pub struct Times {
    folder: PathBuf,
}

impl Times {
    /// The times in a store's folder. Nothing is made yet.
    pub fn of(store: &Path) -> Self {
        Self { folder: store.join("times") }
    }

    /// Seconds that a run like this one took; `None` if that isn't known.
    pub fn get(&self, run: &Run) -> Option<f64> {
        read(&self.folder.join(key::likeness(run)))
    }

    /// Keeps how long a run took.
    pub fn put(&self, run: &Run, time: Duration) -> Result<()> {
        self.keep(&key::likeness(run), time.as_secs_f64())
    }

    /// Takes the times of another store over, where there is none of the run yet.
    pub fn merge(&self, other: &Self) -> Result<()> {
        for entry in fs::read_dir(&other.folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if let Some(seconds) = read(&entry.path()).filter(|_| !self.folder.join(&name).exists()) {
                self.keep(&name, seconds)?;
            }
        }
        Ok(())
    }

    fn keep(&self, likeness: &str, seconds: f64) -> Result<()> {
        fs::create_dir_all(&self.folder)
            .map_err(|error| miette!("the folder {} can't be made: {error}", self.folder.display()))?;
        output::write(&self.folder.join(likeness), format!("{seconds:.1}\n").as_bytes())
    }

    /// Seconds that each run may take: as a like one did; else as the mean of those known of its case, or a guess by its harts.
    pub fn estimates(&self, runs: &[&Run]) -> Vec<f64> {
        let known: Vec<Option<f64>> = runs.iter().map(|run| self.get(run)).collect();
        let mut of_case = HashMap::<&str, (f64, u32)>::new();
        for (run, seconds) in runs.iter().zip(&known) {
            if let Some(seconds) = seconds {
                let (sum, count) = of_case.entry(case(run)).or_default();
                (*sum, *count) = (*sum + seconds, *count + 1);
            }
        }
        let mean = |run| of_case.get(case(run)).map(|(sum, count)| sum / f64::from(*count));
        runs.iter()
            .zip(known)
            .map(|(run, known)| known.or_else(|| mean(run)).unwrap_or_else(|| guess(run)))
            .collect()
    }
}

/// The name of a run's case.
fn case(run: &Run) -> &str {
    run.label.split(' ').next().unwrap_or_default()
}

fn guess(run: &Run) -> f64 {
    let counted = if run.marks.is_empty() && run.windows.is_empty() { 1.0 } else { COUNTED };
    GUESS_S * f64::from(run.board().harts) * counted
}

/// Reads seconds; what is no time of a run is as if it weren't there.
fn read(file: &Path) -> Option<f64> {
    let seconds: f64 = fs::read_to_string(file).ok()?.trim().parse().ok()?;
    (0.0..1e7).contains(&seconds).then_some(seconds)
}
