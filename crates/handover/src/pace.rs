//! What is to be done once in a while only, whichever core does it.
use crate::atomic::{AtomicU64, Ordering};

/// Turns, one behind the other (a rate limit). Who wants one has the next that nobody has taken: so nobody is passed over, however often others want one.
///
/// Times are in any unit, on a clock that all cores share. All that is in the word is a time, and nobody takes a turn to tell others of something: each change is atomic by
/// itself, and relaxed.
#[derive(Default)]
pub struct Pace(AtomicU64);

impl Pace {
    /// Nobody has a turn.
    #[must_use]
    pub fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Takes a turn of this length. When it begins: `now`, if all that were taken before are over.
    #[must_use]
    pub fn take_turn(&self, now: u64, length: u64) -> u64 {
        let mut free = self.0.load(Ordering::Relaxed);
        // BOUND: one round; each more is a turn that another core has taken in between.
        loop {
            let turn = free.max(now);
            match self.0.compare_exchange(free, turn + length, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return turn,
                Err(later) => free = later,
            }
        }
    }

    /// Is it too late for a turn, which has begun by `now`? In its second half it would come too near to the next one.
    #[must_use]
    pub fn is_missed(turn: u64, now: u64, length: u64) -> bool {
        now.saturating_sub(turn) > length / 2
    }
}
