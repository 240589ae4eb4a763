//! A guest's memory, and its walk as the specification has it, written once more.
use std::cell::RefCell;
use std::collections::BTreeMap;

use ainori_space::{Attributes, GuestPhysical, HostPhysical, MemoryType, PAGE, Rights, Translation};

use crate::*;

pub const V: u64 = 1;
pub const R: u64 = 2;
pub const W: u64 = 4;
pub const X: u64 = 8;
pub const U: u64 = 16;
pub const G: u64 = 32;
pub const A: u64 = 64;
pub const D: u64 = 128;
pub const N: u64 = 1 << 63;

/// Where the guest's memory begins.
pub const MEMORY: u64 = 0x8000_0000;
/// From here on it may only be read.
pub const READ_ONLY: u64 = MEMORY + 0x3000_0000;
/// From here on it is in one piece.
pub const WHOLE: u64 = MEMORY + 0x4000_0000;
/// Memory that is shared with others, so that it is no code; what may only be read of it; and memory of another type.
pub const SHARED: u64 = MEMORY + 0x2000_0000;
pub const SHARED_READ_ONLY: u64 = MEMORY + 0x2400_0000;
pub const UNCACHED: u64 = MEMORY + 0x2800_0000;
const UNCACHED_END: u64 = MEMORY + 0x2c00_0000;
/// And here it ends.
pub const END: u64 = WHOLE + 0x4000_0000;

/// Where tables are, which are numbered.
pub fn table(number: u64) -> u64 {
    MEMORY + number * PAGE
}

/// A leaf for an address.
pub fn leaf(at: u64, flags: u64) -> u64 {
    (at / PAGE) << 10 | flags | V
}

/// A pointer to a table.
pub fn pointer(number: u64) -> u64 {
    (table(number) / PAGE) << 10 | V
}

/// What is in the tables.
pub type Words = BTreeMap<u64, u64>;

/// The guest's memory: all that isn't in a table is no matter.
#[derive(Default)]
pub struct Guest {
    pub words: RefCell<Words>,
    /// The next exchange fails, as somebody else has changed the entry.
    pub disturbed: RefCell<bool>,
}

/// The second stage: 2 MiB pages, but for the first of them, which has pages in another order, and for the last GiB.
pub fn second_stage(at: u64) -> Option<Translation> {
    const LARGE: u64 = 2 << 20;
    let rights = match at {
        READ_ONLY..WHOLE => Rights::ReadExecute,
        SHARED..SHARED_READ_ONLY => Rights::ReadWrite,
        SHARED_READ_ONLY..UNCACHED => Rights::Read,
        _ => Rights::ReadWriteExecute,
    };
    let is_uncached = (UNCACHED..UNCACHED_END).contains(&at);
    let memory_type = if is_uncached { MemoryType::NonCacheable } else { MemoryType::Board };
    let attributes = Attributes { rights, memory_type };
    if !(MEMORY..END).contains(&at) {
        return None;
    }
    if at < MEMORY + LARGE {
        let page = ((at - MEMORY) / PAGE) ^ 5;
        return Some(Translation {
            host: HostPhysical(0x10_0000_0000 + page * PAGE + at % PAGE),
            attributes,
            size: PAGE,
        });
    }
    if at >= WHOLE {
        let host = HostPhysical(0x30_0000_0000 + at - WHOLE);
        return Some(Translation { host, attributes, size: 1 << 30 });
    }
    let number = ((at - MEMORY) / LARGE) ^ 1;
    Some(Translation {
        host: HostPhysical(0x20_0000_0000 + number * LARGE + at % LARGE),
        attributes,
        size: LARGE,
    })
}

impl Memory for Guest {
    fn load(&self, at: GuestPhysical) -> Option<u64> {
        assert_eq!(at.0 % 8, 0);
        second_stage(at.0)?;
        Some(self.words.borrow().get(&at.0).copied().unwrap_or(0))
    }

    fn exchange(&self, at: GuestPhysical, old: u64, new: u64) -> Option<bool> {
        second_stage(at.0).filter(|below| below.attributes.rights.include(Rights::ReadWrite))?;
        if self.disturbed.replace(false) {
            return Some(false);
        }
        let mut words = self.words.borrow_mut();
        let word = words.entry(at.0).or_insert(0);
        let same = *word == old;
        if same {
            *word = new;
        }
        Some(same)
    }

    fn translate(&self, at: GuestPhysical) -> Option<Translation> {
        second_stage(at.0)
    }
}

/// What a walk comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leaf {
    /// The guest-physical address.
    pub at: u64,
    /// Bytes that the leaf maps, around the virtual address.
    pub size: u64,
    pub flags: u64,
    pub global: bool,
    /// The entry, and what it would be after the access.
    pub entry_at: u64,
    pub entry: u64,
}

/// What a hart of the guest would find. Rights aren't looked at, nor A and D.
pub fn walk(words: &Words, features: Features, satp: Satp, address: u64) -> Result<Leaf, Fault> {
    let levels = match satp.format() {
        Ok(Some(Format::Sv39)) => 3,
        Ok(Some(Format::Sv48)) => 4,
        Ok(Some(Format::Sv57)) => 5,
        _ => {
            let flags = V | R | W | X | A | D;
            return Ok(Leaf { at: address, size: 1 << 62, flags, global: false, entry_at: 0, entry: flags });
        }
    };
    let bits = 12 + 9 * levels;
    let sign = (address as i64) >> (bits - 1);
    if sign != 0 && sign != -1 {
        return Err(Fault::Page);
    }
    let mut table = satp.root().0;
    let mut global = false;
    for level in (0..levels).rev() {
        let at = table + (address >> (12 + 9 * level) & 511) * 8;
        second_stage(at).ok_or(Fault::Access)?;
        let entry = words.get(&at).copied().unwrap_or(0);
        let kind = entry >> 61 & 3;
        if entry & V == 0
            || entry & W != 0 && entry & R == 0
            || entry >> 54 & 0x7f != 0
            || kind == 3
            || kind != 0 && !features.memory_types
            || entry & N != 0 && !features.contiguous
        {
            return Err(Fault::Page);
        }
        global |= entry & G != 0;
        let number = entry >> 10 & ((1 << 44) - 1);
        if entry & (R | X) == 0 {
            if entry & (D | A | U | N) != 0 || kind != 0 {
                return Err(Fault::Page);
            }
            table = number * PAGE;
            continue;
        }
        let mut size = 1 << (12 + 9 * level);
        let mut start = number * PAGE;
        if entry & N != 0 {
            if level > 0 || number & 15 != 8 {
                return Err(Fault::Page);
            }
            size = 0x1_0000;
            start &= !(size - 1);
        }
        if start & (size - 1) != 0 {
            return Err(Fault::Page);
        }
        let at_leaf = start | address & (size - 1);
        return Ok(Leaf { at: at_leaf, size, flags: entry & 0xff, global, entry_at: at, entry });
    }
    Err(Fault::Page)
}

/// Do the flags of a leaf allow an access?
pub fn allows(flags: u64, access: Access, mode: Mode) -> bool {
    let user = flags & U != 0;
    let by_mode = match (mode.user, user) {
        (true, user) => user,
        (false, false) => true,
        (false, true) => mode.sum && access != Access::Fetch,
    };
    by_mode
        && match access {
            Access::Load => flags & R != 0 || mode.mxr && flags & X != 0,
            Access::Store => flags & W != 0,
            Access::Fetch => flags & X != 0,
        }
}
