//! Carries out the runs of a plan, several at a time, and leaves out those that have been done before.
use super::{plan::Run, progress::Progress, store::Store};
use miette::Result;
use serde_json::Value;
use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Instant,
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
    pub progress: &'a Progress,
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
        let workers = self.jobs.min(missing.len());
        self.progress.begin(self.expected(&missing), done.documents.len(), workers);
        let queue = Mutex::new(missing);
        let shared = Mutex::new(done);
        let ends: Vec<Result<()>> = thread::scope(|scope| {
            let workers: Vec<_> = (0..workers).map(|_| scope.spawn(|| self.work(&queue, &shared))).collect();
            workers.into_iter().map(|worker| worker.join().expect("a worker does not panic")).collect()
        });
        self.progress.finish();
        ends.into_iter().collect::<Result<()>>()?;
        Ok(shared.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Seconds that the runs may take, by key.
    fn expected(&self, runs: &VecDeque<(String, &Run)>) -> HashMap<String, f64> {
        let only: Vec<&Run> = runs.iter().map(|(_, run)| *run).collect();
        let seconds = self.store.times().estimates(&only);
        runs.iter().map(|(key, _)| key.clone()).zip(seconds).collect()
    }

    fn work(&self, queue: &Mutex<VecDeque<(String, &Run)>>, done: &Mutex<Done>) -> Result<()> {
        while !self.stop.load(Ordering::Relaxed) {
            let Some((key, run)) = lock(queue).pop_front() else { break };
            let shown = run.shown();
            self.progress.starts(&shown);
            let begun = Instant::now();
            let end = (self.execute)(run);
            let took = begun.elapsed();
            match end {
                Ok(Some(document)) => {
                    self.store.put(&key, &document)?;
                    self.store.times().put(run, took)?;
                    self.progress.ends(&key, &shown, took, None);
                    lock(done).documents.insert(key, document);
                }
                Ok(None) => break,
                Err(error) => {
                    self.progress.ends(&key, &shown, took, Some(&error.to_string()));
                    lock(done).failures.insert(key, error.to_string());
                }
            }
        }
        Ok(())
    }
}

/// Locks what another worker can't have left half changed.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
