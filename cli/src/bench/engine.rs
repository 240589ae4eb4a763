//! Carries out the runs of a plan, several at a time, and leaves out those that have been done before.
use super::{plan::Run, store::Store};
use indicatif::ProgressBar;
use miette::Result;
use serde_json::Value;
use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

/// What runs need.
pub struct Engine<'a> {
    /// Does one run; `None` if it was interrupted.
    pub execute: &'a (dyn Fn(&Run) -> Result<Option<Value>> + Sync),
    /// Where finished runs are.
    pub store: &'a Store,
    /// Forget first what the store has of these runs.
    pub fresh: bool,
    /// Runs at the same time.
    pub jobs: usize,
    /// Set to end early: what has begun is ended, nothing more begins.
    pub stop: &'a AtomicBool,
    /// Shows how far it is.
    pub progress: &'a ProgressBar,
}

/// The documents of the runs that are done.
#[derive(Debug, Default)]
pub struct Done {
    /// By key.
    pub documents: HashMap<String, Value>,
    /// Why a run has none, by key.
    pub failures: HashMap<String, String>,
}

impl Engine<'_> {
    /// Does all runs, each given with its key; the same key is run once. A run that fails doesn't keep the others from
    /// being done. An error means that results can't be stored.
    pub fn run(&self, runs: &[(String, &Run)]) -> Result<Done> {
        let mut done = Done::default();
        let mut missing = VecDeque::new();
        for (key, _) in runs.iter().filter(|_| self.fresh) {
            self.store.forget(key)?;
        }
        for (key, run) in runs {
            if done.documents.contains_key(key) || missing.iter().any(|(other, _)| other == key) {
                continue;
            }
            match self.store.get(key) {
                Some(document) => drop(done.documents.insert(key.clone(), document)),
                None => missing.push_back((key.clone(), *run)),
            }
        }
        self.progress.set_length((missing.len() + done.documents.len()) as u64);
        self.progress.set_position(done.documents.len() as u64);
        self.progress.reset_eta();
        self.progress.enable_steady_tick(Duration::from_millis(200));

        let workers = self.jobs.min(missing.len());
        let queue = Mutex::new(missing);
        let shared = Mutex::new(done);
        let current = Mutex::new(Vec::new());
        let ends: Vec<Result<()>> = thread::scope(|scope| {
            let workers: Vec<_> =
                (0..workers).map(|_| scope.spawn(|| self.work(&queue, &shared, &current))).collect();
            workers.into_iter().map(|worker| worker.join().expect("a worker does not panic")).collect()
        });
        self.progress.finish_and_clear();
        ends.into_iter().collect::<Result<()>>()?;
        Ok(shared.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    fn work(
        &self,
        queue: &Mutex<VecDeque<(String, &Run)>>,
        done: &Mutex<Done>,
        current: &Mutex<Vec<String>>,
    ) -> Result<()> {
        while !self.stop.load(Ordering::Relaxed) {
            let Some((key, run)) = lock(queue).pop_front() else { break };
            let shown = run.shown();
            self.show(current, |current| current.push(shown.clone()));
            let end = (self.execute)(run);
            self.show(current, |current| current.retain(|other| *other != shown));
            match end {
                Ok(Some(document)) => {
                    self.store.put(&key, &document)?;
                    lock(done).documents.insert(key, document);
                }
                Ok(None) => break,
                Err(error) => {
                    self.progress.suspend(|| anstream::eprintln!("{shown}: {error}"));
                    lock(done).failures.insert(key, error.to_string());
                }
            }
            self.progress.inc(1);
        }
        Ok(())
    }

    /// Changes the list of what is being run, and shows it.
    fn show(&self, current: &Mutex<Vec<String>>, change: impl FnOnce(&mut Vec<String>)) {
        let mut current = lock(current);
        change(&mut current);
        self.progress.set_message(current.join(", "));
    }
}

/// Locks what another worker can't have left half changed.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
