//! What a core must not be disturbed for.
use crate::atomic::{AtomicU8, Ordering, fence};

/// The level that a core publishes of what it runs: who wants something of a lesser vCPU there makes its request, and
/// keeps quiet.
///
/// Only the core itself changes it.
pub struct PublishedThreshold(AtomicU8);

impl PublishedThreshold {
    /// A threshold with this level.
    #[must_use]
    pub fn new(level: u8) -> Self {
        Self(AtomicU8::new(level))
    }

    /// The level. An asker makes its [request](crate::RequestWord::request) first.
    #[inline]
    pub fn level(&self) -> u8 {
        self.0.load(Ordering::Relaxed)
    }

    /// Publishes a level that hides more than before. Who sees it too late disturbs once more, no harm.
    #[inline]
    pub fn raise(&self, level: u8) {
        self.0.store(level, Ordering::Relaxed);
    }

    /// Publishes a level that hides less than before. Then the core looks at the requests of its vCPUs: an asker who has kept
    /// quiet is seen there.
    #[inline]
    pub fn lower(&self, level: u8) {
        self.0.store(level, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }
}
