//! Pages that are filled in beside the one that faulted.
use ainori_space::{Attributes, GuestPhysical};

use super::Shadow;
use crate::entry::{Entry, GuestEntry, RightBits};
use crate::format::Format;
use crate::tree::Fill;
use crate::view::{self, View};
use crate::walk::PageLeaf;
use crate::{Memory, ROW, Tables};

/// Neighbours that are filled in with a page, at most: with more the step would take too long.
const MOST: u32 = 5;
/// The same where views are divided, and a step takes longer.
const MOST_OF_A_VIEW: u32 = 2;

/// A page that was filled in, as far as its neighbours are concerned: few words, as they may be kept until the next step.
#[derive(Debug, Clone, Copy)]
pub(super) struct FilledIn {
    /// The table of the shadow, and the first entry of the row in which it is.
    table: u16,
    first: u16,
    /// Where the row is in which the guest has its leaf, and that leaf.
    row: GuestPhysical,
    leaf: GuestEntry,
    entry: Entry,
    below: Attributes,
}

impl FilledIn {
    /// In this table, as this leaf of the guest's has it.
    pub(super) const fn new(table: u16, leaf: &PageLeaf, fill: &Fill) -> Self {
        let first = (Format::index(fill.address, 0) / ROW * ROW) as u16;
        let row = GuestPhysical(leaf.at.0 & !(ROW as u64 * 8 - 1));
        Self { table, first, row, leaf: leaf.entry, entry: fill.entry, below: fill.below }
    }
}

impl<T: Tables, V: View> Shadow<'_, T, V> {
    /// With divided views, where a fault and this take too long for one step: right behind a [fault](Self::fault) that filled in a page, and before anything else is called, fills in some of the
    /// pages beside it. It need not be called.
    #[inline(always)]
    pub fn fill_neighbours(&mut self, memory: &impl Memory) {
        if let Some(page) = self.with_neighbours.take() {
            self.fault_around(memory, page);
        }
    }

    /// Fault-around (Linux's word): a page was filled in, in this table, as this leaf of the guest's has it. So are its neighbours now, those whose leaves are in a row with that one, where a walk would find a page of the
    /// same kind that has been used before: nothing in the guest's tables is to be written for it, and a hart may walk at any time, whether there is an access or not. Mostly the guest comes to
    /// them next, and each of them would be a fault.
    ///
    /// No fence is due: a hart that has kept that there was nothing faults, and gets it then.
    #[inline(never)]
    pub(super) fn fault_around(&mut self, memory: &impl Memory, page: FilledIn) {
        let FilledIn { table, first, row, leaf, .. } = page;
        let first = usize::from(first);
        if self.pool.state(table).splinters_of != 0 {
            return;
        }
        let of_view = view::rights(self.spaces[self.active].view, (true, true, true), leaf.is_user());
        let may = RightBits::new(of_view).and(RightBits::of(page.below.rights));
        let used = self.pool.used_row(table, first);
        let (mut filled, mut left) = (0, if V::IS_DIVIDED { MOST_OF_A_VIEW } else { MOST });
        // `ROW` entries, some 11 instructions each, and 39 more for each of `MOST`.
        memory.load_row(row, |offset, entry| {
            let entry = GuestEntry(entry);
            if used >> offset & 1 != 0 || left == 0 || !entry.is_like(leaf) {
                return;
            }
            if let Some(below) = memory.translate(entry.address())
                && below.attributes == page.below
                && let Some(entry) = page.entry.like(below.host, entry.rights().and(may))
            {
                self.pool.fill(table, first + offset, entry);
                filled |= 1 << offset;
                left -= 1;
            }
        });
        self.pool.note_row(table, first, filled);
    }
}
