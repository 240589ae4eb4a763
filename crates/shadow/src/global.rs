//! What is in all address spaces, by the guest's word.
#![expect(clippy::indexing_slicing, reason = "no remainder is too large")]
use crate::format::{ENTRIES, Format};
use crate::set::Set;
use crate::slots::Slots;
use crate::tree::Tree;

/// Entries of its root that address spaces can have copies of. Linux's kernel has five or six.
const MOST_TOPS: usize = u16::BITS as usize;

/// The tree of what is global.
pub(crate) struct Global {
    /// `None`: nothing is.
    pub format: Option<Format>,
    pub tree: Tree,
    /// The entries of its root that were ever used, by their places here.
    tops: [u16; MOST_TOPS],
    count: usize,
    /// The places of those that were.
    places: [u8; ENTRIES],
    /// The same ones as a set, as most addresses are below none of them.
    used: Slots,
    /// Who has copies of each.
    sharers: [Set; MOST_TOPS],
}

impl Global {
    /// With nothing in it.
    pub const fn new(tree: Tree) -> Self {
        Self {
            format: None,
            tree,
            tops: [0; MOST_TOPS],
            count: 0,
            places: [0; ENTRIES],
            used: Slots::NONE,
            sharers: [Set::EMPTY; MOST_TOPS],
        }
    }

    /// The place of an entry of the root, if it was ever used.
    pub fn place(&self, top: usize) -> Option<usize> {
        if !self.used.contains(top) {
            return None;
        }
        let place = usize::from(*self.places.get(top)?);
        (place < self.count).then_some(place)
    }

    /// Likewise; if it wasn't, it has one from now on. `None`: there is no place left.
    pub fn make_place(&mut self, top: usize) -> Option<usize> {
        if let Some(place) = self.place(top) {
            return Some(place);
        }
        let place = self.count;
        *self.tops.get_mut(place)? = top as u16;
        *self.places.get_mut(top)? = place as u8;
        *self.sharers_mut(place) = Set::EMPTY;
        self.used.insert(top);
        self.count += 1;
        Some(place)
    }

    /// The entry that has a place.
    pub const fn top(&self, place: usize) -> usize {
        self.tops[place % MOST_TOPS] as usize
    }

    /// Who has copies of that one.
    pub const fn sharers(&self, place: usize) -> Set {
        self.sharers[place % MOST_TOPS]
    }

    /// The same, to be changed.
    pub const fn sharers_mut(&mut self, place: usize) -> &mut Set {
        &mut self.sharers[place % MOST_TOPS]
    }

    /// Has no places any more, nor sharers.
    pub const fn forget_places(&mut self) {
        self.format = None;
        self.count = 0;
        self.used = Slots::NONE;
    }
}
