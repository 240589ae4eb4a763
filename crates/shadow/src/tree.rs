//! A tree of the shadow's tables.
use ainori_space::Attributes;

use crate::entry::{CONTIGUOUS_PAGES, Entry};
use crate::format::Format;
use crate::pool::{NONE, Owned, Pool};
use crate::window::Opening;
use crate::{Due, Tables, Virtual};

/// A root, and the tables below it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tree {
    pub root: u16,
    pub owned: Owned,
}

/// What is to be filled in, and where.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fill {
    pub address: Virtual,
    /// The level of the shadow's leaf.
    pub level: u32,
    /// The level of the guest's leaf, if that is larger; else 0.
    pub splinters_of: u32,
    pub contiguous: bool,
    pub entry: Entry,
    /// What the second stage has there.
    pub below: Attributes,
}

impl Fill {
    /// Is it a page of its own, as large as one of the guest's?
    pub const fn is_plain_page(&self) -> bool {
        self.level == 0 && self.splinters_of == 0 && !self.contiguous
    }

    /// What the tables of a level are to have splinters of.
    fn splinters(&self, level: u32) -> u8 {
        if self.splinters_of > level { self.splinters_of as u8 } else { 0 }
    }
}

/// What stands in the way of a fill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// More tables have to be free, and clean.
    Tables,
    /// A table that leads to others, where there is to be a large page, or splinters of another one: the tree has to be emptied.
    Tree,
}

/// What a tree had for an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Forgotten {
    /// Nothing.
    Nothing,
    /// An entry, which is gone.
    Entry,
    /// Several, which are gone.
    Entries,
    /// More than goes at once: it is all there still, and the tree is to be cleared.
    NotYet,
}

/// Where a walk down a tree has ended.
#[derive(Debug, Clone, Copy)]
pub(crate) enum End {
    /// At an entry that leads nowhere: nothing or a leaf, in a table of this level.
    Entry { table: u16, level: u32 },
    /// At an entry that leads to a table where there is to be a large page, or to one with splinters of another page.
    Other { table: u16 },
}

impl Tree {
    /// None yet.
    pub const ROOTLESS: Self = Self { root: NONE, owned: Owned::NONE };

    /// Gives back all of it.
    pub fn give_back(&mut self, pool: &mut Pool<impl Tables>) {
        pool.give_back_all(&mut self.owned, self.root);
        self.root = NONE;
    }

    /// Forgets all: its root is another table, with nothing in it but the window. If there is no clean one, it is the same one, which is emptied: a tree that a hart walks always has a root.
    pub fn renew(&mut self, pool: &mut Pool<impl Tables>, window: Opening) {
        if pool.is_unused(self.root) {
            pool.open(self.root, window);
            return;
        }
        match pool.take_clean() {
            Some(root) => {
                pool.open(root, window);
                self.give_back(pool);
                self.root = root;
            }
            None => {
                pool.give_back_all(&mut self.owned, NONE);
                pool.empty(self.root);
                pool.open(self.root, window);
            }
        }
    }
    /// Where a fill goes, if nothing is in its way. So many clean tables are to be left, whether it needs one or not.
    ///
    /// # Errors
    /// What is in the way.
    pub fn find(
        &self,
        pool: &Pool<impl Tables>,
        format: Format,
        fill: &Fill,
        left: usize,
    ) -> Result<End, Obstacle> {
        let end = self.descend(pool, format, fill);
        let needs_table = match end {
            End::Entry { level, .. } => level > fill.level,
            End::Other { table } if pool.is_childless(table) => true,
            End::Other { .. } => return Err(Obstacle::Tree),
        };
        if pool.clean() < left + usize::from(needs_table) { Err(Obstacle::Tables) } else { Ok(end) }
    }

    /// Does a fill that ends there change an entry of the root?
    pub fn changes_root(&self, pool: &Pool<impl Tables>, end: End) -> bool {
        self.root
            == match end {
                End::Entry { table, .. } => table,
                End::Other { table } => pool.parent(table),
            }
    }

    /// Fills in an entry, where [`Self::find`] has found its place. If its table isn't there, does a step towards that: takes the next one on the way to it, or gives back one that is in the way.
    /// Returns which fence is due beside one for the address, and the table in which the entry is, if it is there.
    #[inline(always)]
    pub fn insert(&mut self, pool: &mut Pool<impl Tables>, end: End, fill: &Fill) -> (Due, Option<u16>) {
        match end {
            // Mostly its table is there.
            End::Entry { table, level } if level == fill.level => {
                pool.state_mut(table).contiguous |= fill.contiguous;
                pool.write(table, Format::index(fill.address, level), fill.entry);
                (Due::Nothing, Some(table))
            }
            End::Entry { table, level } => {
                self.insert_table(pool, (table, level), fill);
                (Due::Space, None)
            }
            End::Other { table } => (self.give_back_table(pool, table), None),
        }
    }

    /// The same with so many tables at a time, at most, as long as more are clean than are to be left.
    #[inline(always)]
    pub fn insert_at_once(
        &mut self,
        pool: &mut Pool<impl Tables>,
        end: End,
        fill: &Fill,
        limits: (u32, usize),
    ) -> (Due, Option<u16>) {
        match end {
            End::Entry { table, level } if level > fill.level => {
                self.insert_tables(pool, (table, level), fill, limits);
                (Due::Space, None)
            }
            end => self.insert(pool, end, fill),
        }
    }

    #[inline(never)]
    fn insert_tables(
        &mut self,
        pool: &mut Pool<impl Tables>,
        (mut table, mut level): (u16, u32),
        fill: &Fill,
        (most, left): (u32, usize),
    ) {
        // BOUND: the levels.
        for _ in 0..most {
            if level == fill.level || pool.clean() <= left {
                return;
            }
            let Some(next) = self.insert_table(pool, (table, level), fill) else { return };
            (table, level) = (next, level - 1);
        }
    }

    /// Takes a table for the entry of another one, of this level. Harts may keep that there was nothing, or a larger page, and only a fence for all orders an entry that leads to a table.
    #[inline(never)]
    fn insert_table(
        &mut self,
        pool: &mut Pool<impl Tables>,
        (table, level): (u16, u32),
        fill: &Fill,
    ) -> Option<u16> {
        let index = Format::index(fill.address, level);
        let below = level - 1;
        let next = pool.take(&mut self.owned, table, index, below as u8)?;
        pool.state_mut(next).splinters_of = fill.splinters(below);
        pool.write(table, index, Entry::pointer(pool.address(next)));
        Some(next)
    }

    /// Gives back a table that is in the way.
    #[inline(never)]
    fn give_back_table(&mut self, pool: &mut Pool<impl Tables>, table: u16) -> Due {
        pool.give_back(&mut self.owned, table);
        Due::Space
    }

    /// Where a page at an address would be: in which table, which holds pages of their own, and nothing at this index.
    pub fn gap(&self, pool: &Pool<impl Tables>, format: Format, address: Virtual) -> Option<(u16, usize)> {
        let mut table = self.root;
        // BOUND: the levels.
        for level in (1..format.levels()).rev() {
            let entry = pool.read(table, Format::index(address, level));
            if !entry.leads_on() {
                return None;
            }
            table = pool.number(entry.address());
        }
        let index = Format::index(address, 0);
        let is_gap = pool.read(table, index).is_none() && pool.state(table).splinters_of == 0;
        is_gap.then_some((table, index))
    }

    /// Forgets what it has for an address.
    pub fn forget(&mut self, pool: &mut Pool<impl Tables>, format: Format, address: Virtual) -> Forgotten {
        let mut table = self.root;
        let mut level = format.levels() - 1;
        let mut index = Format::index(address, level);
        let mut entry = pool.read(table, index);
        // BOUND: the levels.
        while entry.leads_on() && level > 0 {
            level -= 1;
            table = pool.number(entry.address());
            index = Format::index(address, level);
            entry = pool.read(table, index);
        }
        let state = pool.state(table);
        if u32::from(state.splinters_of) > level {
            // All that it has is of one page of the guest, and so is what those below a table of splinters have.
            let is_below_others = u32::from(pool.state(pool.parent(table)).splinters_of) > level + 1;
            if is_below_others || !pool.is_childless(table) {
                return Forgotten::NotYet;
            }
            pool.give_back(&mut self.owned, table);
            return Forgotten::Entries;
        }
        if state.contiguous {
            pool.clear_range(table, index, CONTIGUOUS_PAGES as usize);
            return Forgotten::Entries;
        }
        if entry.is_none() {
            return Forgotten::Nothing;
        }
        pool.write(table, index, Entry::NONE);
        Forgotten::Entry
    }

    /// Goes down as far as there are tables, and not below the level of the fill.
    fn descend(&self, pool: &Pool<impl Tables>, format: Format, fill: &Fill) -> End {
        let mut table = self.root;
        let mut level = format.levels() - 1;
        // BOUND: the levels.
        loop {
            let entry = pool.read(table, Format::index(fill.address, level));
            if !entry.leads_on() || level == 0 {
                return End::Entry { table, level };
            }
            let next = pool.number(entry.address());
            if level == fill.level || pool.state(next).splinters_of != fill.splinters(level - 1) {
                return End::Other { table: next };
            }
            table = next;
            level -= 1;
        }
    }
}
