//! How often a guest is started again: at most so many times within any interval of a length (systemd's `StartLimitBurst=` and
//! `StartLimitIntervalSec=`, but of every interval rather than of those that follow each other).
use crate::atomic::{AtomicU64, Ordering};
use crate::rules::{MAX_LIMIT, Rules};

/// When the last restarts were, as many as the limit: the one that this long ago was the limit's tells whether one more is too many.
pub(crate) struct Limiter([AtomicU64; MAX_LIMIT]);

impl Limiter {
    pub fn new() -> Self {
        Self(core::array::from_fn(|_| AtomicU64::new(0)))
    }

    /// May the guest, in its life number `life`, be started again at `now`? If so, that is noted: call it once a life, in the order of
    /// lives.
    pub fn admits(&self, life: u32, now: u64, rules: &Rules) -> bool {
        // A limit that no checked manifest has is the nearest one that can be.
        let limit = (rules.limit as usize).clamp(1, MAX_LIMIT);
        // Life n ends with restart n, which takes the place of restart n - limit.
        let Some(slot) = self.0.get(life as usize % limit) else { return false };
        let is_full = life as usize > limit;
        let admitted = !is_full || now.saturating_sub(slot.load(Ordering::Relaxed)) >= rules.interval;
        if admitted {
            slot.store(now, Ordering::Relaxed);
        }
        admitted
    }
}
