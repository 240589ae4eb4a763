//! Co-scheduling: the vCPUs of a guest get their cores at the same time (Ousterhout's gangs; SPUMONE thesis, 2.2.2).
//!
//! All cores divide `time` into *turns* of one quantum, and in each turn one guest of a level goes first among the equals of a core. Whose turn it
//! is follows from the clock, which is the same on all cores. So they agree without a word. A core where that guest has nothing to run gives its
//! turn to another that waits there, again by the clock, so that cores where the same guests wait agree on that, too.
//!
//! | of | one goes first, each | for |
//! |---|---|---|
//! | the guests of a level | turn | a turn of each *round* of as many turns |
//! | those that wait on a core whose guest of the turn has nothing to run | round | every round of as many rounds |
//! | the vCPUs of that guest on a core, if there are several | round | the same |
//!
//! The order is another one in each round (see [`turn_of`]): an RTOS above that takes a core again and again might else always take the turns of
//! the same guest, which would never run there.
#![expect(clippy::indexing_slicing, reason = "each index is a remainder by the length of its table")]

use ainori_limits::bits::lowest_bit_out_of_line;
use ainori_limits::{MAX_GUESTS, PRIORITIES, VCPU_SLOTS};

use crate::lists::List;
use crate::{Class, Policy, Time, VcpuId, VcpuSet};

/// The guests of a machine that take turns, level by level. All cores have to know the same.
#[derive(Clone, Copy, Debug)]
pub struct Gangs {
    /// Of each guest, how many of its level come before it.
    places: [u8; MAX_GUESTS],
    /// How many each level has.
    counts: [u8; PRIORITIES as usize],
}

impl Gangs {
    /// No guests: all that come are taken for one.
    pub const NONE: Self = Self { places: [0; MAX_GUESTS], counts: [0; PRIORITIES as usize] };

    /// Those of vCPUs of these classes, guest by guest. Only at boot.
    #[must_use]
    pub fn new(policy: &Policy, classes: impl Iterator<Item = Class>) -> Self {
        let mut gangs = Self::NONE;
        let mut latest = None;
        for class in classes {
            if latest.replace(class.guest) != Some(class.guest) {
                let count = &mut gangs.counts[usize::from(policy.level(class) % PRIORITIES)];
                gangs.places[usize::from(class.guest) % MAX_GUESTS] = *count;
                *count += 1;
            }
        }
        gangs
    }
}

/// Of `count`, not 0, the one whose turn it is: each once in `count` turns that follow each other from a multiple of that on.
///
/// With whom such a round begins is as if it were drawn: it follows from the round's number, with its bits mixed. So whatever period one looks at
/// the turns with, one sees all of them.
pub(crate) fn turn_of(turn: Time, count: u64) -> u64 {
    let count = count.max(1);
    // The first half of MurmurHash3's finalizer, behind the golden ratio.
    let mixed = (turn / count).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ mixed >> 33).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    let begin = (u128::from(mixed) * u128::from(count)) >> u64::BITS;
    (turn % count + begin as u64) % count
}

/// What a core's scheduler has to know to tell whose turn it is.
pub(crate) struct Turns {
    gangs: Gangs,
    /// The guest of each vCPU, and the vCPUs of each guest, that are or were here.
    guest_of: [u8; VCPU_SLOTS],
    guests: [VcpuSet; MAX_GUESTS],
    /// The same of each level.
    levels: [VcpuSet; PRIORITIES as usize],
    /// Those who have let others go first in this turn.
    turn: Time,
    yielded: VcpuSet,
}

impl Turns {
    /// No vCPU was ever here.
    pub(crate) const fn new(gangs: Gangs) -> Self {
        Self {
            gangs,
            guest_of: [0; VCPU_SLOTS],
            guests: [VcpuSet::EMPTY; MAX_GUESTS],
            levels: [VcpuSet::EMPTY; PRIORITIES as usize],
            turn: 0,
            yielded: VcpuSet::EMPTY,
        }
    }

    /// `v` is a vCPU of this guest.
    pub(crate) const fn adopt(&mut self, v: VcpuId, guest: u8) {
        let of = &mut self.guest_of[v.index()];
        self.guests[*of as usize % MAX_GUESTS].remove(v);
        *of = guest;
        self.guests[guest as usize % MAX_GUESTS].insert(v);
        self.yielded.remove(v);
    }

    /// `v` no longer waits in the list `from`, but in `to`.
    pub(crate) fn move_to(&mut self, v: VcpuId, from: List, to: List) {
        if let Some(level) = from.level() {
            self.levels[usize::from(level % PRIORITIES)].remove(v);
        }
        if let Some(level) = to.level() {
            self.levels[usize::from(level % PRIORITIES)].insert(v);
        }
    }

    /// `v` lets others go first until the turn's end.
    #[inline]
    pub(crate) const fn yields(&mut self, v: VcpuId) {
        self.yielded.insert(v);
    }

    /// Who of those that are awake goes first at a level where several are. `had` had the core until now.
    pub(crate) fn first(
        &mut self,
        awake: VcpuSet,
        level: u8,
        turn: Time,
        had: Option<VcpuId>,
    ) -> Option<VcpuId> {
        if turn != self.turn {
            (self.turn, self.yielded) = (turn, VcpuSet::EMPTY);
        }
        let level = usize::from(level % PRIORITIES);
        let equals = awake & self.levels[level];
        if (equals - self.yielded).is_empty() {
            // All have let others go first: from now on only the last one does.
            self.yielded = had.map_or(VcpuSet::EMPTY, VcpuSet::of);
        }
        let equals = equals - self.yielded;
        let count = self.gangs.counts[level].max(1);
        let (mut waiting, mut places) = ([VcpuSet::EMPTY; MAX_GUESTS], 0_u64);
        let mut rest = equals;
        // BOUND: the guests that wait here, some 20 instructions each.
        while let Some(v) = rest.pop() {
            let guest = usize::from(self.guest_of[v.index()]) % MAX_GUESTS;
            let its = equals & self.guests[guest];
            // One whose level is lent to it takes its turns with a guest of that level.
            let place = usize::from(self.gangs.places[guest] % count) % MAX_GUESTS;
            waiting[place] |= its;
            places |= 1 << place;
            rest = rest - its;
        }
        let count = u64::from(count);
        let (mut place, mut round) = (turn_of(turn, count), turn / count);
        if places & 1 << place == 0 {
            let others = u64::from(places.count_ones()).max(1);
            place = nth(places, turn_of(round, others))?;
            round /= others;
        }
        let its = waiting[place as usize % MAX_GUESTS];
        its.member(turn_of(round, its.len() as u64))
    }
}

/// The bit behind `n` others among those that are set, the lowest first.
fn nth(mut bits: u64, n: u64) -> Option<u64> {
    // BOUND: `n`, 3 instructions each: the guests.
    for _ in 0..n {
        bits &= bits.wrapping_sub(1);
    }
    (bits != 0).then(|| u64::from(lowest_bit_out_of_line(bits)))
}
