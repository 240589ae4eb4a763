//! What the scheduler knows of a vCPU: its number, its class, its state; and sets of them.

use ainori_limits::VCPU_SLOTS;

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

    #[inline]
    const fn bit(self) -> u64 {
        1 << self.index()
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

/// A set of vCPUs: one word, a bit for each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct VcpuSet(u64);

const _: () = assert!(VCPU_SLOTS <= u64::BITS as usize);

impl VcpuSet {
    /// The set without members.
    pub const EMPTY: Self = Self(0);

    /// The set whose only member is `v`.
    #[inline]
    #[must_use]
    pub const fn of(v: VcpuId) -> Self {
        Self(v.bit())
    }

    /// The set whose members are the numbers of the bits that are set.
    #[inline]
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Bit `n` is set if vCPU `n` is a member.
    #[inline]
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Is `v` a member?
    #[inline]
    #[must_use]
    pub const fn contains(self, v: VcpuId) -> bool {
        self.0 & v.bit() != 0
    }

    /// Makes `v` a member.
    #[inline]
    pub const fn insert(&mut self, v: VcpuId) {
        self.0 |= v.bit();
    }

    /// Makes `v` no member.
    #[inline]
    pub const fn remove(&mut self, v: VcpuId) {
        self.0 &= !v.bit();
    }

    /// All members but `v`.
    #[inline]
    #[must_use]
    pub const fn without(self, v: VcpuId) -> Self {
        Self(self.0 & !v.bit())
    }

    /// Takes out the member with the lowest number.
    #[inline]
    pub const fn pop(&mut self) -> Option<VcpuId> {
        if self.0 == 0 {
            return None;
        }
        let lowest = self.0.trailing_zeros();
        self.0 &= self.0 - 1;
        Some(VcpuId(lowest as u8))
    }

    /// Takes out the first member from number `first` on; if there is none, the one with the lowest number.
    #[inline]
    pub const fn pop_from(&mut self, first: u8) -> Option<VcpuId> {
        let mut from = Self(if first < 64 { self.0 >> first << first } else { 0 });
        let Some(id) = from.pop() else { return self.pop() };
        self.remove(id);
        Some(id)
    }

    /// Its `N` members with the lowest numbers, or all, if it has no more.
    #[inline]
    #[must_use]
    pub const fn lowest<const N: usize>(self) -> Self {
        let mut others = self.0;
        let mut left = N;
        // BOUND: `N`, 3 instructions each.
        while left > 0 {
            others &= others.wrapping_sub(1);
            left -= 1;
        }
        Self(self.0 & !others)
    }

    /// Has it no members?
    #[inline]
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many members it has.
    #[inline]
    #[must_use]
    pub const fn len(self) -> usize {
        // Mostly it is one, and a hart without Zbb counts for 12 instructions.
        if self.0 & self.0.wrapping_sub(1) == 0 {
            (self.0 != 0) as usize
        } else {
            self.0.count_ones() as usize
        }
    }
}

impl core::ops::BitOr for VcpuSet {
    type Output = Self;

    #[inline]
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl core::ops::BitOrAssign for VcpuSet {
    #[inline]
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl core::ops::BitAnd for VcpuSet {
    type Output = Self;

    #[inline]
    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

/// The members of the first that aren't members of the second.
impl core::ops::Sub for VcpuSet {
    type Output = Self;

    #[inline]
    fn sub(self, other: Self) -> Self {
        Self(self.0 & !other.0)
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
