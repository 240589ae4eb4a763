//! Things by their numbers.
use core::ops::{Index, IndexMut};

/// As many as whoever makes it has room for. A number that is none's has something that is nobody's: so no number can lead to a panic.
pub(crate) struct Numbered<'a, T> {
    all: &'a mut [T],
    nobodys: T,
}

impl<'a, T> Numbered<'a, T> {
    pub const fn new(all: &'a mut [T], nobodys: T) -> Self {
        Self { all, nobodys }
    }

    pub const fn len(&self) -> usize {
        self.all.len()
    }

    /// All, in the order of their numbers.
    pub fn iter(&self) -> core::slice::Iter<'_, T> {
        self.all.iter()
    }
}

impl<T> Index<usize> for Numbered<'_, T> {
    type Output = T;

    #[inline]
    fn index(&self, number: usize) -> &T {
        self.all.get(number).unwrap_or(&self.nobodys)
    }
}

impl<T> IndexMut<usize> for Numbered<'_, T> {
    #[inline]
    fn index_mut(&mut self, number: usize) -> &mut T {
        self.all.get_mut(number).unwrap_or(&mut self.nobodys)
    }
}
