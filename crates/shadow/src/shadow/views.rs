//! The views of an address space, beside each other.
use super::{Shadow, UNKNOWN};
use crate::set::{self, Set};
use crate::view::{self, MOST_VIEWS, View};
use crate::{Due, Satp, Tables};

impl<T: Tables, V: View> Shadow<'_, T, V> {
    /// The guest's mode has changed, or its SUM or MXR, so that it is in this view from now on, of the same address space. Which fence is due for the tag that is active then.
    /// `None`: nothing has been done, as the view isn't known, and it is to be [activated](Self::activate) with [what is in `satp`](Self::satp).
    ///
    /// After a look at a view and its fence, what is [active](Self::active) is what the hart is to walk in that view until anything else is called. So whoever remembers it can go
    /// to it and to others that were looked at since by itself, without a call, if it looks at that in which it is before it calls anything else: also before it activates one
    /// that wasn't known, as that may be done in steps between which it is still in the other.
    #[inline(always)]
    pub fn look(&mut self, view: V) -> Option<Due> {
        let known = self.siblings.get(view::number(view)).copied().map(usize::from);
        match known.filter(|number| *number < set::MOST && self.alive.minus(self.behind).contains(*number)) {
            Some(number) => Some(self.enter_known(number)),
            None => self.activate_known(self.satp(), view),
        }
    }

    /// One that is about to be the active one is remembered among the views of its address space.
    #[inline(always)]
    pub(super) fn know(&mut self, number: usize) {
        let (satp, view) = (self.spaces[number].satp, self.spaces[number].view);
        if satp != self.satp() {
            self.siblings = [UNKNOWN; MOST_VIEWS];
        }
        if satp == Satp::BARE {
            self.siblings = [number as u8; MOST_VIEWS];
        } else if let Some(sibling) = self.siblings.get_mut(view::number(view)) {
            *sibling = number as u8;
        }
    }

    /// The number of one that is to be made. It is that which was this view before, if there is one. Else it is of one that is none, or of the one that was active least recently.
    /// All views of another address space with this ASID are none from now on.
    pub(super) fn choose(&mut self, satp: Satp, view: V) -> usize {
        if satp != self.satp() {
            // Else they are views of this one.
            self.siblings = [UNKNOWN; MOST_VIEWS];
        }
        let former = self.siblings.get(view::number(view)).copied().map_or(set::MOST, usize::from);
        let space = &self.spaces[former];
        if former < self.spaces.len() && space.satp == satp && space.view == view {
            return former;
        }
        let is_translated = satp != Satp::BARE;
        let (mut number, mut least) = (0, u64::MAX);
        let (mut views, mut rivals) = (Set::EMPTY, Set::EMPTY);
        // BOUND: the address spaces, some 20 instructions each.
        for candidate in 0..self.spaces.len() {
            let space = &self.spaces[candidate];
            let is_alive = self.alive.contains(candidate);
            let mut rank = if is_alive { space.activated + 2 } else { 1 };
            if is_translated && space.satp == satp {
                views.insert(candidate);
                // There is one of each view at most, none or not.
                rank = if space.view == view { 0 } else { rank };
            } else if is_alive && is_translated && space.has_asid(satp.asid()) {
                rivals.insert(candidate);
                rank = 1;
            }
            if rank < least {
                (number, least) = (candidate, rank);
            }
        }
        // BOUND: the views of an address space.
        for rival in rivals {
            self.kill(rival);
        }
        self.unlink(number);
        views.insert(number);
        // BOUND: likewise.
        for sibling in views {
            self.spaces[sibling].views = views;
        }
        number
    }

    /// It is no view of its address space any more.
    fn unlink(&mut self, number: usize) {
        let views = core::mem::replace(&mut self.spaces[number].views, Set::EMPTY);
        // BOUND: the views of an address space.
        for sibling in views {
            self.spaces[sibling].views.remove(number);
        }
        // BOUND: likewise.
        for sibling in &mut self.siblings {
            if usize::from(*sibling) == number {
                *sibling = UNKNOWN;
            }
        }
    }

    /// The views of the address space that has this ASID.
    pub(super) fn views_with(&self, asid: u16) -> Set {
        let has_it = |number: &usize| self.spaces[*number].has_asid(asid);
        // BOUND: the address spaces, some 10 instructions each; but mostly it is the active one.
        let any = if has_it(&self.active) { Some(self.active) } else { self.alive.into_iter().find(has_it) };
        any.map_or(Set::EMPTY, |number| self.spaces[number].views.and(self.alive))
    }

    /// Forgets all views of the address space that has this ASID. There is a clean table.
    pub(super) fn drop_views(&mut self, asid: u16) -> Due {
        let mut due = Due::Nothing;
        // BOUND: the views of an address space.
        for number in self.views_with(asid) {
            due = due.and(self.drop(number));
        }
        due
    }
}
