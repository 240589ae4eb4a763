//! The views of an address space, beside each other.
use super::{Shadow, UNKNOWN};
use crate::set::{self, Set};
use crate::view::{self, MOST_VIEWS, View};
use crate::{Due, Satp, Tables};

/// Which address spaces a hart may go to without a word, as far as they are [siblings](Shadow::sibling) of the active one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UpToDate(Set);

/// What was found of a `satp`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Searched {
    pub(super) satp: Satp,
    same: Set,
    with_asid: Set,
}

impl Searched {
    /// Those that have its ASID and are one, or were this: of each view one, so they are few.
    pub(super) const fn alike(self, alive: Set) -> Set {
        self.same.or(self.with_asid.and(alive))
    }
}

impl<T: Tables, V: View> Shadow<'_, T, V> {
    /// If this is the same before and behind a call of [`Self::fault`] or [`Self::fence`] that didn't ask for [`Due::Root`], what [`Self::sibling`] has said before holds still: neither makes an address space
    /// or goes to another one, so that there are but fewer of them afterwards; and of those that are left the active one alone can have got another root.
    #[inline(always)]
    pub fn up_to_date(&self) -> UpToDate {
        UpToDate(self.alive.minus(self.behind).minus(self.stale))
    }

    /// The guest's mode has changed, or its SUM or MXR, so that it is in this view from now on, of the same address space. Which fence is due for the tag that is active then.
    /// `None`: nothing has been done, as the view isn't known, and it is to be [activated](Self::activate) with [what is in `satp`](Self::satp).
    ///
    /// Once a view was entered, and its fence carried out, what is [active](Self::active) is what the hart is to walk in that view until anything else is called. So whoever remembers it can go
    /// to it and to others that were entered since by itself, without a call, if it enters that in which it is before it calls anything else: also before it activates one
    /// that wasn't known, as that may be done in steps between which it is still in the other.
    #[inline(always)]
    pub fn enter_view(&mut self, view: V) -> Option<Due> {
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

    /// Looks for those that have the ASID of a `satp`. What is found holds until one is [begun](Self::begin) or all are [reset](Self::reset).
    pub(super) fn search(&self, satp: Satp) -> Searched {
        let (mut same, mut with_asid) = (Set::EMPTY, Set::EMPTY);
        // BOUND: the address spaces, some 15 instructions each.
        for (number, space) in self.spaces.iter().enumerate() {
            if space.satp.asid() == satp.asid() {
                with_asid.insert(number);
                if space.satp == satp {
                    same.insert(number);
                }
            }
        }
        Searched { satp, same, with_asid }
    }

    /// The number of one that is to be made, of those that are [alike](Searched::alike). It is that which was this view before, if there is one. Else it is of one that is none, or of the
    /// one that was active least recently. All views of another address space with this ASID are none from now on.
    ///
    /// `None`: a step of it was done, as one has to be none first.
    pub(super) fn choose(&mut self, satp: Satp, view: V, alike: Set) -> Option<usize> {
        let (mut views, mut rivals, mut former) = (Set::EMPTY, Set::EMPTY, None);
        if satp != Satp::BARE {
            // BOUND: the views of two address spaces.
            for number in alike {
                let space = &self.spaces[number];
                if space.satp == satp {
                    views.insert(number);
                    former = former.or((space.view == view).then_some(number));
                } else if space.has_asid(satp.asid()) {
                    rivals.insert(number);
                }
            }
        }
        // The hart walks the active one until the new one is there.
        let others = rivals.without(self.active);
        if !others.is_empty() {
            // BOUND: the views of an address space.
            for rival in others {
                self.kill(rival);
            }
            return None;
        }
        // BOUND: one.
        for rival in rivals {
            self.kill(rival);
        }
        let unused = || Set::below(self.spaces.len()).minus(self.alive).next();
        let number = match former.or_else(unused) {
            Some(number) => number,
            None => {
                let oldest = self.least_recent();
                if oldest != self.active {
                    self.kill(oldest);
                    self.give_back_all(oldest);
                    return None;
                }
                oldest
            }
        };
        if satp != self.satp() {
            // Else they are views of this one.
            self.siblings = [UNKNOWN; MOST_VIEWS];
        }
        self.unlink(number);
        views.insert(number);
        // BOUND: the views of an address space.
        for sibling in views {
            self.spaces[sibling].views = views;
        }
        Some(number)
    }

    /// The one that was active least recently, if each is one.
    fn least_recent(&self) -> usize {
        let (mut oldest, mut least) = (0, u64::MAX);
        // BOUND: the address spaces, some 6 instructions each.
        for (number, space) in self.spaces.iter().enumerate() {
            if space.activated < least {
                (oldest, least) = (number, space.activated);
            }
        }
        oldest
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
        // Mostly it is the active one.
        if has_it(&self.active) {
            return self.spaces[self.active].views.and(self.alive);
        }
        // BOUND: the address spaces, some 6 instructions each.
        let any = self.spaces.iter().enumerate().find(|(number, space)| {
            space.satp.asid() == asid && self.alive.contains(*number) && space.is_translated()
        });
        any.map(|(number, _)| number).map_or(Set::EMPTY, |number| self.spaces[number].views.and(self.alive))
    }

    /// Forgets all views of the address space that has this ASID. There is a clean table.
    pub(super) fn forget_views(&mut self, asid: u16) -> Due {
        let mut due = Due::Nothing;
        // BOUND: the views of an address space.
        for number in self.views_with(asid) {
            due = due.and(self.forget_space(number));
        }
        due
    }
}
