//! Work that is made from seeds, in their order: some at a time, with a progress bar, until all are done, time is over, or somebody ends it. What came of
//! each is kept in a file, so that the same call goes on where the last one ended.
use indicatif::{ProgressBar, ProgressStyle};
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use serde::de::DeserializeOwned;
use std::{
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// Which seeds, and how much of the host they may take.
#[derive(Debug)]
pub struct Seeds<I> {
    /// All of them, in the order in which they are begun.
    pub seeds: I,
    /// How many they are.
    pub count: u64,
    /// How many are done beside each other; 0 is taken for 1.
    pub jobs: usize,
    /// After so many minutes none is begun.
    pub minutes: Option<u64>,
}

impl<I: Iterator<Item = u64> + Send> Seeds<I> {
    /// Does `one` for each, which gets the bar to print above it, and gives `None` if it was ended. Returns what came of them, by their seeds. The bar tells how
    /// many of them `fails` says have failed.
    ///
    /// # Errors
    /// The first of `one`; the others that were begun come to their ends.
    pub fn run<R: Send>(
        self,
        stop: &AtomicBool,
        one: impl Fn(u64, &ProgressBar) -> Result<Option<R>> + Sync,
        fails: impl Fn(&R) -> bool + Sync,
    ) -> Result<Vec<R>> {
        let bar = ProgressBar::new(self.count);
        let style = "{elapsed_precise} {bar:40} {pos}/{len} {msg}, {eta} left";
        bar.set_style(ProgressStyle::with_template(style).into_diagnostic()?);
        bar.enable_steady_tick(Duration::from_millis(200));
        let seeds = Mutex::new(self.seeds.fuse());
        let records: Mutex<Vec<(u64, R)>> = Mutex::new(Vec::new());
        let until = self.minutes.map(|minutes| Instant::now() + Duration::from_secs(60 * minutes));
        let work = || -> Result<()> {
            loop {
                let is_late = until.is_some_and(|until| Instant::now() >= until);
                if is_late || stop.load(Ordering::Relaxed) {
                    return Ok(());
                }
                let next = seeds.lock().map_err(|_| miette!("another worker panicked"))?.next();
                let Some(seed) = next else { return Ok(()) };
                let Some(record) = one(seed, &bar)? else { return Ok(()) };
                let mut records = records.lock().map_err(|_| miette!("another worker panicked"))?;
                records.push((seed, record));
                let failing = records.iter().filter(|(_, record)| fails(record)).count();
                bar.set_message(format!("{failing} failing"));
                bar.inc(1);
            }
        };
        let results: Vec<Result<()>> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..self.jobs.max(1)).map(|_| scope.spawn(work)).collect();
            workers.into_iter().map(|worker| worker.join().expect("workers don't panic")).collect()
        });
        bar.finish_and_clear();
        results.into_iter().collect::<Result<()>>()?;
        let mut records = records.into_inner().map_err(|_| miette!("a worker panicked"))?;
        records.sort_by_key(|(seed, _)| *seed);
        Ok(records.into_iter().map(|(_, record)| record).collect())
    }
}

/// Becomes true when somebody ends the program: at the first SIGINT or SIGTERM.
///
/// # Errors
/// If the signals can't be caught.
pub fn stop_at_signals() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, stop.clone()).into_diagnostic()?;
    }
    Ok(stop)
}

/// What an earlier call has kept in a file, if it can be read.
pub fn kept<R: DeserializeOwned>(file: &Path) -> Option<R> {
    std::fs::read(file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok())
}

/// Writes a file, whole or not at all.
///
/// # Errors
/// If it can't be written, with its path.
pub fn write(path: &Path, text: &str) -> Result<()> {
    let new = path.with_extension("new");
    std::fs::write(&new, text)
        .and_then(|()| std::fs::rename(&new, path))
        .into_diagnostic()
        .wrap_err_with(|| path.display().to_string())
}
