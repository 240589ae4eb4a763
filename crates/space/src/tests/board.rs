//! Memory that tables lie in, and harts that walk them with all that they may have cached.
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use crate::{Format, GuestPhysical, HostPhysical, Reach, Space, Table, TableFence, Tables};

/// Where the root is. Other tables come behind it.
pub const ROOT: Table = Table(HostPhysical(0x10_0000));

/// Harts of the board.
pub const HARTS: usize = 2;

/// An entry's place.
type Place = (Table, usize);

/// What a hart gets for an address: the host-physical address and the bits R, W, X; or a fault.
pub type Outcome = Option<(u64, u64)>;

/// The board's memory, as far as tables lie in it.
pub struct Memory {
    tables: BTreeMap<Table, Vec<u64>>,
    freed: Vec<Table>,
    next: u64,
    reserved: usize,
    /// Tables that there can be beside the root.
    pub limit: usize,
    /// Each store since it was last cleared, with what was there before.
    pub stores: Vec<(Place, u64)>,
    /// Per hart, what it may have cached: values that a place has had since the hart's last fence, the oldest first.
    cached: [HashMap<Place, Vec<u64>>; HARTS],
    /// Tables that an entry has led to since they were taken. Others no hart reads.
    linked: BTreeSet<Table>,
}

/// The board, shared with a [`Space`].
pub type Board = Rc<RefCell<Memory>>;

/// A board with so many tables, and a space on it.
pub fn board(format: Format, limit: usize) -> (Board, Space<Board>) {
    let memory = Memory {
        tables: BTreeMap::from([(ROOT, vec![0; 2048])]),
        freed: Vec::new(),
        next: ROOT.0.0 + (16 << 10),
        reserved: 0,
        limit,
        stores: Vec::new(),
        cached: Default::default(),
        linked: BTreeSet::from([ROOT]),
    };
    let board = Rc::new(RefCell::new(memory));
    (board.clone(), Space::new(format, ROOT, board))
}

impl Tables for Board {
    fn reserve(&mut self, count: usize) -> bool {
        let mut memory = self.borrow_mut();
        assert_eq!(memory.reserved, 0, "reserved, and never taken");
        let is_enough = memory.used() + count <= memory.limit;
        memory.reserved = if is_enough { count } else { 0 };
        is_enough
    }

    fn take(&mut self) -> Table {
        let mut memory = self.borrow_mut();
        memory.reserved = memory.reserved.checked_sub(1).expect("more is taken than was reserved");
        // The last that was freed is the first to be used again: who still reads it is seen to.
        let table = memory.freed.pop().unwrap_or(Table(HostPhysical(memory.next)));
        memory.next = memory.next.max(table.0.0 + 4096);
        memory.linked.remove(&table);
        memory.tables.insert(table, vec![0; 512]);
        table
    }

    fn free(&mut self, table: Table) {
        let mut memory = self.borrow_mut();
        let entries = memory.tables.remove(&table).expect("a table that was taken");
        assert!(entries.iter().all(|entry| *entry == 0), "a table is freed with something in it");
        memory.freed.push(table);
    }

    fn read(&self, table: Table, index: usize) -> u64 {
        self.borrow().read((table, index))
    }

    fn write(&mut self, table: Table, index: usize, entry: u64) {
        let mut memory = self.borrow_mut();
        let place = (table, index);
        let old = std::mem::replace(
            &mut memory.tables.get_mut(&table).expect("a table that was taken")[index],
            entry,
        );
        memory.stores.push((place, old));
        if let Kind::Pointer(next) = kind(entry) {
            memory.linked.insert(next);
        }
        if memory.linked.contains(&table) {
            memory.cached.iter_mut().for_each(|cached| cached.entry(place).or_default().push(old));
        }
    }
}

/// What a hart takes an entry for.
enum Kind {
    Invalid,
    Pointer(Table),
    Leaf { host: u64, rights: u64 },
}

/// As the specification says; the bits that the hypervisor leaves alone or always sets are checked.
fn kind(entry: u64) -> Kind {
    if entry & 1 == 0 {
        return Kind::Invalid;
    }
    let host = ((entry >> 10) & ((1 << 44) - 1)) << 12;
    let rights = entry >> 1 & 7;
    if rights == 0 {
        assert_eq!(entry & !(((1 << 44) - 1) << 10), 1, "a pointer with other bits");
        return Kind::Pointer(Table(HostPhysical(host)));
    }
    assert_eq!(entry & 0b11_1111_0000, 0b1101_0000, "U, A and D are set, G and the software's bits aren't");
    assert_eq!(entry >> 54 & 0b10_0111_1111, 0, "reserved bits");
    assert!(rights & 0b011 != 0b010, "writable, but not readable");
    Kind::Leaf { host, rights }
}

pub fn levels(format: Format) -> u32 {
    match format {
        Format::Sv39x4 => 3,
        Format::Sv48x4 => 4,
        Format::Sv57x4 => 5,
    }
}

fn index(address: u64, level: u32, levels: u32) -> usize {
    let mask = if level + 1 == levels { 2047 } else { 511 };
    (address >> (12 + 9 * level)) as usize & mask
}

impl Memory {
    /// Tables in use, without the root.
    pub fn used(&self) -> usize {
        self.tables.len() - 1
    }

    fn read(&self, (table, index): Place) -> u64 {
        self.tables.get(&table).expect("a table that was freed is read")[index]
    }

    /// All that a walk of an address by a hart can end with, each step of which uses what is in memory or what the hart may have cached. `None`: one
    /// that has cached nothing.
    pub fn walks(&self, hart: Option<usize>, format: Format, address: u64) -> BTreeSet<Outcome> {
        let mut outcomes = BTreeSet::new();
        self.walk(hart, ROOT, levels(format) - 1, levels(format), address, &mut outcomes);
        outcomes
    }

    fn walk(
        &self,
        hart: Option<usize>,
        table: Table,
        level: u32,
        levels: u32,
        address: u64,
        outcomes: &mut BTreeSet<Outcome>,
    ) {
        let place = (table, index(address, level, levels));
        let mut entries = BTreeSet::from([self.read(place)]);
        entries.extend(hart.and_then(|hart| self.cached[hart].get(&place)).into_iter().flatten());
        for entry in entries {
            match kind(entry) {
                Kind::Invalid => _ = outcomes.insert(None),
                Kind::Pointer(next) => {
                    assert!(level > 0, "a pointer in the lowest table");
                    self.walk(hart, next, level - 1, levels, address, outcomes);
                }
                Kind::Leaf { host, rights } => {
                    let offset = address & ((4096 << (9 * level)) - 1);
                    assert_eq!(host & ((4096 << (9 * level)) - 1), 0, "a misaligned superpage");
                    outcomes.insert(Some((host + offset, rights)));
                }
            }
        }
    }

    /// A hart executes the HFENCE.GVMA that is due, and no more.
    pub fn fence(&mut self, hart: usize, format: Format, fence: TableFence) {
        if fence.reach == Reach::Tables {
            self.cached[hart].clear();
            return;
        }
        let end = fence.start.0 + fence.size;
        let mut at = fence.start.0;
        while at < end {
            let (mut table, mut level) = (ROOT, levels(format) - 1);
            loop {
                let place = (table, index(at, level, levels(format)));
                let (entry, span) = (self.read(place), 4096 << (9 * level));
                let is_pointer = |entry: u64| entry != 0 && entry & 0b1110 == 0;
                let is_within = at & (span - 1) == 0 && span <= end - at;
                if let Some(cached) = self.cached[hart].get_mut(&place).filter(|_| is_within) {
                    // Pointers aren't concerned. And where there is one now, it may still be missed: then the last leaf is the newest.
                    let last = cached.iter().rposition(|old| !is_pointer(*old)).filter(|_| is_pointer(entry));
                    let mut index = 0..;
                    cached.retain(|old| (index.next() == last) | is_pointer(*old));
                }
                if !is_pointer(entry) {
                    break;
                }
                (table, level) = (Table(HostPhysical((entry >> 10) << 12)), level - 1);
            }
            at += 4096 << (9 * level);
        }
    }

    /// Undoes the last store, as if it were still to come.
    pub fn undo(&mut self) -> bool {
        let Some(((table, index), old)) = self.stores.pop() else { return false };
        if let Some(entries) = self.tables.get_mut(&table) {
            entries[index] = old;
        }
        true
    }

    /// All tables as they are.
    pub fn snapshot(&self) -> BTreeMap<Table, Vec<u64>> {
        self.tables.clone()
    }

    /// And back to it.
    pub fn restore(&mut self, tables: BTreeMap<Table, Vec<u64>>) {
        self.tables = tables;
    }
}

/// A guest-physical address.
pub const fn guest(address: u64) -> GuestPhysical {
    GuestPhysical(address)
}
