//! Remote fences of what the hypervisor keeps of a vCPU's translations itself: of an address space or of all, in the word that is there for each vCPU; and
//! those of single pages in a few words beside it, so that no more is forgotten than was fenced.
use super::{Fence, Fences};
use crate::atomic::{AtomicU64, Ordering};

/// Pages of one address space, or of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageFence {
    /// Of the first page: its number, as a guest's address of 48 bits has it.
    number: u64,
    /// How many there are behind it.
    more: u64,
    asid: Option<u16>,
}

const PAGE_SHIFT: u32 = 12;
/// Bits of an address that are told apart: those of Sv48, the greatest format that shadows have.
const ADDRESS_BITS: u32 = 48;
const NUMBER_BITS: u32 = ADDRESS_BITS - PAGE_SHIFT;
const MORE_BITS: u32 = 4;
/// In a word of memory: something is there, and it is of one address space alone.
const IS_ONE: u64 = 1 << 63;
const HAS_ASID: u64 = 1 << 62;
const ASID_SHIFT: u32 = NUMBER_BITS + MORE_BITS;

const _: () = assert!(ASID_SHIFT + u16::BITS <= 62);

impl PageFence {
    /// Of so many pages from an address on, which is the first one's. `None`: there are none or too many, or not all addresses between are ones of Sv48.
    #[must_use]
    pub const fn new(address: u64, pages: u64, asid: Option<u16>) -> Option<Self> {
        let Some(more) = pages.checked_sub(1) else { return None };
        if more >> MORE_BITS != 0 {
            return None;
        }
        let Some(last) = address.checked_add(more << PAGE_SHIFT) else { return None };
        // Both ends in one half: what is between is, too.
        let is_one = canonical(address) == address && canonical(last) == last && (address ^ last) >> 63 == 0;
        if is_one {
            Some(Self { number: address << UNUSED >> (UNUSED + PAGE_SHIFT), more, asid })
        } else {
            None
        }
    }

    /// The first page's address.
    #[must_use]
    pub const fn address(self) -> u64 {
        canonical(self.number << PAGE_SHIFT)
    }

    /// The address space, if it is one alone. Then what is global isn't meant.
    #[must_use]
    pub const fn asid(self) -> Option<u16> {
        self.asid
    }

    /// The same without the first page. `None`: that was all.
    #[must_use]
    pub const fn rest(self) -> Option<Self> {
        match self.more.checked_sub(1) {
            Some(more) => Some(Self { number: self.number + 1, more, asid: self.asid }),
            None => None,
        }
    }

    const fn word(self) -> u64 {
        let asid = match self.asid {
            Some(asid) => HAS_ASID | (asid as u64) << ASID_SHIFT,
            None => 0,
        };
        IS_ONE | asid | self.more << NUMBER_BITS | self.number
    }

    /// `None`: there is nothing in the word.
    const fn of_word(word: u64) -> Option<Self> {
        const fn low(word: u64, bits: u32) -> u64 {
            word & ((1 << bits) - 1)
        }
        if word & IS_ONE == 0 {
            return None;
        }
        let asid = if word & HAS_ASID != 0 { Some((word >> ASID_SHIFT) as u16) } else { None };
        let (number, more) = (low(word, NUMBER_BITS), low(word >> NUMBER_BITS, MORE_BITS));
        Some(Self { number, more, asid })
    }
}

const UNUSED: u32 = u64::BITS - ADDRESS_BITS;

/// The address of Sv48 that has these low bits.
const fn canonical(address: u64) -> u64 {
    ((address << UNUSED) as i64 >> UNUSED) as u64
}

/// The pages that are to be fenced. Who wants that puts them where nothing is; only the vCPU's owner takes them away, when they are fenced.
pub struct PageFences([AtomicU64; Self::PLACES as usize]);

impl PageFences {
    /// So many at a time. Who finds no place has all of the address space fenced, or all that there is. (In loom's model two senders are to find none.)
    pub const PLACES: u8 = if cfg!(loom) { 1 } else { 8 };

    pub(super) fn new() -> Self {
        Self(core::array::from_fn(|_| AtomicU64::new(0)))
    }

    /// False if there is no place for it.
    fn put(&self, pages: PageFence) -> bool {
        // Release: what was written before is seen by who finds it here, which may be before it is recorded.
        // BOUND: the places.
        self.0.iter().any(|place| {
            place.load(Ordering::Relaxed) == 0
                && place.compare_exchange(0, pages.word(), Ordering::Release, Ordering::Relaxed).is_ok()
        })
    }

    /// What is in a place.
    #[must_use]
    pub fn get(&self, place: u8) -> Option<PageFence> {
        PageFence::of_word(self.0.get(usize::from(place))?.load(Ordering::Acquire))
    }

    /// What was there is fenced, but for this. Called by the vCPU's owner, who has found something there.
    pub fn leave(&self, place: u8, rest: Option<PageFence>) {
        if let Some(place) = self.0.get(usize::from(place)) {
            place.store(rest.map_or(0, PageFence::word), Ordering::Relaxed);
        }
    }

    /// The places where there is something, a bit each.
    #[must_use]
    pub fn taken(&self) -> u32 {
        let mut taken = 0;
        // BOUND: the places.
        for place in 0..Self::PLACES {
            taken |= u32::from(self.get(place).is_some()) << place;
        }
        taken
    }

    /// All that was in [these](Self::taken) is fenced. Called by the vCPU's owner.
    pub fn leave_nothing(&self, taken: u32) {
        // BOUND: the places.
        for place in (0..Self::PLACES).filter(|place| taken >> place & 1 != 0) {
            self.leave(place, None);
        }
    }
}

impl Fences {
    /// Says which pages are to be fenced of what the hypervisor keeps itself. Returns what is to be [recorded](Self::record) behind that.
    #[must_use]
    pub fn note_pages(&self, pages: PageFence) -> Fence {
        if self.pages.put(pages) { Fence::OWN_PAGES } else { Fence::own(pages.asid()) }
    }

    /// The vCPU itself, which isn't in its guest at this moment, wants that before it is again.
    pub fn record_own(&self, what: Fence) {
        self.recorded.fetch_or(what.bits(), Ordering::Relaxed);
    }

    /// Has something been recorded that the hypervisor has to do itself? That takes longer than a fence of the hart.
    #[inline]
    pub fn has_own(&self) -> bool {
        self.recorded.load(Ordering::Relaxed) & !Fence::HART.bits() != 0
    }

    /// Takes that. Of pages it says that there are some.
    #[must_use]
    pub fn take_own(&self) -> Fence {
        Fence::from_bits_retain(self.take_recorded(!Fence::HART))
    }

    /// The pages that [`Fence::OWN_PAGES`] is about.
    pub const fn pages(&self) -> &PageFences {
        &self.pages
    }

    #[inline]
    pub(super) fn take_recorded(&self, what: Fence) -> u32 {
        self.recorded.fetch_and(!what.bits(), Ordering::Acquire) & what.bits()
    }
}
