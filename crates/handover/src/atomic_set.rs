//! A set of vCPUs that several cores change.
use ainori_limits::VCPU_WORDS;
use ainori_sched::VcpuSet;

use crate::atomic::{AtomicU64, Ordering};

/// A [`VcpuSet`] to which anybody adds, and from which all members are taken at once. Each word is changed by itself: what is added meanwhile is taken now
/// or the next time.
pub struct AtomicVcpuSet([AtomicU64; VCPU_WORDS]);

impl AtomicVcpuSet {
    /// Nobody is in it.
    #[must_use]
    pub fn new() -> Self {
        Self(core::array::from_fn(|_| AtomicU64::new(0)))
    }

    /// Is nobody in it at this moment? A load of each word.
    #[inline]
    pub fn is_empty(&self) -> bool {
        // BOUND: the words of a set, 2 instructions each.
        self.0.iter().all(|word| word.load(Ordering::Relaxed) == 0)
    }

    /// Adds these. What the caller wrote before is visible to who takes them.
    #[inline]
    pub fn insert(&self, some: VcpuSet) {
        // BOUND: the words of a set, 3 instructions each.
        for (word, bits) in self.0.iter().zip(some.words()) {
            if bits != 0 {
                word.fetch_or(bits, Ordering::Release);
            }
        }
    }

    /// Takes all that are in it.
    #[inline]
    pub fn take(&self) -> VcpuSet {
        let mut words = [0; VCPU_WORDS];
        // BOUND: the words of a set, 3 instructions each.
        for (taken, word) in words.iter_mut().zip(&self.0) {
            *taken = word.swap(0, Ordering::Acquire);
        }
        VcpuSet::from_words(words)
    }
}

impl Default for AtomicVcpuSet {
    fn default() -> Self {
        Self::new()
    }
}
