//! Lists of vCPUs, one for each level: the run queue, and the timers of those that sleep.
//!
//! The lists are circular and doubly linked, each through an *end*: a place that stands for the list
//! itself, after its last and before its first member. So insertion and removal know no special cases, and
//! no branches. A word says which lists have members. As in SPUMONE, an idle vCPU is always in the run queue,
//! below all levels: a search always finds someone. Further below still is the list of those that have no level: they are in the queue, and
//! no search finds them.
#![expect(
    clippy::indexing_slicing,
    reason = "there are as many links as a byte can name, or no remainder is too large"
)]

pub(crate) use ainori_limits::Place;
use ainori_limits::bits::lowest_bit;
use ainori_limits::{PRIORITIES, VCPU_SLOTS};

use crate::VcpuId;

// Where a link leads: places below `VCPU_SLOTS` are vCPUs, then come the ends of the lists, then `IDLE`.

/// The place of a vCPU.
#[inline]
pub(crate) const fn place(v: VcpuId) -> Place {
    v.0 as Place
}

/// The idle vCPU.
pub(crate) const IDLE: Place = NO_LEVEL.0 + 1;

/// A list, named by its end. The lists are in the order in which they are searched.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct List(Place);

const FIRST_LIST: List = List(VCPU_SLOTS as Place);
const IDLE_LIST: List = List(FIRST_LIST.0 + PRIORITIES as Place);
const NO_LEVEL: List = List(IDLE_LIST.0 + 1);

// A list of each level, that of the idle vCPU, and that of those without a level, which is behind it and so is never found first: a place and a bit for
// each. The idle vCPU itself has a place only.
const _: () = assert!(
    IDLE_LIST.0 as usize == VCPU_SLOTS + PRIORITIES as usize
        && (IDLE as usize) < LINKS
        && PRIORITIES + 1 < u64::BITS as u8
);

impl List {
    /// The list of a level, which is below [`PRIORITIES`]. The highest is searched first.
    #[inline]
    pub(crate) const fn of_level(level: u8) -> Self {
        Self(FIRST_LIST.0 + (PRIORITIES - 1 - level) as Place)
    }

    /// The list of a level that may be none. One that is not below [`PRIORITIES`] is the highest.
    #[inline]
    pub(crate) const fn of(level: Option<u8>) -> Self {
        match level {
            Some(level) if level < PRIORITIES => Self::of_level(level),
            Some(_) => FIRST_LIST,
            None => NO_LEVEL,
        }
    }

    /// The level whose list it is.
    #[inline]
    #[allow(clippy::unnecessary_cast, reason = "a place is a byte in the usual build only")]
    pub(crate) const fn level(self) -> Option<u8> {
        if self.is_before(IDLE_LIST) { Some(PRIORITIES - 1 - (self.0 - FIRST_LIST.0) as u8) } else { None }
    }

    /// Is this one searched before the other?
    #[inline]
    pub(crate) const fn is_before(self, other: Self) -> bool {
        self.0 < other.0
    }

    /// The place that stands for the list itself.
    #[inline]
    pub(crate) const fn end(self) -> Place {
        self.0
    }

    #[inline]
    const fn bit(self) -> u64 {
        1 << (self.0 - FIRST_LIST.0)
    }
}

/// The vCPU at a place that is one's.
#[inline]
#[allow(clippy::unnecessary_cast, reason = "a place is a byte in the usual build only")]
pub(crate) const fn vcpu_at(place: Place) -> VcpuId {
    VcpuId(place as u8)
}

/// How many links there are: as many as a byte can name, or a power of two, so that no access needs a check.
const LINKS: usize =
    if size_of::<Place>() == 1 { 256 } else { (VCPU_SLOTS + PRIORITIES as usize + 3).next_power_of_two() };
/// Links from places.
type Links = [Place; LINKS];

/// Where the link of a place is.
#[inline]
const fn at(place: Place) -> usize {
    place as usize % LINKS
}

pub(crate) struct Lists {
    next: Links,
    previous: Links,
    /// The [bits](List::bit) of the lists that have members. The first list is the lowest bit: on a hart
    /// without Zbb that takes a multiplication and a table to find, the highest takes three times as long.
    occupied: u64,
}

impl Lists {
    /// No vCPU is in any list. Only at boot.
    pub(crate) const fn new() -> Self {
        let mut alone: Links = [0; LINKS];
        let mut place = 0;
        while place < alone.len() {
            alone[place] = place as Place;
            place += 1;
        }
        Self { next: alone, previous: alone, occupied: 0 }
    }

    /// A run queue without any vCPU but the idle one. Only at boot.
    pub(crate) const fn run_queue() -> Self {
        let mut queue = Self::new();
        queue.link_before(IDLE_LIST.0, IDLE);
        queue.occupied = IDLE_LIST.bit();
        queue
    }

    /// The first of the first list that has members, and whether an equal waits behind it.
    #[inline]
    pub(crate) const fn first(&self) -> (Place, bool) {
        let end = FIRST_LIST.0 as usize + self.occupied.trailing_zeros() as usize;
        let first = self.next[end % self.next.len()];
        (first, self.previous[end % self.next.len()] != first)
    }

    /// The first of a list; of one that has no members, its end.
    #[inline]
    pub(crate) const fn first_of(&self, list: List) -> Place {
        self.next[at(list.0)]
    }

    /// Makes `v`, not a member, the last of `list`.
    #[inline]
    pub(crate) const fn push(&mut self, v: VcpuId, list: List) {
        self.insert(v, list, list.0);
    }

    /// Makes `v`, not a member, one of `list`: the one before `place`, which is a member or the end.
    #[inline]
    pub(crate) const fn insert(&mut self, v: VcpuId, list: List, place: Place) {
        self.link_before(place, self::place(v));
        self.occupied |= list.bit();
    }

    /// The one before `place`, a member of a list; the list's end, if it is the first.
    #[inline]
    pub(crate) const fn before(&self, place: Place) -> Place {
        self.previous[at(place)]
    }

    /// The one behind `place`, a member of a list; the list's end, if it is the last.
    #[inline]
    pub(crate) const fn behind(&self, place: Place) -> Place {
        self.next[at(place)]
    }

    /// The lists of vCPUs that have members, in the order in which they are searched.
    #[inline]
    pub(crate) fn with_members(&self) -> impl Iterator<Item = List> + use<> {
        let mut lists = self.occupied & !IDLE_LIST.bit();
        core::iter::from_fn(move || {
            lists = (lists != 0).then_some(lists)?;
            let first = lowest_bit(lists) as Place;
            lists &= lists - 1;
            Some(List(FIRST_LIST.0 + first))
        })
    }

    /// The first members of the lists that have any, from the highest level down to `lowest`.
    #[inline]
    pub(crate) fn firsts(&self, lowest: u8) -> impl Iterator<Item = VcpuId> {
        let mut lists = self.occupied & (List::of_level(lowest).bit() << 1).wrapping_sub(1);
        core::iter::from_fn(move || {
            lists = (lists != 0).then_some(lists)?;
            let end = FIRST_LIST.0 as usize + lowest_bit(lists) as usize;
            lists &= lists - 1;
            Some(vcpu_at(self.next[end % self.next.len()]))
        })
    }

    /// Takes `v`, a member, out of `list`, wherever in it it is.
    #[inline]
    pub(crate) const fn remove(&mut self, v: VcpuId, list: List) {
        self.unlink(place(v));
        if self.next[at(list.0)] == list.0 {
            self.occupied &= !list.bit();
        }
    }

    /// Makes `v`, a member of `list`, its last.
    #[inline]
    pub(crate) const fn move_last(&mut self, v: VcpuId, list: List) {
        self.unlink(place(v));
        self.link_before(list.0, place(v));
    }

    /// Makes `v`, a member of `list`, its first.
    #[inline]
    pub(crate) const fn move_first(&mut self, v: VcpuId, list: List) {
        self.unlink(place(v));
        self.link_before(self.next[at(list.0)], place(v));
    }

    #[inline]
    const fn link_before(&mut self, next: Place, place: Place) {
        let previous = self.previous[at(next)];
        self.previous[at(place)] = previous;
        self.next[at(place)] = next;
        self.next[at(previous)] = place;
        self.previous[at(next)] = place;
    }

    #[inline]
    const fn unlink(&mut self, place: Place) {
        let (next, previous) = (self.next[at(place)], self.previous[at(place)]);
        self.next[at(previous)] = next;
        self.previous[at(next)] = previous;
    }
}
