//! A region of a guest's memory.
use crate::Advice;

/// What a region is.
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

/// Traps in a region after which it becomes text, if it never was.
const FEWEST: u32 = 32;
/// The same is doubled so often at most.
const MOST_DOUBLINGS: u8 = 16;

#[derive(Debug)]
pub(crate) struct Region {
    pub state: State,
    /// The harts that have had all others forget, since it is what it is: a bit each.
    asked: u64,
    /// Times that it was given up.
    given_up: u8,
    /// Traps since.
    traps: u32,
    /// How far its instructions are put back.
    pub next: usize,
}

impl Region {
    pub const DATA: Self = Self { state: State::Data, asked: 0, given_up: 0, traps: 0, next: 0 };

    /// It is that from now on.
    pub const fn enter(&mut self, state: State) {
        self.state = state;
        self.asked = 0;
    }

    /// This hart has all others forget. Of harts with larger numbers than there are bits, nobody knows it: they have it done again and again.
    pub fn ask(&mut self, hart: u8) -> Advice {
        self.asked |= 1_u64.checked_shl(hart.into()).unwrap_or(0);
        Advice::Forget
    }

    /// Has it? As it has come back, all have.
    pub fn has_asked(&self, hart: u8) -> bool {
        self.asked & 1_u64.checked_shl(hart.into()).unwrap_or(0) != 0
    }

    /// One more trap. Are there enough?
    pub const fn counts_enough(&mut self) -> bool {
        self.traps += 1;
        self.traps >= FEWEST << self.given_up
    }

    /// It is data again, and more traps are needed the next time.
    pub const fn give_up(&mut self) {
        (self.traps, self.next) = (0, 0);
        if self.given_up < MOST_DOUBLINGS {
            self.given_up += 1;
        }
    }
}
