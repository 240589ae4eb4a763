//! A hart that keeps whatever the specification lets it keep: each entry that it has ever read of a table, until a fence that covers it.
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use ainori_space::{HostPhysical, PAGE};

use super::guest::{A, D, G, N, R, U, V, W, X};
use crate::*;

const POOL: u64 = 0x40_0000_0000;

/// Where the hypervisor's own tables are that windows lead to, one for each format. Their pages are none of the guest's.
const WINDOWS: u64 = 0x50_0000_0000;

/// The pool of tables. Before anybody uses one it is all zeros.
#[derive(Clone, Default)]
pub struct Pool {
    entries: Rc<RefCell<BTreeMap<(u16, usize), u64>>>,
    /// An entry that isn't to change: the window of the root that the hart walks.
    held: Rc<Cell<Option<(u16, usize)>>>,
}

/// A window in this slot.
pub fn window(slot: u16) -> Window {
    Window { slot, tables: [0, 1, 2].map(|number| HostPhysical(WINDOWS + number * PAGE)) }
}

/// Does an entry lead to the hypervisor's own tables?
fn leads_to_window(entry: u64) -> bool {
    (WINDOWS..WINDOWS + 3 * PAGE).contains(&host_of(entry))
}

/// No test has more tables.
const MOST_TABLES: u64 = 1024;

impl Pool {
    /// Is there a table at an address?
    pub fn holds(&self, at: HostPhysical) -> bool {
        (POOL..POOL + MOST_TABLES * PAGE).contains(&at.0) && at.0.is_multiple_of(PAGE)
    }

    /// Has a root of a format this window, and no other one?
    pub fn has_window(&self, root: HostPhysical, format: Format, window: Window) -> bool {
        let root = self.number(root);
        let entries = self.entries.borrow();
        let found = entries.range((root, 0)..=(root, 511)).filter(|(_, entry)| leads_to_window(**entry));
        let found: Vec<_> = found.map(|((_, index), entry)| (*index, *entry)).collect();
        found == [(usize::from(window.slot), (window.tables[format as usize].0 / PAGE) << 10 | V)]
    }

    /// From now on the window of this root stays as it is.
    pub fn hold(&self, root: HostPhysical, window: Option<Window>) {
        self.held.set(window.map(|window| (self.number(root), usize::from(window.slot))));
    }

    /// Is a table all zeros?
    pub fn is_clean(&self, table: u16) -> bool {
        self.entries.borrow().range((table, 0)..=(table, 511)).all(|(_, entry)| *entry == 0)
    }
}

impl Tables for Pool {
    const ROWS_AT_ONCE: usize = 24;

    fn address(&self, table: u16) -> HostPhysical {
        HostPhysical(POOL + u64::from(table) * PAGE)
    }

    fn number(&self, at: HostPhysical) -> u16 {
        ((at.0 - POOL) / PAGE) as u16
    }

    fn read(&self, table: u16, index: usize) -> u64 {
        assert!(index < 512);
        self.entries.borrow().get(&(table, index)).copied().unwrap_or(0)
    }

    fn write(&mut self, table: u16, index: usize, entry: u64) {
        assert!(index < 512);
        let before = self.entries.borrow_mut().insert((table, index), entry);
        let is_held = self.held.get() == Some((table, index));
        assert!(!is_held || before == Some(entry), "the hart's window is {entry:#x} at {index}");
    }
}

/// An entry that a hart has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Kept {
    tag: u8,
    level: u32,
    /// The addresses that it is for: those which agree with this above the level's bits.
    prefix: u64,
    entry: u64,
}

/// What a hart may use for an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Usable {
    pub host: u64,
    /// As in an entry: R, W, X, U.
    pub flags: u64,
    /// The memory type, likewise.
    pub memory_type: u64,
}

#[derive(Default)]
pub struct Hart {
    kept: Vec<Kept>,
}

impl Hart {
    /// Carries out what is due, of the tag that is active.
    pub fn fence(&mut self, pool: &Pool, active: Active, due: Due) {
        let is_of = |kept: &Kept| kept.tag == active.tag;
        match due {
            Due::Nothing => {}
            Due::Space | Due::Root => self.kept.retain(|kept| !is_of(kept)),
            Due::Page(address) => {
                // Leaves alone, and where there was nothing if there is a leaf now.
                let level = leaf_level(pool, active, address.0);
                let is_leaf =
                    |kept: &Kept| kept.entry & (R | X) != 0 || kept.entry & V == 0 && kept.level <= level;
                let is_here = |kept: &Kept| address.0 >> shift(kept.level) == kept.prefix;
                self.kept.retain(|kept| !(is_of(kept) && is_leaf(kept) && is_here(kept)));
            }
        }
    }

    /// Where walks end that use what the hart has kept wherever it has kept something. `None`: at an entry that isn't valid.
    pub fn kept_walks(&self, pool: &Pool, active: Active, address: u64) -> Vec<Option<Usable>> {
        let mut at = vec![active.root.0];
        let mut ends = Vec::new();
        for level in (0..active.format.levels()).rev() {
            let prefix = address >> shift(level);
            let is_of = |kept: &&Kept| (kept.tag, kept.level, kept.prefix) == (active.tag, level, prefix);
            let mut entries: Vec<u64> = self.kept.iter().filter(is_of).map(|kept| kept.entry).collect();
            if entries.is_empty() {
                let read = |table: u64| pool.read(pool.number(HostPhysical(table)), prefix as usize & 511);
                entries = at.drain(..).map(read).collect();
            }
            at.clear();
            for entry in entries {
                if entry & V == 0 || leads_to_window(entry) {
                    ends.push(None);
                } else if entry & (R | X) == 0 {
                    at.push(host_of(entry));
                } else {
                    ends.push(Some(usable_of(entry, level, address)));
                }
            }
        }
        ends
    }

    /// All that the hart could use for an address: by what it reads now, and by what it has kept, in any combination. And what it would find if it had kept
    /// nothing.
    pub fn walk(&mut self, pool: &Pool, active: Active, address: u64) -> (Vec<Usable>, Option<Usable>) {
        let levels = active.format.levels();
        let unused = 64 - shift(levels);
        if (address << unused) as i64 >> unused != address as i64 {
            return (Vec::new(), None);
        }
        let mut at = vec![(active.root.0, true)];
        let mut usable = Vec::new();
        let mut fresh = None;
        for level in (0..levels).rev() {
            let prefix = address >> shift(level);
            let mut entries = Vec::new();
            for (table, is_fresh) in at.drain(..) {
                let entry = pool.read(pool.number(HostPhysical(table)), prefix as usize & 511);
                entries.push((entry, is_fresh));
                let kept = Kept { tag: active.tag, level, prefix, entry };
                assert!(!leads_to_window(entry) || level == levels - 1, "a window that isn't in a root");
                if !self.kept.contains(&kept) {
                    self.kept.push(kept);
                }
            }
            let kept = self.kept.iter().filter(|kept| kept.tag == active.tag && kept.level == level);
            entries.extend(kept.filter(|kept| kept.prefix == prefix).map(|kept| (kept.entry, false)));
            for (entry, is_fresh) in entries {
                if entry & V == 0 {
                    continue;
                }
                let host = host_of(entry);
                if leads_to_window(entry) {
                    // The guest gets at nothing there.
                    continue;
                }
                if entry & (R | X) == 0 {
                    assert_eq!(entry & (W | U | G | A | D | 3 << 61 | N), 0, "a pointer has nothing else");
                    at.push((host, is_fresh));
                    continue;
                }
                let found = usable_of(entry, level, address);
                usable.push(found);
                if is_fresh {
                    fresh = Some(found);
                }
            }
            at.sort_unstable();
            at.dedup();
        }
        usable.sort_unstable();
        usable.dedup();
        (usable, fresh)
    }
}

/// At which level the walk of an address ends now.
fn leaf_level(pool: &Pool, active: Active, address: u64) -> u32 {
    let mut table = active.root.0;
    for level in (1..active.format.levels()).rev() {
        let entry = pool.read(pool.number(HostPhysical(table)), (address >> shift(level)) as usize & 511);
        if entry & V == 0 || entry & (R | X) != 0 || leads_to_window(entry) {
            return level;
        }
        table = host_of(entry);
    }
    0
}

fn host_of(entry: u64) -> u64 {
    (entry >> 10 & ((1 << 44) - 1)) * PAGE
}

/// A leaf.
fn usable_of(entry: u64, level: u32, address: u64) -> Usable {
    let (host, size) = (host_of(entry), 1 << shift(level));
    assert_eq!(entry & N, 0);
    assert_eq!(entry & (G | A | D), A | D);
    assert_eq!(host & (size - 1), 0, "a leaf is aligned");
    let flags = entry & (R | W | X | U);
    Usable { host: host | (address & (size - 1)), flags, memory_type: entry >> 61 & 3 }
}

fn shift(level: u32) -> u32 {
    12 + 9 * level
}
