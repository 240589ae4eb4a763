//! At most one vCPU of a guest waits on each core, or runs there (balance scheduling: Sukwong and Kim, "Is Co-scheduling Too Expensive for
//! SMP VMs?", EuroSys 2011; SPUMONE thesis, 2.2.2).
use crate::atomic::{AtomicU64, Ordering};

/// The seats that a guest's vCPUs have, one for each core: a bit is set if somebody has it.
#[derive(Default)]
pub struct Seats(AtomicU64);

/// The seat of a vCPU. Changed only by the core that has the vCPU.
#[derive(Default)]
pub struct Seat(AtomicU64);

impl Seats {
    /// Nobody has one.
    #[must_use]
    pub fn new() -> Self {
        Self(AtomicU64::new(0))
    }
}

impl Seat {
    /// None.
    #[must_use]
    pub fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Takes the seat at `core` (below 64) and gives back the one that it has had. False if another vCPU of the guest has that: then this one keeps
    /// its own.
    #[inline]
    pub fn take(&self, seats: &Seats, core: u32) -> bool {
        let (wanted, own) = (1 << core, self.0.load(Ordering::Relaxed));
        if own == wanted {
            return true;
        }
        if seats.0.fetch_or(wanted, Ordering::AcqRel) & wanted != 0 {
            return false;
        }
        self.0.store(wanted, Ordering::Relaxed);
        seats.0.fetch_and(!own, Ordering::Release);
        true
    }

    /// Gives its seat back, if it has one.
    #[inline]
    pub fn leave(&self, seats: &Seats) {
        let own = self.0.load(Ordering::Relaxed);
        if own != 0 {
            self.0.store(0, Ordering::Relaxed);
            seats.0.fetch_and(!own, Ordering::Release);
        }
    }

    /// The cores where it could have a seat, a bit each: those where nobody else of the guest has one. By now that may have changed.
    #[inline]
    pub fn free(&self, seats: &Seats) -> u64 {
        !seats.0.load(Ordering::Relaxed) | self.0.load(Ordering::Relaxed)
    }
}
