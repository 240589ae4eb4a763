//! Recognising a vCPU that spins from a look at its registers now and then, where its instructions don't say so.
//!
//! A program that comes back to a state of all its registers that it had before goes on as it did then, until somebody else changes
//! what it reads from memory: it spins. A loop that works never comes back: it advances a pointer or a counter, and one that waits for
//! a point in time has the time in a register. Li, Lebeck and Sorin ("Spin Detection Hardware for Improved Management of
//! Multithreaded Systems", 2006) compare the state at each backward branch. Here there are only samples, taken at an alarm, so the
//! same state has to be *met* twice; of the few states that a spin loop has, one soon is. What a spinning vCPU is then
//! to do is from Wells, Chakraborty and Sohi ("Hardware Support for Spin Management in Overcommitted Virtual Machines",
//! 2006): let others run.
//!
//! A program that repeats a system call may come by in the same state as well. It is told from a loop by where it was in between:
//! all samples must be from one small piece of code. A mistake costs a yield, or a migration; a spinner that is missed wastes a
//! core until its time is over.

use crate::Time;

/// How far from where it was met first an instruction of the same loop may be, in bytes.
const WINDOW: u64 = 256;

/// States that are remembered. A loop with no more than these is found with one sample more.
const STATES: usize = 8;

/// Watches a vCPU, and says how often it wants to look at it.
#[derive(Debug, Clone)]
pub struct SpinDetector {
    /// Its pauses ([`FINE_US`](Self::FINE_US) and so on), in ticks.
    fine: Time,
    coarse: Time,
    rest: Time,
    /// How soon to look again.
    pause: Time,
    /// Where the vCPU was met first since it came into this window; `None` if it has not been met in its kernel yet.
    entry: Option<u64>,
    /// Its states there, a ring of which `met` places have been written.
    states: [u64; STATES],
    met: usize,
}

impl SpinDetector {
    /// Pause before the next look at a vCPU that may be spinning, in microseconds. Most locks are held for less.
    pub const FINE_US: u64 = 10;
    /// Longest pause before the next look at one that works, in microseconds.
    pub const COARSE_US: u64 = 100;
    /// Pause while nobody waits for whom it could be spinning, in microseconds: what it takes to notice that somebody does.
    pub const REST_US: u64 = 1000;

    /// A detector that has seen nothing yet.
    #[must_use]
    pub fn new(timebase_hz: u64) -> Self {
        let ticks = |us: u64| ainori_limits::ticks(us, timebase_hz);
        let (fine, coarse, rest) = (ticks(Self::FINE_US), ticks(Self::COARSE_US), ticks(Self::REST_US));
        Self { fine, coarse, rest, pause: fine, entry: None, states: [0; STATES], met: 0 }
    }

    /// Forgets what it has seen: a vCPU has got the core. `soon`: it may well spin, so a short pause comes first.
    pub const fn restart(&mut self, soon: bool) {
        self.pause = if soon { self.fine } else { self.coarse };
        self.entry = None;
        self.met = 0;
    }

    /// Nobody waits for whom the vCPU could be spinning. Returns in how many ticks to see whether that has changed.
    #[must_use]
    pub const fn rest(&mut self) -> Time {
        self.restart(true);
        at_least_one(self.rest)
    }

    /// The vCPU is in user mode, where nothing is looked for.
    pub const fn works(&mut self) {
        self.entry = None;
        self.met = 0;
        self.lengthen_pause();
    }

    /// The vCPU is in its kernel, at the instruction `pc`; `state` makes one number of that and all registers. Does it spin?
    #[must_use]
    pub fn sample(&mut self, pc: u64, state: u64) -> bool {
        let stays = self.entry.is_some_and(|entry| entry.abs_diff(pc) < WINDOW);
        let met = self.states.get(..self.met.min(STATES)).unwrap_or_default();
        // BOUND: 8 states.
        if stays && met.contains(&state) {
            self.restart(true);
            return true;
        }
        if !stays {
            self.works();
            self.entry = Some(pc);
        } else if self.met < STATES {
            self.pause = self.fine;
        } else {
            // A long loop that works, such as one that clears a large page.
            self.lengthen_pause();
        }
        if let Some(place) = self.states.get_mut(self.met % STATES) {
            *place = state;
        }
        self.met += 1;
        false
    }

    /// In how many ticks to look again, 1 at least.
    #[must_use]
    pub const fn pause(&self) -> Time {
        at_least_one(self.pause)
    }

    const fn lengthen_pause(&mut self) {
        let doubled = self.pause.saturating_mul(2);
        self.pause = if doubled < self.coarse { doubled } else { self.coarse };
    }
}

/// A slow clock makes no pause of nothing.
const fn at_least_one(pause: Time) -> Time {
    if pause == 0 { 1 } else { pause }
}
