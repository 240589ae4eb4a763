//! What the scheduler knows of a vCPU: its number, its class, its state; and sets of them.
#![expect(
    clippy::indexing_slicing,
    reason = "no number of a vCPU is in a word that isn't there, and loops end with the words"
)]

use ainori_limits::bits::lowest_bit;
use ainori_limits::{VCPU_SLOTS, VCPU_WORDS};

/// The number of a vCPU, below [`VCPU_SLOTS`]. It is the same on all cores.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct VcpuId(pub u8);

impl VcpuId {
    /// The number as an index that the compiler knows to be below [`VCPU_SLOTS`], so that a table access
    /// needs no check.
    #[inline]
    pub(crate) const fn index(self) -> usize {
        debug_assert!((self.0 as usize) < VCPU_SLOTS);
        self.0 as usize % VCPU_SLOTS
    }

    /// Which word of a set its bit is in.
    #[inline]
    const fn word(self) -> usize {
        self.index() / u64::BITS as usize
    }

    #[inline]
    const fn bit(self) -> u64 {
        1 << (self.0 as u32 % u64::BITS)
    }
}

/// What a policy may know of a vCPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Class {
    /// Fixed priority, below [`PRIORITIES`](ainori_limits::PRIORITIES); the higher number goes first.
    pub priority: u8,
    /// The guest that the vCPU belongs to.
    pub guest: u8,
}

/// The state of a vCPU on the core that owns it (SPUMONE thesis, 3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Has nothing to do and is not in the run queue. An interrupt wakes it.
    Sleeping,
    /// Could run, and waits for the core.
    Suspended,
    /// Has the core.
    Running,
}

/// A set of vCPUs: a bit for each, in as many words as there can be vCPUs for. Mostly that is one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct VcpuSet([u64; VCPU_WORDS]);

impl VcpuSet {
    /// The set without members.
    pub const EMPTY: Self = Self([0; VCPU_WORDS]);

    /// The set whose only member is `v`.
    #[inline]
    #[must_use]
    pub const fn of(v: VcpuId) -> Self {
        let mut set = Self::EMPTY;
        set.insert(v);
        set
    }

    /// The set whose members are the numbers of the bits that are set: those of the first word, then those of the next.
    #[inline]
    #[must_use]
    pub const fn from_words(words: [u64; VCPU_WORDS]) -> Self {
        Self(words)
    }

    /// Bit `n % 64` of word `n / 64` is set if vCPU `n` is a member.
    #[inline]
    #[must_use]
    pub const fn words(self) -> [u64; VCPU_WORDS] {
        self.0
    }

    /// The set with member `first + n` for each bit `n` that is set. What would be no vCPU's number is left out.
    #[inline]
    #[must_use]
    #[allow(clippy::modulo_one, reason = "a set is one word in the usual build only")]
    pub const fn from_bits_at(bits: u64, first: u8) -> Self {
        let (word, shift) = (first as usize / u64::BITS as usize, first as u32 % u64::BITS);
        let mut set = Self::EMPTY;
        set.0[word % VCPU_WORDS] = bits << shift;
        if shift != 0 && word + 1 < VCPU_WORDS {
            set.0[word + 1] = bits >> (u64::BITS - shift);
        }
        set
    }

    /// Is `v` a member?
    #[inline]
    #[must_use]
    pub const fn contains(self, v: VcpuId) -> bool {
        self.0[v.word()] & v.bit() != 0
    }

    /// Makes `v` a member.
    #[inline]
    pub const fn insert(&mut self, v: VcpuId) {
        self.0[v.word()] |= v.bit();
    }

    /// Makes `v` no member.
    #[inline]
    pub const fn remove(&mut self, v: VcpuId) {
        self.0[v.word()] &= !v.bit();
    }

    /// All members but `v`.
    #[inline]
    #[must_use]
    pub const fn without(mut self, v: VcpuId) -> Self {
        self.remove(v);
        self
    }

    /// Takes out the member with the lowest number.
    #[inline]
    pub const fn pop(&mut self) -> Option<VcpuId> {
        let mut word = 0;
        // BOUND: the words of a set, some 3 instructions each.
        while word < VCPU_WORDS {
            let bits = self.0[word];
            if bits != 0 {
                self.0[word] = bits & (bits - 1);
                return Some(VcpuId((word as u32 * u64::BITS + lowest_bit(bits)) as u8));
            }
            word += 1;
        }
        None
    }

    /// Takes out the first member from number `first` on; if there is none, the one with the lowest number.
    #[inline]
    pub const fn pop_from(&mut self, first: u8) -> Option<VcpuId> {
        let mut from = *self;
        let mut word = 0;
        // BOUND: the words of a set, some 7 instructions each.
        while word < VCPU_WORDS {
            let skipped = (first as u32).saturating_sub(word as u32 * u64::BITS);
            from.0[word] = if skipped < u64::BITS { from.0[word] >> skipped << skipped } else { 0 };
            word += 1;
        }
        let Some(id) = from.pop() else { return self.pop() };
        self.remove(id);
        Some(id)
    }

    /// Its `N` members with the lowest numbers, or all, if it has no more.
    #[inline]
    #[must_use]
    pub const fn lowest<const N: usize>(self) -> Self {
        let mut others = self;
        let mut left = N;
        // BOUND: `N`, some 3 instructions for each word of a set.
        while left > 0 {
            others.drop_lowest();
            left -= 1;
        }
        self.minus(others)
    }

    /// The member behind `n` others, the lowest first.
    #[inline]
    pub(crate) fn member(mut self, n: u64) -> Option<VcpuId> {
        // BOUND: `n`, some 3 instructions for each word of a set: the vCPUs of a guest on one core.
        for _ in 0..n {
            self.drop_lowest();
        }
        self.pop()
    }

    #[inline]
    const fn drop_lowest(&mut self) {
        let mut word = 0;
        // BOUND: the words of a set, some 3 instructions each.
        while word < VCPU_WORDS {
            let bits = self.0[word];
            if bits != 0 || word + 1 == VCPU_WORDS {
                self.0[word] = bits & bits.wrapping_sub(1);
                return;
            }
            word += 1;
        }
    }

    /// Has it no members?
    #[inline]
    #[must_use]
    pub const fn is_empty(self) -> bool {
        let mut all = 0;
        let mut word = 0;
        // BOUND: the words of a set, 2 instructions each.
        while word < VCPU_WORDS {
            all |= self.0[word];
            word += 1;
        }
        all == 0
    }

    /// How many members it has.
    #[inline]
    #[must_use]
    pub const fn len(self) -> usize {
        let mut count = 0;
        let mut word = 0;
        // BOUND: the words of a set, some 17 instructions each.
        while word < VCPU_WORDS {
            let bits = self.0[word];
            // Mostly it is one, and a hart without Zbb counts for 12 instructions.
            count += if bits & bits.wrapping_sub(1) == 0 {
                (bits != 0) as usize
            } else {
                bits.count_ones() as usize
            };
            word += 1;
        }
        count
    }

    #[inline]
    const fn minus(mut self, other: Self) -> Self {
        let mut word = 0;
        // BOUND: the words of a set, 2 instructions each.
        while word < VCPU_WORDS {
            self.0[word] &= !other.0[word];
            word += 1;
        }
        self
    }
}

impl core::ops::BitOr for VcpuSet {
    type Output = Self;

    #[inline]
    fn bitor(mut self, other: Self) -> Self {
        self |= other;
        self
    }
}

impl core::ops::BitOrAssign for VcpuSet {
    #[inline]
    fn bitor_assign(&mut self, other: Self) {
        // BOUND: the words of a set, 2 instructions each.
        for word in 0..VCPU_WORDS {
            self.0[word] |= other.0[word];
        }
    }
}

impl core::ops::BitAnd for VcpuSet {
    type Output = Self;

    #[inline]
    fn bitand(mut self, other: Self) -> Self {
        // BOUND: the words of a set, 2 instructions each.
        for word in 0..VCPU_WORDS {
            self.0[word] &= other.0[word];
        }
        self
    }
}

/// The members of the first that aren't members of the second.
impl core::ops::Sub for VcpuSet {
    type Output = Self;

    #[inline]
    fn sub(self, other: Self) -> Self {
        self.minus(other)
    }
}

impl IntoIterator for VcpuSet {
    type Item = VcpuId;
    type IntoIter = VcpuIter;

    #[inline]
    fn into_iter(self) -> VcpuIter {
        VcpuIter(self)
    }
}

impl FromIterator<VcpuId> for VcpuSet {
    fn from_iter<I: IntoIterator<Item = VcpuId>>(members: I) -> Self {
        let mut set = Self::EMPTY;
        // BOUND: what the caller gives; after boot, that is one.
        members.into_iter().for_each(|v| set.insert(v));
        set
    }
}

/// The members of a [`VcpuSet`], lowest number first.
#[derive(Clone, Debug)]
pub struct VcpuIter(VcpuSet);

impl Iterator for VcpuIter {
    type Item = VcpuId;

    #[inline]
    fn next(&mut self) -> Option<VcpuId> {
        self.0.pop()
    }
}
