//! Timers of sleeping vCPUs: for each level a list, the earliest first.
//!
//! To find the next one, or to take it out, takes as long whether two vCPUs sleep or sixty. To put one in takes longer only if there are earlier
//! and later ones: the fewer of the two, of its level.
#![expect(
    clippy::indexing_slicing,
    reason = "`VcpuId::index` is below `VCPU_SLOTS`, the length of the table"
)]

use ainori_limits::VCPU_SLOTS;

use crate::lists::{List, Lists, vcpu_at};
use crate::{Time, VcpuId, VcpuSet};

pub(crate) struct Timers {
    lists: Lists,
    set: VcpuSet,
    at: [Time; VCPU_SLOTS],
}

impl Timers {
    /// None is set. Only at boot.
    pub(crate) const fn new() -> Self {
        Self { lists: Lists::new(), set: VcpuSet::EMPTY, at: [0; VCPU_SLOTS] }
    }

    /// Sets the timer of `v`, which waits in `list`. Equal times keep the order in which they were set.
    #[inline]
    pub(crate) fn set(&mut self, v: VcpuId, list: List, at: Time) {
        self.clear(v, list);
        self.at[v.index()] = at;
        self.set.insert(v);
        let end = list.end();
        // From both ends at once.
        let (mut next, mut later) = (end, self.lists.first_of(list));
        // BOUND: half of those of this core's vCPUs whose timers are set, some 12 instructions each.
        loop {
            let place = self.lists.before(next);
            if place == end || self.at[vcpu_at(place).index()] <= at {
                break;
            }
            if self.at[vcpu_at(later).index()] > at {
                next = later;
                break;
            }
            (next, later) = (place, self.lists.behind(later));
        }
        self.lists.insert(v, list, next);
    }

    /// Takes out the timer of `v`, which waits in `list`, if it is set.
    #[inline]
    pub(crate) fn clear(&mut self, v: VcpuId, list: List) {
        if self.set.contains(v) {
            self.expire(v, list);
        }
    }

    /// The same if it is known to be set.
    #[inline]
    pub(crate) fn expire(&mut self, v: VcpuId, list: List) {
        self.set.remove(v);
        self.lists.remove(v, list);
    }

    /// `v` no longer waits in the list `from`, but in `to`. Is its timer set?
    pub(crate) fn move_to(&mut self, v: VcpuId, from: List, to: List) -> bool {
        let is_set = self.set.contains(v);
        if is_set {
            self.expire(v, from);
            self.set(v, to, self.at[v.index()]);
        }
        is_set
    }

    /// The first ones of each level, from the highest down to `lowest`.
    #[inline]
    pub(crate) fn firsts(&self, lowest: u8) -> impl Iterator<Item = (VcpuId, Time)> {
        self.lists.firsts(lowest).map(|v| (v, self.at[v.index()]))
    }
}
