//! How far a bench is: a bar on a terminal, else a line for each run that has ended.
use indicatif::{ProgressBar, ProgressStyle};
use miette::{IntoDiagnostic, Result};
use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// How far it is, as several workers tell it.
#[derive(Debug)]
pub struct Progress {
    name: String,
    /// Hidden where standard error is no terminal.
    bar: ProgressBar,
    /// Are there lines instead of the bar?
    lines: bool,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    begun: Instant,
    /// Runs at the same time.
    jobs: usize,
    /// All runs, those that were there before included.
    all: usize,
    /// Of them, those that are there.
    there: usize,
    /// Seconds that runs may take which have not ended, by key.
    ahead: HashMap<String, f64>,
    /// Of the runs that have ended: seconds that they took, and that they were to take.
    took: (f64, f64),
    /// What is run now.
    current: Vec<String>,
}

impl Progress {
    /// For an experiment: a bar if standard error is a terminal, else lines.
    pub fn new(name: &str) -> Result<Self> {
        let style = "{prefix} [{bar:30}] {pos}/{len} runs, {elapsed} gone, {msg}";
        let style = ProgressStyle::with_template(style).into_diagnostic()?.progress_chars("=> ");
        let bar = ProgressBar::new(0).with_style(style).with_prefix(name.to_owned());
        let lines = bar.is_hidden();
        Ok(Self::with(name, bar, lines))
    }

    /// For tests: nothing is shown.
    #[cfg(test)]
    pub fn hidden() -> Self {
        Self::with("", ProgressBar::hidden(), false)
    }

    fn with(name: &str, bar: ProgressBar, lines: bool) -> Self {
        let inner = Inner {
            begun: Instant::now(),
            jobs: 1,
            all: 0,
            there: 0,
            ahead: HashMap::new(),
            took: (0.0, 0.0),
            current: Vec::new(),
        };
        Self { name: name.to_owned(), bar, lines, inner: Mutex::new(inner) }
    }

    /// Runs begin, `jobs` at a time: those that are missing, by key with the seconds that each may take, beside `there` that were done before.
    pub fn begin(&self, ahead: HashMap<String, f64>, there: usize, jobs: usize) {
        let mut inner = self.lock();
        inner.begun = Instant::now();
        inner.jobs = jobs.max(1);
        (inner.all, inner.there) = (there + ahead.len(), there);
        inner.ahead = ahead;
        self.bar.set_length(inner.all as u64);
        self.bar.set_position(there as u64);
        self.bar.reset_eta();
        self.bar.enable_steady_tick(Duration::from_millis(200));
        if self.lines && !inner.ahead.is_empty() {
            anstream::eprintln!("{}: {}", self.name, inner.words());
        }
    }

    /// A run begins.
    pub fn starts(&self, run: &str) {
        let mut inner = self.lock();
        inner.current.push(run.to_owned());
        self.bar.set_message(inner.message());
    }

    /// A run has ended, in whatever way; `failed` says why it can't be used.
    pub fn ends(&self, key: &str, run: &str, took: Duration, failed: Option<&str>) {
        let mut inner = self.lock();
        inner.current.retain(|other| other != run);
        inner.there += 1;
        if let Some(expected) = inner.ahead.remove(key) {
            inner.took = (inner.took.0 + took.as_secs_f64(), inner.took.1 + expected);
        }
        if let Some(why) = failed {
            self.bar.suspend(|| anstream::eprintln!("{run}: {why}"));
        }
        if self.lines {
            let how = if failed.is_some() { "failed" } else { "done" };
            anstream::eprintln!(
                "{}: {}; {run} {how} in {}",
                self.name,
                inner.words(),
                time(took.as_secs_f64())
            );
        }
        self.bar.inc(1);
        self.bar.set_message(inner.message());
    }

    /// Nothing more begins.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// `3/15 runs, 2 min gone, about 9 min to go`
    fn words(&self) -> String {
        let gone = time(self.begun.elapsed().as_secs_f64());
        format!("{}/{} runs, {gone} gone, about {} to go", self.there, self.all, time(self.to_go()))
    }

    fn message(&self) -> String {
        format!("about {} to go: {}", time(self.to_go()), self.current.join(", "))
    }

    /// Seconds until all is done, if the runs ahead are as much longer or shorter than expected as those that have ended.
    fn to_go(&self) -> f64 {
        let (took, expected) = self.took;
        let pace = if expected > 0.0 { took / expected } else { 1.0 };
        let longest = self.ahead.values().copied().fold(0.0, f64::max);
        // Runs go beside each other, but the longest takes its time.
        let all = self.ahead.values().fold(0.0, |all, one| all + one); // not `sum`, which begins with -0
        (all / self.jobs as f64).max(longest) * pace
    }
}

/// A time for people, of a number of seconds: `40 s`, `12 min`, `3.5 h`.
pub fn time(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 99.5 => format!("{seconds:.0} s"),
        seconds if seconds < 99.5 * 60.0 => format!("{:.0} min", seconds / 60.0),
        seconds => format!("{:.1} h", seconds / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_go_follows_the_pace() {
        let progress = Progress::hidden();
        let ahead = [("a", 10.0), ("b", 30.0), ("c", 20.0)].map(|(key, seconds)| (key.to_owned(), seconds));
        progress.begin(ahead.into(), 2, 2);
        assert!(progress.lock().words().starts_with("2/5 runs, 0 s gone, about 30 s to go"));
        progress.starts("first");
        progress.ends("a", "first", Duration::from_secs(20), None);
        let inner = progress.lock();
        assert_eq!(inner.to_go(), 60.0, "all take twice as long as expected");
        assert_eq!((inner.there, inner.all, inner.current.len()), (3, 5, 0));
        drop(inner);
        for key in ["b", "c"] {
            progress.ends(key, key, Duration::from_secs(1), None);
        }
        let words = progress.lock().words();
        assert!(words.starts_with("5/5 runs") && words.ends_with(" about 0 s to go"), "{words}");
    }

    #[test]
    fn times_are_short() {
        assert_eq!(
            [0.4, 99.0, 100.0, 5400.0, 36_000.0].map(time),
            ["0 s", "99 s", "2 min", "90 min", "10.0 h"]
        );
    }
}
