//! Remote fences (SBI RFENCE): what others want of a vCPU's caches, and who waits for it.
use ainori_sched::{VcpuId, VcpuSet};
use bitflags::bitflags;

#[cfg(feature = "shadow")]
mod own;
#[cfg(feature = "shadow")]
mod progress;

#[cfg(feature = "shadow")]
pub use self::own::{PageFence, PageFences};
#[cfg(feature = "shadow")]
pub use self::progress::Progress;
use crate::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use crate::atomic_set::AtomicVcpuSet;

bitflags! {
    /// What a fence is about.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Fence: u32 {
        /// Fetched instructions (FENCE.I).
        const INSTRUCTIONS = 1 << 0;
        /// Address translations (SFENCE.VMA).
        const TRANSLATIONS = 1 << 1;
        /// What the hypervisor keeps of a vCPU's translations itself, wherever it runs.
        #[cfg(feature = "shadow")]
        const OWN = 1 << 2;
        /// The same, of single pages: which ones is [said beside it](Fences::note_pages).
        #[cfg(feature = "shadow")]
        const OWN_PAGES = 1 << 3;
        /// Of which address space ([`Self::own`]).
        #[cfg(feature = "shadow")]
        const OWN_SPACE = 0xffff_fff0;
    }
}

#[cfg(feature = "shadow")]
impl Fence {
    /// Bits of an ASID that are recorded. Guests count their ASIDs from below.
    const ASID_BITS: u32 = 14;
    const ASID_SHIFT: u32 = 4;
    const ASID_MASK: u32 = (1 << Self::ASID_BITS) - 1;

    /// [`Self::OWN`] of an address space, or of all. Each bit of the ASID stands in two places, there once as it isn't: two different ones in one word leave both of some bit, which is none.
    pub const fn own(asid: Option<u16>) -> Self {
        let which = match asid {
            Some(asid) if asid as u32 <= Self::ASID_MASK => {
                (asid as u32) << Self::ASID_SHIFT
                    | (!(asid as u32) & Self::ASID_MASK) << (Self::ASID_SHIFT + Self::ASID_BITS)
            }
            _ => Self::OWN_SPACE.bits(),
        };
        Self::from_bits_retain(Self::OWN.bits() | which)
    }

    /// The address space that [`Self::OWN`] is of, if it is a single one.
    pub const fn own_asid(self) -> Option<u16> {
        let asid = self.bits() >> Self::ASID_SHIFT & Self::ASID_MASK;
        let inverse = self.bits() >> (Self::ASID_SHIFT + Self::ASID_BITS);
        if asid ^ inverse == Self::ASID_MASK { Some(asid as u16) } else { None }
    }
}

impl Fence {
    /// All that a hart may have cached of a vCPU: what [`Fences::take`] takes.
    pub const HART: Self = Self::INSTRUCTIONS.union(Self::TRANSLATIONS);
}

/// Whether a fence's sender has to wait.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    /// The vCPU isn't running: it will see the fence before it runs.
    ForLater,
    /// The vCPU is running: its owner must be told, and will answer.
    Awaited,
}

/// Remote fences of one vCPU.
///
/// A fence for a vCPU that isn't running need not be carried out now, only before it runs again: so it is recorded
/// here and its sender goes on. Only for a running one the sender has to wait, until its core answers: out of the guest, with the
/// fence to carry out before it goes on.
pub struct Fences {
    present: AtomicBool,
    /// Bits of [`Fence`]. That some translations are out of date is recorded as "all are": it costs a vCPU
    /// refills, never correctness, and takes one bit however many fences come.
    recorded: AtomicU32,
    /// The vCPUs that wait.
    waiting: AtomicVcpuSet,
    /// Of [`Fence::OWN_PAGES`].
    #[cfg(feature = "shadow")]
    pages: PageFences,
}

impl Fences {
    /// Those of a vCPU that isn't running.
    #[must_use]
    pub fn new() -> Self {
        Self {
            present: AtomicBool::new(false),
            recorded: AtomicU32::new(0),
            waiting: AtomicVcpuSet::new(),
            #[cfg(feature = "shadow")]
            pages: PageFences::new(),
        }
    }

    /// Records a fence that `sender` wants. What the sender wrote before is visible to the vCPU after the fence.
    ///
    /// If it is [`Recorded::Awaited`], one more of the sender's `answers` is due.
    pub fn record(&self, what: Fence, sender: VcpuId, answers: &Answers) -> Recorded {
        self.recorded.fetch_or(what.bits(), Ordering::Release);
        fence(Ordering::SeqCst);
        // Acquire: the sender goes on only after what the vCPU did before it departed.
        if !self.present.load(Ordering::Acquire) {
            return Recorded::ForLater;
        }
        answers.expect_one();
        self.waiting.insert(VcpuSet::of(sender));
        Recorded::Awaited
    }

    /// The vCPU comes from another core, or its guest's memory has been loaded anew: whatever this hart has cached of it may be out of date. Called by
    /// its owner.
    pub fn distrust_caches(&self) {
        self.recorded.fetch_or(Fence::HART.bits(), Ordering::Relaxed);
    }

    /// The vCPU is about to run on this core. Then [`Self::take`] tells what to do first.
    #[inline]
    pub fn arrive(&self) {
        self.present.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// The vCPU doesn't run any more. Who has found it present still waits to be answered ([`Self::take_waiting`]).
    #[inline]
    pub fn depart(&self) {
        self.present.store(false, Ordering::Release);
    }

    /// Takes what has been recorded of what a hart caches. Called whenever the vCPU is about to be entered by a decision of the scheduler; a trap may return to it without, unless
    /// somebody has been answered meanwhile.
    #[inline]
    pub fn take(&self) -> Fence {
        // Mostly there is nothing, and a load is cheaper than a swap.
        let bits =
            if self.recorded.load(Ordering::Relaxed) == 0 { 0 } else { self.take_recorded(Fence::HART) };
        Fence::from_bits_truncate(bits)
    }

    /// Takes all: nothing else than this is ever recorded.
    #[cfg(not(feature = "shadow"))]
    #[inline]
    fn take_recorded(&self, _: Fence) -> u32 {
        self.recorded.swap(0, Ordering::Acquire)
    }

    /// Takes the vCPUs that wait; they must now be [answered](Answers::answer).
    ///
    /// Called by the core that has the vCPU, which so isn't in its guest at this moment: what is recorded will be taken before it is. (To have found it
    /// [parked](crate::ParkingSlot::is_parked) isn't enough: somebody may claim it, and run it, before those who wait are taken.)
    #[inline]
    pub fn take_waiting(&self) -> VcpuSet {
        // Mostly there is nobody, and a load is cheaper than a swap.
        if self.waiting.is_empty() { VcpuSet::EMPTY } else { self.waiting.take() }
    }

    /// The same for a core that has not the vCPU: none if it is in its guest, or may be.
    ///
    /// In that case they may have been missing for a moment, in which the vCPU's owner has looked for them: it must be told once more.
    pub fn take_waiting_if_absent(&self) -> Option<VcpuSet> {
        // Acquire: what they have recorded comes before the look at `present`.
        let waiting = self.waiting.take();
        fence(Ordering::SeqCst);
        if self.present.load(Ordering::Acquire) {
            self.waiting.insert(waiting);
            return None;
        }
        Some(waiting)
    }
}

impl Default for Fences {
    fn default() -> Self {
        Self::new()
    }
}

/// How many answers to its fences a vCPU still waits for.
///
/// While it asks, one of the count is its own, so that early answers don't end the wait before all are asked.
#[derive(Default)]
pub struct Answers(AtomicU32);

impl Answers {
    /// No answer is awaited.
    #[must_use]
    pub fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// The vCPU begins to ask. It ends with an [answer](Self::answer) to itself.
    pub fn begin(&self) {
        self.0.store(1, Ordering::Relaxed);
    }

    /// It is about to ask one more vCPU.
    pub(crate) fn expect_one(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Are there none that it waits for, and doesn't it ask?
    #[must_use]
    pub fn all_given(&self) -> bool {
        self.0.load(Ordering::Acquire) == 0
    }

    /// One answer. True if it was the last: then all fences are done, and whoever has found out lets the vCPU go on.
    #[must_use]
    pub fn answer(&self) -> bool {
        self.0.fetch_sub(1, Ordering::AcqRel) == 1
    }
}
