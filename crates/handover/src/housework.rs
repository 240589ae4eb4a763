//! What any core may ask the housekeeping core to do.
use crate::atomic::{AtomicU32, Ordering, fence};

/// One bit for each kind of work that is to be done.
///
/// A bit that is set has been seen, or will be without anybody's doing more: whoever set it has told the housekeeping core, or has
/// kept quiet as that core's [threshold](crate::PublishedThreshold) hides it, and is seen when that core lowers its threshold. So who finds it set need not
/// tell once more.
#[derive(Default)]
pub struct PublishedHousework(AtomicU32);

impl PublishedHousework {
    /// Nothing is to be done.
    #[must_use]
    pub fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Asks for kinds of work. All that the caller wrote before is visible to the core that then [takes](Self::take) them.
    ///
    /// True if one of them had not been asked for: the caller then looks at the threshold of the housekeeping core, and tells that core.
    #[inline]
    #[must_use]
    pub fn ask(&self, kinds: u32) -> bool {
        let before = self.0.fetch_or(kinds, Ordering::Release);
        fence(Ordering::SeqCst);
        before & kinds != kinds
    }

    /// The kinds of work that are asked for. One load.
    #[inline]
    pub fn asked(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// The housekeeping core is about to look at work of these kinds: what comes from now on is asked for anew.
    #[inline]
    pub fn take(&self, kinds: u32) {
        self.0.fetch_and(!kinds, Ordering::Acquire);
    }
}
