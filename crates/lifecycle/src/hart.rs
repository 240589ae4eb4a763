//! A guest's hart in the states of the SBI's hart state management (SBI 2.0, chapter 9).
use crate::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// A state, with the number that the specification gives it (chapter 9, "HSM Hart States"). A hart that suspends itself is told as started: it waits for an interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum HartState {
    /// Runs, or may.
    Started = 0,
    /// Never ran, or stopped itself.
    Stopped = 1,
    /// Somebody has asked for its start.
    StartPending = 2,
}

/// The state of one hart, and where it starts: words that all cores share.
///
/// Other harts of the guest only [ask](Self::ask_start) for its start. All else does the core that has its vCPU; or, while no core enters any vCPU of
/// the guest, the one that starts the guest.
pub struct Hart {
    state: AtomicU32,
    address: AtomicU64,
    opaque: AtomicU64,
}

impl Hart {
    /// A stopped hart.
    #[must_use]
    pub fn new() -> Self {
        Self {
            state: AtomicU32::new(HartState::Stopped as u32),
            address: AtomicU64::new(0),
            opaque: AtomicU64::new(0),
        }
    }

    /// Its state. By now that may have changed.
    #[inline]
    #[must_use]
    pub fn state(&self) -> HartState {
        match self.state.load(Ordering::Acquire) {
            0 => HartState::Started,
            1 => HartState::Stopped,
            _ => HartState::StartPending,
        }
    }

    /// Asks for its start at a guest-physical `address`, with `opaque` in `a1`. False if it isn't stopped. The caller then tells the core that has it.
    #[must_use]
    pub fn ask_start(&self, address: u64, opaque: u64) -> bool {
        let (stopped, pending) = (HartState::Stopped as u32, HartState::StartPending as u32);
        let is_stopped =
            self.state.compare_exchange(stopped, pending, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        if is_stopped {
            // Who asks the core to start it releases these words with the request.
            self.address.store(address, Ordering::Relaxed);
            self.opaque.store(opaque, Ordering::Relaxed);
        }
        is_stopped
    }

    /// The same for the hart with which a life begins. Whoever tells its core releases that.
    pub fn prepare_start(&self, address: u64, opaque: u64) {
        self.state.store(HartState::StartPending as u32, Ordering::Relaxed);
        self.address.store(address, Ordering::Relaxed);
        self.opaque.store(opaque, Ordering::Relaxed);
    }

    /// Where it is to start, and what it finds in `a1`: for the core that has been asked to start it.
    #[must_use]
    pub fn start_arguments(&self) -> (u64, u64) {
        (self.address.load(Ordering::Relaxed), self.opaque.load(Ordering::Relaxed))
    }

    /// It has started.
    pub fn note_start(&self) {
        self.state.store(HartState::Started as u32, Ordering::Release);
    }

    /// It has stopped, or was put back.
    pub fn note_stop(&self) {
        self.state.store(HartState::Stopped as u32, Ordering::Release);
    }

    /// It stops itself. True if all harts of its guest, itself among them, are stopped by then, so that nobody can start one any more: of two that stop at
    /// once at least one is told so, and perhaps both.
    #[must_use]
    pub fn stop_among<'a>(&self, mut all: impl Iterator<Item = &'a Hart>) -> bool {
        self.note_stop();
        // Dekker's rule: each writes its own state, and then reads the others'.
        fence(Ordering::SeqCst);
        // BOUND: the vCPUs of one guest, some 8 instructions each.
        all.all(|hart| hart.state() == HartState::Stopped)
    }
}

impl Default for Hart {
    fn default() -> Self {
        Self::new()
    }
}
