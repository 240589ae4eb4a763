//! The pool's tables: whose each is, what is in it, and which is to be taken when none is free.
use ainori_space::HostPhysical;

use crate::entry::Entry;
use crate::format::ENTRIES;
use crate::numbered::Numbered;
use crate::slots::Slots;
use crate::window::{CLOSED, Opening};
use crate::{ROW, Tables};

/// Writing so many rows of zeros takes as long as what has to be done for a table, however few are to be written in it: the loop over the words of a set, and two lists.
const WRITES_OF_A_TABLE: usize = 7;

/// No table.
pub(crate) const NONE: u16 = u16::MAX;

/// Whose tables are taken when the pool is used up (Gandalf, 3.3.1). Roots are never taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reclaim {
    /// The table of pages that was taken from the pool first. Where tables above those of pages have used up the pool, as for [`Self::LeastRecentlyUsed`].
    Fifo,
    /// All of the address space that was active least recently. If the active one is the only one that has tables, all that there are.
    LeastRecentlyUsed,
}

/// What is known of a table beside its entries.
#[derive(Debug, Clone)]
pub struct TableState {
    /// Neighbours in the list that it is in.
    previous: u16,
    next: u16,
    /// The table that leads to it, and where. Of a root: nothing, and the slot of the window in it, which isn't among the [used](Self::used) entries as long as it is a root.
    parent: u16,
    pub(crate) index: u16,
    /// Level 0 is that of pages.
    pub(crate) level: u8,
    /// Its entries are the splinters of a single page of the guest, of this level, which is larger than such an entry; 0: they are pages of their own.
    pub(crate) splinters_of: u8,
    /// How many tables its entries lead to.
    children: u16,
    /// Some entry is one of a range of 64 KiB of the guest's.
    pub(crate) contiguous: bool,
    /// When it was taken: tables are numbered as they are.
    age: u64,
    /// Which entries aren't zero.
    used: Slots,
}

impl TableState {
    /// Of a table that was never used.
    pub const NEW: Self = Self {
        previous: NONE,
        next: NONE,
        parent: NONE,
        index: 0,
        level: 0,
        splinters_of: 0,
        children: 0,
        contiguous: false,
        age: 0,
        used: Slots::NONE,
    };
}

/// A list of tables.
#[derive(Debug, Clone, Copy)]
struct List {
    first: u16,
    last: u16,
    count: usize,
}

impl List {
    const EMPTY: Self = Self { first: NONE, last: NONE, count: 0 };

    fn append(&mut self, states: &mut Numbered<'_, TableState>, table: u16) {
        let state = &mut states[usize::from(table)];
        (state.previous, state.next) = (self.last, NONE);
        match self.last {
            NONE => self.first = table,
            last => states[usize::from(last)].next = table,
        }
        self.last = table;
        self.count += 1;
    }

    /// Takes out the first one.
    fn pop(&mut self, states: &mut Numbered<'_, TableState>) -> Option<u16> {
        let first = self.first;
        if first == NONE {
            return None;
        }
        self.first = states[usize::from(first)].next;
        match self.first {
            NONE => self.last = NONE,
            next => states[usize::from(next)].previous = NONE,
        }
        self.count -= 1;
        Some(first)
    }

    fn unlink(&mut self, states: &mut Numbered<'_, TableState>, table: u16) {
        let TableState { previous, next, .. } = states[usize::from(table)];
        match previous {
            NONE => self.first = next,
            previous => states[usize::from(previous)].next = next,
        }
        match next {
            NONE => self.last = previous,
            next => states[usize::from(next)].previous = previous,
        }
        self.count -= 1;
    }

    /// Appends all of `other`, which is empty then.
    #[inline]
    fn splice(&mut self, states: &mut Numbered<'_, TableState>, other: &mut Self) {
        if other.first == NONE {
            return;
        }
        states[usize::from(other.first)].previous = self.last;
        match self.last {
            NONE => self.first = other.first,
            last => states[usize::from(last)].next = other.first,
        }
        self.last = other.last;
        self.count += other.count;
        *other = Self::EMPTY;
    }
}

/// The tables of a tree, but for its root: those of pages, which can be taken one by one, and those above, each kind in the order in which they were taken.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Owned {
    pages: List,
    above: List,
}

impl Owned {
    pub const NONE: Self = Self { pages: List::EMPTY, above: List::EMPTY };

    /// The oldest table of pages.
    pub const fn oldest(&self) -> Option<u16> {
        if self.pages.first == NONE { None } else { Some(self.pages.first) }
    }

    /// How many tables of pages.
    pub const fn pages(&self) -> usize {
        self.pages.count
    }

    /// Is there any table?
    pub const fn is_empty(&self) -> bool {
        self.pages.first == NONE && self.above.first == NONE
    }

    const fn list(&mut self, level: u8) -> &mut List {
        if level == 0 { &mut self.pages } else { &mut self.above }
    }

    fn append(&mut self, states: &mut Numbered<'_, TableState>, table: u16) {
        let level = states[usize::from(table)].level;
        self.list(level).append(states, table);
    }

    fn unlink(&mut self, states: &mut Numbered<'_, TableState>, table: u16) {
        let level = states[usize::from(table)].level;
        self.list(level).unlink(states, table);
    }
}

/// The pool.
pub(crate) struct Pool<'a, T> {
    tables: T,
    states: Numbered<'a, TableState>,
    /// Free, and all zeros.
    clean: List,
    /// Free, with something in them still.
    dirty: List,
    taken: u64,
}

impl<'a, T: Tables> Pool<'a, T> {
    /// All of them are free, and clean. `states`: one for each table, at most 65,535.
    ///
    /// Only at boot.
    pub fn new(tables: T, states: &'a mut [TableState]) -> Self {
        let states = Numbered::new(states, TableState::NEW);
        let mut pool = Self { tables, states, clean: List::EMPTY, dirty: List::EMPTY, taken: 0 };
        for table in 0..pool.states.len().min(usize::from(NONE)) as u16 {
            pool.state_mut(table).clone_from(&TableState::NEW);
            pool.clean.append(&mut pool.states, table);
        }
        pool
    }

    pub fn state(&self, table: u16) -> &TableState {
        &self.states[usize::from(table)]
    }

    pub fn state_mut(&mut self, table: u16) -> &mut TableState {
        &mut self.states[usize::from(table)]
    }

    pub fn age(&self, table: u16) -> u64 {
        self.state(table).age
    }

    /// How many are free.
    pub const fn free(&self) -> usize {
        self.clean.count + self.dirty.count
    }

    /// How many of these can be taken.
    pub const fn clean(&self) -> usize {
        self.clean.count
    }

    /// Are there so many that can be taken, or is nothing to be cleared for that? If not, a piece of it has been done.
    pub fn prepare(&mut self, count: usize) -> bool {
        let is_ready = self.clean.count >= count || self.dirty.first == NONE;
        if !is_ready {
            self.clear_some(count);
        }
        is_ready
    }

    #[inline(never)]
    fn clear_some(&mut self, count: usize) {
        let mut left = T::ROWS_AT_ONCE;
        // BOUND: as many tables as are wanted, and `ROWS_AT_ONCE`.
        while left > 0 && self.clean.count < count && self.dirty.first != NONE {
            left = self.clear(self.dirty.first, left);
            if left == 0 {
                return;
            }
            if let Some(table) = self.dirty.pop(&mut self.states) {
                self.clean.append(&mut self.states, table);
            }
            left = left.saturating_sub(WRITES_OF_A_TABLE);
        }
    }

    /// Clears a table at once, which leads to no other one any more, but to a window. Whoever keeps to what is to be [left clean](crate::tree::Tree::find) has no more than the 16
    /// places of what is global in it.
    #[inline(never)]
    pub fn empty(&mut self, table: u16) {
        let state = &mut self.states[usize::from(table)];
        (state.children, state.contiguous) = (0, false);
        // The first slot can be no window's: it says that there is none.
        let window = Some(state.index).filter(|slot| *slot != CLOSED).map(usize::from);
        let tables = &mut self.tables;
        state.used.drain_rows(ENTRIES, |first| {
            // BOUND: `ROW`.
            for index in first..first + ROW {
                // A hart may be about to come to it: it has to be there at any time.
                if Some(index) != window {
                    tables.write(table, index, Entry::NONE.0);
                }
            }
        });
    }

    /// Writes zeros to rows of a table that have other entries, to so many at most. How many more it could have been.
    fn clear(&mut self, table: u16, most: usize) -> usize {
        let tables = &mut self.tables;
        self.states[usize::from(table)].used.drain_rows(most, |first| tables.clear_row(table, first))
    }

    /// The table that leads to a table.
    pub fn parent(&self, table: u16) -> u16 {
        self.state(table).parent
    }

    /// The table at an address, which is one of the pool's.
    pub fn number(&self, at: HostPhysical) -> u16 {
        self.tables.number(at)
    }

    /// Takes a clean table, which nothing leads to.
    pub fn take_clean(&mut self) -> Option<u16> {
        let table = self.clean.pop(&mut self.states)?;
        self.taken += 1;
        // What is clean has nothing that is used, and whoever has it in a list says where.
        let age = self.taken;
        let state = self.state_mut(table);
        (state.parent, state.index, state.level) = (NONE, 0, 0);
        (state.splinters_of, state.children, state.contiguous, state.age) = (0, 0, false, age);
        Some(table)
    }

    /// Takes a clean table for an entry of another one. The entry is not written yet.
    pub fn take(&mut self, owned: &mut Owned, parent: u16, index: usize, level: u8) -> Option<u16> {
        let table = self.take_clean()?;
        self.state_mut(parent).children += 1;
        let state = self.state_mut(table);
        state.parent = parent;
        state.index = index as u16;
        state.level = level;
        owned.append(&mut self.states, table);
        Some(table)
    }

    /// Has it no entry but that of a window? Then no table is below it.
    pub fn is_unused(&self, table: u16) -> bool {
        self.state(table).used.is_empty()
    }

    /// Does a table lead to no other one? Then it can be [given back](Self::give_back).
    pub fn is_childless(&self, table: u16) -> bool {
        self.state(table).children == 0
    }

    /// Gives back a table that leads to no other one, and takes it out of the one that leads to it.
    pub fn give_back(&mut self, owned: &mut Owned, table: u16) {
        let TableState { parent, index, .. } = *self.state(table);
        self.write(parent, usize::from(index), Entry::NONE);
        self.state_mut(parent).children -= 1;
        owned.unlink(&mut self.states, table);
        self.dirty.append(&mut self.states, table);
    }

    /// Gives back all tables of a tree, by a splice, and its root.
    pub fn give_back_all(&mut self, owned: &mut Owned, root: u16) {
        self.dirty.splice(&mut self.states, &mut owned.pages);
        self.dirty.splice(&mut self.states, &mut owned.above);
        if root != NONE {
            let state = self.state_mut(root);
            if state.index != CLOSED {
                // To be cleared with all else.
                state.used.insert(usize::from(state.index));
            }
            self.dirty.append(&mut self.states, root);
        }
    }

    /// Has a root lead to a window, and to no other one.
    pub fn open(&mut self, root: u16, opening: Opening) {
        let Opening { slot, entry } = opening;
        if slot == CLOSED {
            return;
        }
        self.tables.write(root, usize::from(slot), entry.0);
        let state = self.state_mut(root);
        let before = core::mem::replace(&mut state.index, slot);
        if before != CLOSED && before != slot {
            self.tables.write(root, usize::from(before), Entry::NONE.0);
        }
    }

    /// Those that can be taken.
    #[cfg(test)]
    pub fn clean_tables(&self) -> Vec<u16> {
        let next = |table: &u16| Some(self.state(*table).next).filter(|next| *next != NONE);
        core::iter::successors(Some(self.clean.first).filter(|first| *first != NONE), next).collect()
    }

    /// Where a table is.
    pub fn address(&self, table: u16) -> HostPhysical {
        self.tables.address(table)
    }

    pub fn read(&self, table: u16, index: usize) -> Entry {
        Entry(self.tables.read(table, index))
    }

    /// Those of a row of entries, of which this is the first one, that aren't nothing, as bits from that one on.
    pub fn used_row(&self, table: u16, first: usize) -> u64 {
        self.state(table).used.row(first)
    }

    /// Fills in an entry that was nothing. It is to be [noted](Self::note_row) at last.
    #[inline(always)]
    pub fn fill(&mut self, table: u16, index: usize, entry: Entry) {
        self.tables.write(table, index, entry.0);
    }

    /// Those of a row that are 1 were filled in.
    pub fn note_row(&mut self, table: u16, first: usize, filled: u64) {
        self.state_mut(table).used.insert_row(first, filled);
    }

    /// Clears an entry, and those of the aligned range of so many that it is in.
    pub fn clear_range(&mut self, table: u16, index: usize, count: usize) {
        let first = index / count * count;
        // BOUND: as many as that are.
        for index in first..first + count {
            self.write(table, index, Entry::NONE);
        }
    }

    pub fn write(&mut self, table: u16, index: usize, entry: Entry) {
        self.tables.write(table, index, entry.0);
        let used = &mut self.states[usize::from(table)].used;
        if entry.is_none() { used.remove(index) } else { used.insert(index) }
    }
}
