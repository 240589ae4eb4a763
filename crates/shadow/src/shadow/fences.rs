//! Fences for an address.
use super::Shadow;
use super::insert::fill;
use crate::format::Format;
use crate::set::Set;
use crate::tree::Forgotten;
use crate::view::{self, View};
use crate::walk::walk;
use crate::{Access, Due, Features, Memory, Mode, Tables, Virtual};

/// Fences that were deferred, and are carried out in one step. In tests, where there are few, steps are to be seen all the same.
const AT_ONCE: usize = if cfg!(test) { 1 } else { 4 };

impl<T: Tables, V: View> Shadow<'_, T, V> {
    /// Forgets what there is for an address in all address spaces, and what is global: at once in all views of the active one, which its guest comes to next; in the others before they are
    /// [activated](Self::catch_up), as they get nothing new until then, and many are of processes that have ended.
    pub(super) fn forget_everywhere(&mut self, address: Virtual) -> Due {
        let place = self.global_place(address);
        let views = if V::IS_DIVIDED { self.spaces[self.active].views.and(self.alive) } else { Set::EMPTY };
        let ours = views.or(Set::of(self.active));
        // Those that see what is global have nothing of their own there.
        let sharers = place.map_or(Set::EMPTY, |place| self.global.sharers(place));
        self.defer(address, self.alive.minus(ours).minus(sharers));
        let mut due = place.map_or(Due::Nothing, |place| self.forget_global(place, address));
        // BOUND: the views of an address space, and for each the levels.
        for number in ours {
            if due == Due::Root {
                // All has been forgotten.
                break;
            }
            // None has copies of what is global in another format.
            if !place.is_some_and(|place| self.spaces[number].shared.contains(place)) {
                due = due.and(self.forget_own(number, address));
            }
        }
        due
    }

    /// Behind a fence for an address of all address spaces that found nothing there: fills in what the guest's tables have there by now, if that is a page that it calls global and has used
    /// before, and the shadow has the table for it. A kernel that fences an address where nothing was (as Linux's does to reach a page for a moment, and so 50,000 times as it boots) has mapped
    /// something there, and comes to it next.
    ///
    /// A hart may walk at any time, whether there is an access or not; nothing is written to the guest's tables for it, and no fence is due: who has kept that there was nothing faults, and finds it
    /// then.
    pub fn prefetch(&mut self, memory: &impl Memory, address: Virtual) {
        let Some(place) = self.global_place(address) else { return };
        let space = &self.spaces[self.active];
        let format = space.format;
        if !space.shared.contains(place)
            || self.global.format != Some(format)
            || self.is_in_window(format, address)
        {
            return;
        }
        let Some((table, index)) = self.global.tree.gap(&self.pool, format, address) else { return };
        let view = space.view;
        let features = Features { updates: false, ..self.choices.features };
        // As its kernel would load there.
        let mode = view::mode(view, Mode { user: false, sum: false, mxr: false });
        let Ok(found) = walk(memory, features, self.satp(), address, Access::Load, mode) else { return };
        let found = view::seen(view, found);
        if let Some(fill) = fill(memory, &found, address, Access::Load)
            && found.global
            && fill.is_plain_page()
        {
            self.pool.write(table, index, fill.entry);
        }
    }

    /// The same in all views of the address space that has this ASID, and of what isn't global.
    pub(super) fn forget_in_views(&mut self, address: Virtual, asid: u16) -> Due {
        let mut due = Due::Nothing;
        // BOUND: as above.
        for number in self.views_with(asid) {
            due = due.and(self.forget_in(number, address));
            if due == Due::Root {
                break;
            }
        }
        due
    }

    /// Those have this fence before them.
    fn defer(&mut self, address: Virtual, others: Set) {
        if others.is_empty() {
            return;
        }
        let next = self.deferred.next();
        // BOUND: the address spaces, some 10 instructions each: those that were active since the last fence.
        for number in others.minus(self.behind) {
            self.spaces[number].fenced = next;
        }
        self.behind = self.behind.or(others);
        self.deferred.push(address);
    }

    /// Carries out some of the fences that an address space has before it, which is about to be activated. `None`: there are no more. Else it is to be asked for once more, behind this fence of
    /// the active one's tag; it may be none by then.
    pub(super) fn catch_up(&mut self, number: usize) -> Option<Due> {
        if !self.behind.contains(number) {
            return None;
        }
        if !self.deferred.keeps(self.spaces[number].fenced) {
            self.kill(number);
            return Some(Due::Nothing);
        }
        // BOUND: `AT_ONCE`, and for each the levels.
        for _ in 0..AT_ONCE {
            let Some(address) = self.deferred.get(self.spaces[number].fenced) else { break };
            self.spaces[number].fenced += 1;
            let due = self.forget_in(number, address);
            if due != Due::Nothing {
                // All has been forgotten.
                return Some(due);
            }
        }
        if self.spaces[number].fenced < self.deferred.next() {
            return Some(Due::Nothing);
        }
        self.behind.remove(number);
        None
    }

    /// Forgets what an address space of its own has for an address.
    pub(super) fn forget_in(&mut self, number: usize, address: Virtual) -> Due {
        let space = &self.spaces[number];
        let top = Format::index(address, space.format.levels() - 1);
        if self.global.place(top).is_some_and(|place| space.shared.contains(place)) {
            return Due::Nothing;
        }
        self.forget_own(number, address)
    }

    /// The same of one that doesn't see what is global there.
    fn forget_own(&mut self, number: usize, address: Virtual) -> Due {
        let space = &self.spaces[number];
        let format = space.format;
        if !space.is_translated() || !format.covers(address) || self.is_in_window(format, address) {
            return Due::Nothing;
        }
        let due = match self.spaces[number].tree.forget(&mut self.pool, format, address) {
            Forgotten::Nothing => Due::Nothing,
            Forgotten::Entry => Due::Page(address),
            Forgotten::Entries => Due::Space,
            Forgotten::NotYet => return self.forget_all(),
        };
        self.changed(number, due)
    }

    /// Forgets what is global for an address, below the entry that has this place.
    fn forget_global(&mut self, place: usize, address: Virtual) -> Due {
        let Some(format) = self.global.format else { return Due::Nothing };
        let top = self.global.top(place);
        let before = self.pool.read(self.global.tree.root, top);
        let due = match self.global.tree.forget(&mut self.pool, format, address) {
            Forgotten::Nothing => return Due::Nothing,
            Forgotten::Entry => Due::Page(address),
            Forgotten::Entries => Due::Space,
            Forgotten::NotYet => return self.forget_all(),
        };
        if self.pool.read(self.global.tree.root, top) == before {
            self.changed_globally(place, due)
        } else {
            self.unshare_all(place)
        }
    }
}
