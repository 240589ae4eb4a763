//! Sets of small numbers: of address spaces, and of places in the global tree.

/// Most address spaces of a shadow.
pub(crate) const MOST: usize = u64::BITS as usize;

/// A set of numbers below [`MOST`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Set(u64);

impl Set {
    pub const EMPTY: Self = Self(0);
    pub const ALL: Self = Self(!0);

    /// All below a number, at most [`MOST`].
    pub const fn below(number: usize) -> Self {
        Self(if number < MOST { (1 << number) - 1 } else { !0 })
    }

    pub const fn of(number: usize) -> Self {
        Self(1 << number)
    }

    pub const fn contains(self, number: usize) -> bool {
        self.0 >> number & 1 != 0
    }

    pub const fn insert(&mut self, number: usize) {
        self.0 |= 1 << number;
    }

    pub const fn remove(&mut self, number: usize) {
        self.0 &= !(1 << number);
    }

    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub const fn minus(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    pub const fn without(self, number: usize) -> Self {
        Self(self.0 & !(1 << number))
    }
}

impl Iterator for Set {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let lowest = (self.0 != 0).then(|| self.0.trailing_zeros() as usize)?;
        self.0 &= self.0 - 1;
        Some(lowest)
    }
}
