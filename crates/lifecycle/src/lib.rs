//! The lives of a guest: how one ends while its vCPUs are on many cores, and whether another follows.
//!
//! # A life
//!
//! | phase | what happens | who goes on to the next |
//! |---|---|---|
//! | Running | its vCPUs run | the first that has a reason to [stop](Lifecycle::stop) it |
//! | Stopping | each vCPU is brought to rest by the core that has it | the [last at rest](Lifecycle::note_rest) |
//! | Resetting | each vCPU is put back to its reset state by the core that has it; everything else of the guest is put back, and its memory is loaded again, by one core | that core, after the [last one](Lifecycle::all_reset) |
//! | Running | the next life | |
//! | Ended | nothing, for good | |
//!
//! Whether a life is followed by another is decided at the moment that it is stopped, by the guest's [`Rules`].
//!
//! # Why there are two rounds
//! While vCPUs come to rest, those that haven't yet still send interrupts and fences to those that have. When the last one rests nobody
//! sends any more, so what is found from then on is the former life's, and can be thrown away. That is the second round. Both are done by
//! the core that has the vCPU, so that neither needs a lock.
//!
//! # Its harts
//! Within a life the guest stops and starts its harts itself ([`Hart`]). When it has stopped the last one that life is over, too.
//!
//! # How it is checked
//! Property tests compare it with a plain model; `loom` tries out interleavings of the cores, with up to three switches (`src/model.rs`):
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p ainori-lifecycle --lib --release`
#![cfg_attr(not(any(test, loom)), no_std)]
#![deny(unsafe_code)]

mod atomic;
mod hart;
mod limit;
#[cfg(all(test, loom))]
mod model;
mod rules;
#[cfg(all(test, not(loom)))]
mod tests;

use atomic::{AtomicU8, AtomicU32, Ordering};
pub use hart::{Hart, HartState};
use limit::Limiter;
pub use rules::{Cause, MAX_LIMIT, Next, Restart, Rules};

/// Phases, as numbers of an atomic word.
mod phase {
    pub const RUNNING: u8 = 0;
    pub const STOPPING: u8 = 1;
    /// As above, and another life follows.
    pub const STOPPING_TO_RESTART: u8 = 2;
    pub const RESETTING: u8 = 3;
    pub const ENDED: u8 = 4;
}

/// Where a guest is in its life: the words that all cores share.
pub struct Lifecycle {
    phase: AtomicU8,
    /// vCPUs that have not come to rest, or in the phase Resetting, not been reset.
    outstanding: AtomicU32,
    /// Number of the present life, from 1.
    life: AtomicU32,
    vcpus: u32,
    rules: Rules,
    limiter: Limiter,
}

impl Lifecycle {
    /// A guest with so many vCPUs, in its first life.
    #[must_use]
    pub fn new(vcpus: u32, rules: Rules) -> Self {
        Self {
            phase: AtomicU8::new(phase::RUNNING),
            outstanding: AtomicU32::new(vcpus),
            life: AtomicU32::new(1),
            vcpus,
            rules,
            limiter: Limiter::new(),
        }
    }

    /// Number of the present life, from 1. It changes only in [`Self::start`].
    #[must_use]
    pub fn life(&self) -> u32 {
        self.life.load(Ordering::Relaxed)
    }

    /// May its vCPUs run? By now that may have changed.
    #[inline]
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.phase.load(Ordering::Acquire) == phase::RUNNING
    }

    /// There is a reason to end the present life, at time `now`. What comes after it; `None` if somebody else was faster, whose
    /// reason then counts.
    ///
    /// The caller then asks all its vCPUs to come to rest, each of which must be [noted](Self::note_rest) once. Until it does so, none is.
    #[must_use]
    pub fn stop(&self, cause: Cause, now: u64) -> Option<Next> {
        // Acquire: the limiter's words of the former life's end. Until that is `start`ed nobody else gets past this line.
        self.phase
            .compare_exchange(phase::RUNNING, phase::STOPPING, Ordering::Acquire, Ordering::Relaxed)
            .ok()?;
        if !self.rules.wants_restart(cause) {
            return Some(Next::End);
        }
        if !self.limiter.admits(self.life(), now, &self.rules) {
            return Some(Next::GiveUp);
        }
        self.phase.store(phase::STOPPING_TO_RESTART, Ordering::Relaxed);
        Some(Next::Restart)
    }

    /// A vCPU of a stopped guest has come to rest: its core will not enter it again, and has ended whatever it did for it.
    ///
    /// `None` if it wasn't the last one. After the last one, nothing is done for the guest any more, and all that was comes before.
    /// If [`Next::Restart`] follows, the caller has the vCPUs reset, each of which must be [noted](Self::note_reset) once.
    #[must_use]
    pub fn note_rest(&self) -> Option<Next> {
        if self.outstanding.fetch_sub(1, Ordering::AcqRel) != 1 {
            return None;
        }
        if self.phase.load(Ordering::Relaxed) == phase::STOPPING_TO_RESTART {
            self.outstanding.store(self.vcpus, Ordering::Relaxed);
            self.phase.store(phase::RESETTING, Ordering::Release);
            Some(Next::Restart)
        } else {
            self.phase.store(phase::ENDED, Ordering::Release);
            Some(Next::End)
        }
    }

    /// Are its vCPUs being reset, or are they? Then all of them are at rest, and its memory is nobody's.
    #[must_use]
    pub fn is_resetting(&self) -> bool {
        self.phase.load(Ordering::Acquire) == phase::RESETTING
    }

    /// A vCPU is as after reset, by the core that has it. True if it was the last one.
    #[must_use]
    pub fn note_reset(&self) -> bool {
        self.outstanding.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Have all vCPUs been reset?
    #[must_use]
    pub fn all_reset(&self) -> bool {
        self.is_resetting() && self.outstanding.load(Ordering::Acquire) == 0
    }

    /// Everything of the guest is as after reset, and its program is loaded: the next life begins. Returns its number. The caller then
    /// starts the first vCPU.
    ///
    /// Called once after [`Self::all_reset`], by the core that has done it.
    pub fn start(&self) -> u32 {
        let life = self.life().saturating_add(1);
        self.life.store(life, Ordering::Relaxed);
        self.outstanding.store(self.vcpus, Ordering::Relaxed);
        self.phase.store(phase::RUNNING, Ordering::Release);
        life
    }
}
