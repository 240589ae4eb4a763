//! What a walk of the guest's tables has found, filled in: in the tree of the active address space, or in that of what is global.
use ainori_space::{HostPhysical, MemoryType};

use super::{RESERVE, Shadow};
use crate::entry::{Entry, Leaf, allows};
use crate::fence::Due;
use crate::format::{Format, span};
use crate::tree::{End, Fill, Obstacle};
use crate::view::View;
use crate::walk::{Access, Found};
use crate::{Memory, Tables, Virtual};

/// What is global is taken from so many address spaces at a time. In tests, where there are few, more are to be seen all the same.
const SPACES_AT_ONCE: usize = if cfg!(test) { 1 } else { 2 };

/// Tables that are taken for a fill in one step, at most: mostly it needs no more.
const TABLES_AT_ONCE: u32 = 2;
/// The same where views are divided, and a step takes longer.
const TABLES_OF_A_VIEW: u32 = 1;

impl<T: Tables, V: View> Shadow<'_, T, V> {
    /// Fills in what a walk of the active address space has found, or does a step of that. Returns which fence is due, and if it is there the table in which it is.
    pub(super) fn insert(&mut self, format: Format, is_global: bool, fill: &Fill) -> (Due, Option<u16>) {
        let top = Format::index(fill.address, format.levels() - 1);
        let mut due = Due::Nothing;
        let place = if is_global { self.sharing(format, top) } else { None };
        if place.is_none() {
            due = due.and(self.unshare_top(self.active, top));
        }
        let tree = if place.is_some() { &self.global.tree } else { &self.spaces[self.active].tree };
        let (inserted, table) = match tree.find(&self.pool, format, fill, RESERVE) {
            Ok(end) => match place {
                Some(place) => self.insert_globally(format, (place, top), end, fill),
                None => {
                    let most = if V::IS_DIVIDED { TABLES_OF_A_VIEW } else { TABLES_AT_ONCE };
                    self.spaces[self.active].tree.insert_at_once(&mut self.pool, end, fill, (most, RESERVE))
                }
            },
            Err(Obstacle::Tables) => {
                self.is_short = true;
                (Due::Nothing, None)
            }
            Err(Obstacle::Tree) if place.is_some() => {
                self.forgets_all = true;
                (Due::Nothing, None)
            }
            Err(Obstacle::Tree) if !self.pool.prepare(RESERVE) => (Due::Nothing, None),
            Err(Obstacle::Tree) => (self.forget_space(self.active), None),
        };
        due = due.and(inserted);
        self.is_short |= table.is_none() && self.pool.clean() <= RESERVE;
        (if table.is_some() { due.and(Due::Page(fill.address)) } else { due }, table)
    }

    /// May what is global be filled into the global tree, for the active address space to see? Not if this has something of its own beside it, or there are too many such entries.
    fn sharing(&mut self, format: Format, top: usize) -> Option<usize> {
        if !self.choices.shares_global || self.global.format.is_some_and(|of| of != format) {
            return None;
        }
        let place = self.global.make_place(top)?;
        let space = &self.spaces[self.active];
        (space.shared.contains(place) || self.pool.read(space.tree.root, top).is_none()).then_some(place)
    }

    /// `place` and `top` are of the entry of the root.
    fn insert_globally(
        &mut self,
        format: Format,
        (place, top): (usize, usize),
        end: End,
        fill: &Fill,
    ) -> (Due, Option<u16>) {
        let before = self.pool.read(self.global.tree.root, top);
        let changes = before != fill.entry && self.global.tree.changes_root(&self.pool, end);
        if changes && !before.is_none() && !self.global.sharers(place).is_empty() {
            // A fill behind that would take too long for one step, and to forget all takes one of its own.
            if self.global.sharers(place).len() > SPACES_AT_ONCE {
                self.forgets_all = true;
                return (Due::Nothing, None);
            }
            return (self.unshare_all(place), None);
        }
        self.global.format = Some(format);
        let (inserted, table) = self.global.tree.insert(&mut self.pool, end, fill);
        let due = self.changed_globally(place, inserted);
        // Only when it is there: a table on the way to it is a step of its own, and an entry that is nothing yet is not to be seen.
        (if table.is_some() { due.and(self.share(place)) } else { due }, table)
    }

    /// Has the active address space see an entry of the global tree's root.
    fn share(&mut self, place: usize) -> Due {
        let top = self.global.top(place);
        let space = &mut self.spaces[self.active];
        if space.shared.contains(place) {
            return Due::Nothing;
        }
        let entry = self.pool.read(self.global.tree.root, top);
        space.shared.insert(place);
        self.global.sharers_mut(place).insert(self.active);
        self.pool.write(space.tree.root, top, entry);
        // As where a tree has a new table.
        if entry.leads_on() { Due::Space } else { Due::Nothing }
    }

    /// An address space doesn't see this entry of the global tree's root any more, if it did.
    fn unshare(&mut self, number: usize, place: usize) -> Due {
        let space = &mut self.spaces[number];
        if !space.shared.contains(place) {
            return Due::Nothing;
        }
        space.shared.remove(place);
        self.global.sharers_mut(place).remove(number);
        self.pool.write(space.tree.root, self.global.top(place), Entry::NONE);
        self.changed(number, Due::Space)
    }

    fn unshare_top(&mut self, number: usize, top: usize) -> Due {
        self.global.place(top).map_or(Due::Nothing, |place| self.unshare(number, place))
    }

    /// No address space sees this entry of the global tree's root any more. If many do, all is forgotten instead, which takes no longer than a step may.
    pub(super) fn unshare_all(&mut self, place: usize) -> Due {
        let sharers = self.global.sharers(place);
        if sharers.len() > SPACES_AT_ONCE {
            return self.forget_all();
        }
        // BOUND: `SPACES_AT_ONCE`.
        sharers.fold(Due::Nothing, |due, number| due.and(self.unshare(number, place)))
    }
}

/// What the shadow is to have for an address. `None`: such an access doesn't go to memory.
#[inline(always)]
pub(super) fn fill(memory: &impl Memory, found: &Found, address: Virtual, access: Access) -> Option<Fill> {
    let at = found.at(address);
    let below = memory.translate(at)?;
    let (reads, writes, executes) = allows(below.attributes.rights);
    let is_allowed = match access {
        // What the guest lets read as it lets it execute (`sstatus.MXR`), the hart will let read as the leaf does.
        Access::Load => reads && (found.reads || executes),
        Access::Store => writes,
        Access::Fetch => executes,
    };
    if !is_allowed {
        return None;
    }
    let mut level = found.level;
    // BOUND: the levels.
    while level > 0 && span(level) > below.size {
        level -= 1;
    }
    let memory_type = match found.memory_type {
        MemoryType::Board => below.attributes.memory_type,
        of_guest => of_guest,
    };
    let reads = found.reads && reads;
    let leaf = Leaf {
        host: HostPhysical(below.host.0 & !(span(level) - 1)),
        reads,
        writes: found.writes && writes && reads,
        executes: found.executes && executes,
        user: found.user,
        memory_type,
    };
    let splinters_of = if level < found.level { found.level } else { 0 };
    Some(Fill {
        address,
        level,
        splinters_of,
        contiguous: found.contiguous,
        entry: Entry::leaf(leaf),
        below: below.attributes,
    })
}
