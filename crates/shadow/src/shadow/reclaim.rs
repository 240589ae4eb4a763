//! Tables that are taken from somebody when none is free.
use super::{PAGES_OF_AN_INSTRUCTION, Shadow};
use crate::Tables;
use crate::fence::Due;
use crate::pool::Reclaim;
use crate::view::View;

/// Whose a tree is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    Space(usize),
    Global,
}

impl<T: Tables, V: View> Shadow<'_, T, V> {
    /// Takes tables from somebody, or finds out that the next call has to take all of somebody's. Never those of the last pages that were filled in, as many as an instruction can need,
    /// unless it takes all: so each instruction has all of its pages at last, however often one of them takes the table of another.
    pub(super) fn reclaim(&mut self) -> Due {
        if !self.takes_all {
            if let Some(number) = self.remains.next() {
                self.give_back_all(number);
                return Due::Nothing;
            }
            if self.choices.reclaim == Reclaim::Fifo {
                let oldest = self.oldest();
                self.takes_all = oldest.is_none();
                return oldest.map_or(Due::Nothing, |(owner, table)| self.give_back(owner, table));
            }
        }
        self.takes_all = false;
        let idle = self.alive.without(self.active);
        let idle = idle.filter(|number| !self.spaces[*number].tree.owned.is_empty());
        // BOUND: the address spaces.
        match idle.min_by_key(|number| self.spaces[*number].activated) {
            Some(number) => {
                self.kill(number);
                self.give_back_all(number);
                Due::Nothing
            }
            None => self.forget_all(),
        }
    }

    /// Gives back all tables of one that is none any more.
    pub(super) fn give_back_all(&mut self, number: usize) {
        self.remains.remove(number);
        self.spaces[number].tree.give_back(&mut self.pool);
    }

    /// The table of pages that was taken first, if it isn't among the last ones. Nobody has any who is none any more.
    fn oldest(&self) -> Option<(Owner, u16)> {
        let global = &self.global.tree.owned;
        let mut count = global.pages();
        let (mut oldest, mut age) = (Owner::Global, u64::MAX);
        let mut found = global.oldest();
        if let Some(table) = found {
            age = self.pool.age(table);
        }
        // BOUND: the address spaces, some 15 instructions each.
        for (number, space) in self.spaces.iter().enumerate() {
            let owned = &space.tree.owned;
            if let Some(table) = owned.oldest() {
                count += owned.pages();
                let its_age = self.pool.age(table);
                if its_age < age {
                    (oldest, age, found) = (Owner::Space(number), its_age, Some(table));
                }
            }
        }
        Some((oldest, found?)).filter(|_| count > PAGES_OF_AN_INSTRUCTION)
    }

    /// Gives back a table of pages.
    fn give_back(&mut self, owner: Owner, table: u16) -> Due {
        match owner {
            Owner::Space(number) => {
                self.pool.give_back(&mut self.spaces[number].tree.owned, table);
                self.changed(number, Due::Space)
            }
            Owner::Global => {
                self.pool.give_back(&mut self.global.tree.owned, table);
                // Any of them may see it.
                self.distrust()
            }
        }
    }
}
