//! What others want of a vCPU.
use crate::atomic::{AtomicU32, Ordering, fence};

/// One bit for each kind of request. A request is a mere bit: made twice before somebody looks, it is one.
#[derive(Default)]
pub struct RequestWord(AtomicU32);

impl RequestWord {
    /// Nothing is wanted.
    #[must_use]
    pub fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Notes what is wanted. All that the caller wrote before is visible to whoever [takes](Self::take) it.
    ///
    /// Then the caller looks where the vCPU is, and tells that core.
    #[inline]
    pub fn request(&self, bits: u32) {
        self.0.fetch_or(bits, Ordering::Release);
        fence(Ordering::SeqCst);
    }

    /// Is anything wanted? One load.
    #[inline]
    pub fn any(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    /// All that is wanted at this moment: for the asker, who must decide whom to tell.
    #[inline]
    #[must_use]
    pub fn wanted(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// Takes all that is wanted if that is nothing but these, or a part of them. Only who has the vCPU calls this.
    #[inline]
    pub fn take_if_only(&self, bits: u32) -> Option<u32> {
        let wanted = self.wanted();
        let taken = wanted & !bits == 0
            && self.0.compare_exchange(wanted, 0, Ordering::Acquire, Ordering::Relaxed).is_ok();
        taken.then_some(wanted)
    }

    /// Takes all that is wanted. Only who has the vCPU calls this.
    #[inline]
    pub fn take(&self) -> u32 {
        self.0.swap(0, Ordering::Acquire)
    }
}
