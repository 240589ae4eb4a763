//! Pages of a guest's memory, and the blocks that they are in.
use crate::Advice;
use crate::atomic::{AtomicU8, AtomicU16, Ordering};

/// What a page is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum State {
    /// Harts do with it as the guest's tables say. No breakpoint is in it.
    Data,
    /// Harts can fetch alone from now on, but may have in their tables what they had before. No breakpoint is in it.
    Emptied,
    /// All harts can fetch alone.
    Text,
    /// They still can do no more, and instructions are put back one by one.
    GivenUp,
    /// All are back, and what harts know of them is forgotten.
    Restored,
}

impl State {
    const fn of(number: u8) -> Self {
        match number {
            1 => Self::Emptied,
            2 => Self::Text,
            3 => Self::GivenUp,
            4 => Self::Restored,
            _ => Self::Data,
        }
    }
}

/// Traps in pages of a block after which they become text, if they never were. One is enough where loom tries out every order.
const FEWEST: u32 = if cfg!(loom) { 1 } else { 32 };
/// The same is doubled so often at most, to 4,096: by way of the firmware these traps take as long as some 3,900 pages take to be filled in again, which is what is lost when text is made or given up.
/// So a guest that rewrites its text all the time still loses no more by that than by its traps, and one that has rewritten all of it once, as a function tracer does, has breakpoints again soon.
const MOST_DOUBLINGS: u8 = 7;
/// Pages that become text at once.
const MOST_WANTED: usize = 32;
/// So many of them are emptied by one trap. In tests, where there are few, steps are to be seen all the same.
const EMPTIED_AT_ONCE: usize = if cfg!(test) { 1 } else { 4 };
/// No page's number.
const NONE: u16 = u16::MAX;

/// States of pages, for all to see without a lock. They are changed under one.
pub(crate) struct Shown {
    /// Of each page, a [`State`].
    states: alloc::boxed::Box<[AtomicU8]>,
    /// Of each block: pages that aren't [`State::Data`].
    texts: alloc::boxed::Box<[AtomicU16]>,
}

impl Shown {
    pub fn new(pages: usize, blocks: usize) -> Self {
        Self {
            // BOUND: only at boot, as below.
            states: (0..pages).map(|_| AtomicU8::new(State::Data as u8)).collect(),
            // BOUND: only at boot.
            texts: (0..blocks).map(|_| AtomicU16::new(0)).collect(),
        }
    }

    pub fn state(&self, page: usize) -> State {
        State::of(self.states.get(page).map_or(0, |state| state.load(Ordering::Acquire)))
    }

    pub fn set(&self, page: usize, block: usize, state: State) {
        let (Some(shown), Some(texts)) = (self.states.get(page), self.texts.get(block)) else { return };
        let before = State::of(shown.swap(state as u8, Ordering::AcqRel));
        // Under the lock, so a load and a store will do. The count is never too small for who looks at the state first.
        let count = texts.load(Ordering::Relaxed);
        match (before == State::Data, state == State::Data) {
            (true, false) => texts.store(count + 1, Ordering::Release),
            (false, true) => texts.store(count.saturating_sub(1), Ordering::Release),
            _ => {}
        }
    }

    /// Is no page of the block anything but data?
    pub fn is_plain(&self, block: usize) -> bool {
        self.texts.get(block).is_none_or(|texts| texts.load(Ordering::Acquire) == 0)
    }

    /// The first page, from one on, that isn't data, among so many.
    pub fn next(&self, from: usize, most: usize) -> Option<usize> {
        // BOUND: `most`.
        (from..self.states.len()).take(most).find(|page| self.state(*page) != State::Data)
    }

    pub fn pages(&self) -> usize {
        self.states.len()
    }
}

/// A block of pages, as large as the largest page that a shadow has of guests' memory.
#[derive(Debug)]
pub(crate) struct Block {
    /// Pages in which traps were, which aren't text.
    wanted: [u16; MOST_WANTED],
    /// So many of these are emptied already. If any are, the others come before anything else.
    taken: u8,
    /// Traps in such pages since the last ones became text.
    traps: u32,
    /// Times that one of its pages was given up.
    given_up: u8,
    /// The harts that have had all others forget, since pages were emptied last: a bit each.
    emptied: u64,
    /// The same since pages were restored last.
    restored: u64,
    /// The page whose instructions are being put back, and how far.
    pub giving: u16,
    pub next: usize,
}

impl Block {
    pub const NEW: Self = Self {
        wanted: [NONE; MOST_WANTED],
        taken: 0,
        traps: 0,
        given_up: 0,
        emptied: 0,
        restored: 0,
        giving: NONE,
        next: 0,
    };

    /// One more trap, in one of its pages that is data. Are there enough?
    pub fn counts_enough(&mut self, page: u16) -> bool {
        self.traps += 1;
        // BOUND: `MOST_WANTED`.
        if !self.wanted.contains(&page)
            && let Some(place) = self.wanted.iter_mut().find(|place| **place == NONE)
        {
            *place = page;
        }
        self.traps >= FEWEST << self.given_up
    }

    /// Is a batch of pages begun, of which some aren't emptied yet?
    pub const fn is_emptying(&self) -> bool {
        self.taken != 0
    }

    /// The next ones of the pages in which these traps were: they are to be emptied. When none is left, traps are counted from 0 on again.
    pub fn take_wanted(&mut self) -> impl Iterator<Item = u16> + use<> {
        if self.taken == 0 {
            // Who has had all forget for the last batch has not for this one.
            self.emptied = 0;
        }
        let mut next = [NONE; EMPTIED_AT_ONCE];
        let mut rest = self.wanted.iter_mut().skip(usize::from(self.taken));
        // BOUND: `EMPTIED_AT_ONCE`.
        for (page, wanted) in next.iter_mut().zip(rest.by_ref()) {
            *page = core::mem::replace(wanted, NONE);
        }
        if rest.next().is_none_or(|page| *page == NONE) {
            (self.taken, self.traps) = (0, 0);
        } else {
            self.taken += EMPTIED_AT_ONCE as u8;
        }
        next.into_iter().filter(|page| *page != NONE)
    }

    /// Pages have been emptied: this hart has all others forget.
    pub fn ask_emptied(&mut self, hart: u8) -> Advice {
        self.emptied = bit(hart);
        Advice::Forget
    }

    /// Has none, and can this one?
    pub const fn may_ask_emptied(&self, hart: u8) -> bool {
        self.emptied == 0 && bit(hart) != 0
    }

    /// Has it? As it has come back, all have.
    pub const fn has_asked_emptied(&self, hart: u8) -> bool {
        self.emptied & bit(hart) != 0
    }

    /// A page is restored: nobody has had others forget since.
    pub const fn restore(&mut self) {
        self.restored = 0;
        (self.giving, self.next) = (NONE, 0);
    }

    /// This hart has all others forget what they know of what is restored.
    pub const fn ask_restored(&mut self, hart: u8) {
        self.restored |= bit(hart);
    }

    /// Has it? As it has come back, all have.
    pub const fn has_asked_restored(&self, hart: u8) -> bool {
        self.restored & bit(hart) != 0
    }

    /// A page is data again, and more traps are needed the next time.
    pub const fn give_up(&mut self) {
        self.traps = 0;
        if self.given_up < MOST_DOUBLINGS {
            self.given_up += 1;
        }
    }

    /// Is that page the one whose instructions are put back, or is there none?
    pub const fn begins_or_goes_on(&mut self, page: u16) -> bool {
        if self.giving == NONE {
            self.giving = page;
        }
        self.giving == page
    }
}

/// A hart's bit. Of harts with larger numbers than there are bits, nobody knows what they have asked: they do it again and again.
const fn bit(hart: u8) -> u64 {
    if (hart as u32) < u64::BITS { 1 << hart } else { 0 }
}
