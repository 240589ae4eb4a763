//! The translation of one guest, and how it changes.
use crate::entry::Entry;
use crate::format::{ENTRIES, is_first, shift, span};
use crate::{
    Attributes, Error, Format, Frames, GuestPhysical, HostPhysical, Mapped, Obstacle, Protected, Reach,
    Rights, Table, TableFence, Tables, Unmapped,
};

/// One past the last host-physical address that an entry can hold.
const HOST_END: u64 = 1 << 56;

/// Second-stage tables: what a guest sees at its physical addresses.
///
/// Beside guests, each change takes as long as its range has leaves, so it is asked for in pieces as small as the caller's preemption points want.
pub struct Space<T> {
    tables: T,
    root: Table,
    format: Format,
}

/// An entry and its place.
struct Slot {
    table: Table,
    index: usize,
    level: u32,
    entry: Entry,
}

/// What an address is translated to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Translation {
    /// The host-physical address.
    pub host: HostPhysical,
    /// What guests may do there.
    pub attributes: Attributes,
    /// Bytes that the leaf maps.
    pub size: u64,
}

impl<T: Tables> Space<T> {
    /// A space in which nothing is mapped. `root`: 16 KiB of zeros, aligned to that, which `tables` can reach as well.
    pub const fn new(format: Format, root: Table, tables: T) -> Self {
        Self { tables, root, format }
    }

    /// The root table, for `hgatp`.
    pub const fn root(&self) -> Table {
        self.root
    }

    /// Maps `[guest, guest + size)` to `[host, host + size)`, each part by the largest leaf that both addresses allow.
    ///
    /// # Errors
    /// If the addresses or the size are no multiples of 4 KiB, if something is mapped in the range, or was and isn't fenced yet, and if there are
    /// not enough tables.
    pub fn map(
        &mut self,
        guest: GuestPhysical,
        host: HostPhysical,
        size: u64,
        attributes: Attributes,
    ) -> Result<Mapped, Error> {
        let (start, end) = self.range(guest, size, host.0)?;
        let refuse = |at, what| Err(Error { at: GuestPhysical(at), what });
        if host.0.checked_add(size).is_none_or(|end| end > HOST_END) {
            return refuse(start, Obstacle::OutOfRange);
        }
        let host_of = |at: u64| HostPhysical(host.0 + (at - start));
        let mut needed = 0;
        let mut at = start;
        // BOUND: the leaves that the range gets, some 100 instructions each.
        while at < end {
            let (slot, level) = self.next_leaf(at, host_of(at), end);
            if !slot.entry.is_none() {
                return refuse(at, if slot.entry.is_valid() { Obstacle::Mapped } else { Obstacle::Unfenced });
            }
            // The tables between, but for those that a leaf before this one needs as well.
            // BOUND: the levels.
            needed += (level..slot.level).filter(|&level| at == start || is_first(at, level + 1)).count();
            at += span(level);
        }
        if !self.tables.reserve(needed) {
            return refuse(start, Obstacle::NoTables);
        }
        let mut reach = if needed == 0 { Reach::Leaves } else { Reach::Tables };
        at = start;
        // BOUND: the same again, some 120 instructions each.
        while at < end {
            let (slot, level) = self.next_leaf(at, host_of(at), end);
            let mut entry = Entry::leaf(host_of(at), attributes);
            // From below: what a hart can come to is complete.
            // BOUND: the levels.
            for level in level..slot.level {
                let table = self.tables.take();
                self.tables.write(table, self.index(at, level), entry.0);
                entry = Entry::pointer(table);
            }
            self.write(&slot, entry);
            // A table in which all was unmapped, and not all is fenced yet, is in use again.
            // BOUND: the levels.
            for level in slot.level + 1..self.format.levels() {
                let parent = self.slot_above(at, level);
                if !parent.entry.is_valid() {
                    self.write(&parent, parent.entry.valid());
                    reach = Reach::Tables;
                }
            }
            at += span(level);
        }
        Ok(Mapped(TableFence { start: guest, size, reach }))
    }

    /// Unmaps a range, all of which is mapped. A leaf that reaches beyond it is split. Harts go on using what they have cached; the frames come back
    /// by [`Unmapped::fenced`].
    ///
    /// # Errors
    /// If start or size are no multiples of 4 KiB, if something in the range isn't mapped, and if there are not enough tables to split a leaf.
    pub fn unmap(&mut self, start: GuestPhysical, size: u64) -> Result<Unmapped, Error> {
        let mut reach = self.isolate(start, size)?;
        let end = start.0 + size;
        let mut at = start.0;
        // BOUND: the leaves of the range, some 80 instructions each, and for each table that it leaves 5 more for each of its 512 entries.
        while at < end {
            let slot = self.slot(at);
            self.write(&slot, slot.entry.invalid());
            let next = at + span(slot.level);
            // Tables that have nothing valid left are taken out as well, from below.
            // BOUND: the levels.
            for level in slot.level + 1..self.format.levels() {
                let parent = self.slot_above(at, level);
                if !leaves(next, end, level) || self.any(&parent, Entry::is_valid) {
                    break;
                }
                self.write(&parent, parent.entry.invalid());
                reach = Reach::Tables;
            }
            at = next;
        }
        Ok(Unmapped { fence: TableFence { start, size, reach }, root: self.root })
    }

    /// Changes what guests may do in a range, all of which is mapped. A leaf that reaches beyond it is split.
    ///
    /// # Errors
    /// As for [`Self::unmap`].
    pub fn protect(&mut self, start: GuestPhysical, size: u64, rights: Rights) -> Result<Protected, Error> {
        let reach = self.isolate(start, size)?;
        let end = start.0 + size;
        let mut at = start.0;
        let mut takes_away = false;
        // BOUND: the leaves of the range, some 70 instructions each.
        while at < end {
            let slot = self.slot(at);
            takes_away |= slot.entry.attributes().is_some_and(|old| !rights.include(old.rights));
            self.write(&slot, slot.entry.with_rights(rights));
            at += span(slot.level);
        }
        Ok(Protected { fence: TableFence { start, size, reach }, takes_away })
    }

    /// What an address is translated to by a hart that has cached nothing. `None`: it faults.
    pub fn translate(&self, address: GuestPhysical) -> Option<Translation> {
        let slot = (address.0 < self.format.end()).then(|| self.slot(address.0))?;
        let attributes = slot.entry.attributes().filter(|_| slot.entry.is_valid())?;
        let size = span(slot.level);
        Some(Translation {
            host: HostPhysical(slot.entry.address().0 | address.0 & (size - 1)),
            attributes,
            size,
        })
    }

    /// Hands out what was unmapped and is fenced; and frees the tables.
    pub(crate) fn take_back(&mut self, start: GuestPhysical, size: u64, mut frames: impl FnMut(Frames)) {
        let end = start.0 + size;
        let mut at = start.0;
        // BOUND: the leaves of the range, some 80 instructions each, and for each table that it leaves 5 more for each of its 512 entries.
        while at < end {
            let slot = self.slot(at);
            let size = span(slot.level);
            self.write(&slot, Entry::NONE);
            frames(Frames { guest: GuestPhysical(at), host: slot.entry.address(), size });
            let next = at + size;
            // BOUND: the levels.
            for level in slot.level + 1..self.format.levels() {
                let parent = self.slot_above(at, level);
                // The pointer to a table was made invalid together with the last valid entry of the table. Where that entry is gone, too, all harts
                // have fenced since then.
                if !leaves(next, end, level) || self.any(&parent, |entry| !entry.is_none()) {
                    break;
                }
                self.write(&parent, Entry::NONE);
                if let Some(table) = parent.entry.table() {
                    self.tables.free(table);
                }
            }
            at = next;
        }
    }

    /// Sees to it that a range is mapped, and by leaves that don't reach beyond it. What has changed.
    fn isolate(&mut self, start: GuestPhysical, size: u64) -> Result<Reach, Error> {
        let (start, end) = self.range(start, size, 0)?;
        let refuse = |at, what| Err(Error { at: GuestPhysical(at), what });
        let (mut first, mut last) = (0, 0);
        let mut at = start;
        // BOUND: the leaves of the range, some 50 instructions each.
        while at < end {
            let slot = self.slot(at);
            if !slot.entry.is_valid() {
                return refuse(
                    at,
                    if slot.entry.is_none() { Obstacle::NotMapped } else { Obstacle::Unfenced },
                );
            }
            last = slot.level;
            first = if at == start { last } else { first };
            at = (at | (span(last) - 1)) + 1;
        }
        // A leaf of each level that the start or the end lies within is split, once if it is the same for both.
        let of_start = |level| level <= first && !is_first(start, level);
        let of_end = |level| level <= last && !is_first(end, level);
        let is_same = |level| of_start(level) && start >> shift(level) == end >> shift(level);
        let count = |level| u32::from(of_start(level)) + u32::from(of_end(level) && !is_same(level));
        // BOUND: the levels.
        let needed: u32 = (1..self.format.levels()).map(count).sum();
        if needed == 0 {
            return Ok(Reach::Leaves);
        }
        if !self.tables.reserve(needed as usize) {
            return refuse(start, Obstacle::NoTables);
        }
        self.split_at(start);
        self.split_at(end);
        Ok(Reach::Tables)
    }

    /// Splits leaves until none begins before an address and ends behind it.
    fn split_at(&mut self, at: u64) {
        // BOUND: the levels, some 10,000 instructions each.
        for level in (1..self.format.levels()).rev() {
            if is_first(at, level) {
                continue;
            }
            let slot = self.slot_above(at, level);
            if slot.level != level || !slot.entry.is_valid() || !slot.entry.is_leaf() {
                continue;
            }
            let table = self.tables.take();
            let mut part = slot.entry;
            // BOUND: the 512 entries of a table.
            for index in 0..ENTRIES {
                self.tables.write(table, index, part.0);
                part = part.further(span(level - 1));
            }
            self.write(&slot, Entry::pointer(table));
        }
    }

    /// Start and end of a range, if it is one that can be mapped. `host` is to be aligned as well.
    fn range(&self, start: GuestPhysical, size: u64, host: u64) -> Result<(u64, u64), Error> {
        let refuse = |what| Err(Error { at: start, what });
        if !is_first(start.0 | size | host, 0) {
            return refuse(Obstacle::Misaligned);
        }
        match start.0.checked_add(size) {
            Some(end) if end <= self.format.end() => Ok((start.0, end)),
            _ => refuse(Obstacle::OutOfRange),
        }
    }

    /// Where a range that ends at `end` gets its leaf for `at`: the entry at which the walk ends now, and the level of the largest leaf that is to be
    /// there or below.
    fn next_leaf(&self, at: u64, host: HostPhysical, end: u64) -> (Slot, u32) {
        let slot = self.slot(at);
        let mut level = slot.level;
        // BOUND: the levels.
        while level > 0 && (!is_first(at | host.0, level) || span(level) > end - at) {
            level -= 1;
        }
        (slot, level)
    }

    /// The entry at which the walk of an address ends: a leaf, valid or not, or nothing.
    fn slot(&self, at: u64) -> Slot {
        self.slot_above(at, 0)
    }

    /// The same, but no further down than a level.
    fn slot_above(&self, at: u64, lowest: u32) -> Slot {
        let mut level = self.format.levels() - 1;
        let mut table = self.root;
        // BOUND: the levels.
        loop {
            let index = self.index(at, level);
            let entry = Entry(self.tables.read(table, index));
            match entry.table() {
                Some(next) if level > lowest => {
                    table = next;
                    level -= 1;
                }
                _ => return Slot { table, index, level, entry },
            }
        }
    }

    /// The index of an address's entry in a table of a level.
    fn index(&self, at: u64, level: u32) -> usize {
        let index = (at >> shift(level)) as usize;
        if level + 1 == self.format.levels() { index } else { index & (ENTRIES - 1) }
    }

    fn write(&mut self, slot: &Slot, entry: Entry) {
        self.tables.write(slot.table, slot.index, entry.0);
    }

    /// Does it hold for any entry of the table that a pointer leads to?
    fn any(&self, pointer: &Slot, holds: impl Fn(Entry) -> bool) -> bool {
        let has = |table| {
            // BOUND: the 512 entries of a table.
            (0..ENTRIES).any(|index| holds(Entry(self.tables.read(table, index))))
        };
        pointer.entry.table().is_some_and(has)
    }
}

/// Does a change that goes on at `next`, up to `end`, leave the table below an entry of this level?
fn leaves(next: u64, end: u64, level: u32) -> bool {
    next == end || is_first(next, level)
}
