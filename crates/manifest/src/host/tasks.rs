//! The tasks that a guest declares.
use serde::Serialize;

/// A task: jobs that arrive at least a period apart. Durations are in microseconds, at most [`Self::MAX_US`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Task {
    /// Name for people, different for each task of a guest. `[a-z0-9-]+`, at most 16 characters.
    pub name: String,
    /// Board hart id of the home of the vCPU that it runs on.
    pub hart: u32,
    /// Least time between two jobs. Not 0.
    pub period_us: u64,
    /// Most that a job computes. Not 0.
    pub execution_us: u64,
    /// When a job has to have ended, from its arrival. Not 0; it may be beyond the period.
    pub deadline_us: u64,
    /// Within its guest; the higher goes first.
    pub priority: u8,
    /// By how much a job may become ready later than it arrives.
    pub jitter_us: u64,
    /// For how long less urgent tasks of its guest may keep it waiting.
    pub blocking_us: u64,
    /// The part of that for which it spins for a vCPU of its guest on another hart, in each job. All of it if nothing is said.
    pub remote_blocking_us: u64,
    /// It is what handles interrupts from outside of its guest: of its devices, and bells of its channels.
    pub is_handler: bool,
    /// Line of the manifest where it stands, from 1.
    pub line: usize,
}

impl Task {
    /// Longest duration, in microseconds: a day.
    pub const MAX_US: u64 = 24 * 3600 * 1_000_000;
    /// Most tasks of a guest.
    pub const MAX_COUNT: usize = 256;
}
