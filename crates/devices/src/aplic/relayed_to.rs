//! Where the board's APLIC sends a relayed source, kept while it is [redirected](super::Board::redirect).

use super::layout::{GUEST_INDEX, GUEST_SHIFT};
use crate::atomic::{AtomicU32, Ordering};

/// A value of the board's `target`, of a hart's own file; 0 of a source that has never been redirected.
#[derive(Debug, Default)]
pub struct RelayedTo(AtomicU32);

impl RelayedTo {
    /// A source is about to be redirected, and goes where `target` says. If that is a guest interrupt file already, it comes from before that: the source was on its way when it
    /// was redirected, has come, and is redirected once more by who has it in hand, while another core that recalls it hasn't done so yet.
    #[inline]
    pub fn note(&self, target: u32) {
        if target >> GUEST_SHIFT & GUEST_INDEX == 0 {
            // Whoever reads it has found in the guest's controller that the source is redirected, which is noted there behind this, with release.
            self.0.store(target, Ordering::Relaxed);
        }
    }

    /// Where a source goes that is recalled.
    #[inline]
    pub fn get(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}
