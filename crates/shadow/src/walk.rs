//! The guest's own translation, as a hart would do it (privileged specification, "Virtual Address Translation Process").
use ainori_limits::PAGE;
use ainori_space::{GuestPhysical, MemoryType};

use crate::entry::{CONTIGUOUS_PAGES, Features, GuestEntry};
use crate::format::{ENTRIES, shift, span};
use crate::{Memory, Satp, Virtual};

/// What an instruction does to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It reads.
    Load,
    /// It writes, or does both.
    Store,
    /// It is fetched itself.
    Fetch,
}

/// What decides about pages of programs and of kernels while an access is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mode {
    /// In user mode; else in supervisor mode.
    pub user: bool,
    /// `sstatus.SUM`: loads and stores of supervisor mode may go to pages of programs.
    pub sum: bool,
    /// `sstatus.MXR`: loads may go to pages that can be executed only.
    pub mxr: bool,
}

/// What the guest is to be told of an access: an exception of the access's own kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A page fault.
    Page,
    /// An access fault: a table is where no memory is.
    Access,
}

/// Why a walk found nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The guest has to see to it.
    Fault(Fault),
    /// Another hart of the guest has changed an entry while its bits A and D were to be set: the access has to be made again.
    Changed,
}

/// What a walk found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    /// Where the range begins that the leaf maps.
    pub start: GuestPhysical,
    /// The level of the leaf.
    pub level: u32,
    /// Is the leaf one of a range of 64 KiB? Then the range of this entry alone is what is told here.
    pub contiguous: bool,
    /// Global, by a bit of any entry on the way.
    pub global: bool,
    pub user: bool,
    pub reads: bool,
    /// And D is set.
    pub writes: bool,
    pub executes: bool,
    pub memory_type: MemoryType,
    /// The leaf itself, if it is one of a single page.
    pub leaf: Option<PageLeaf>,
}

/// A leaf of the guest's for a single page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageLeaf {
    /// Where it is.
    pub at: GuestPhysical,
    /// What it says once its page has been used.
    pub entry: GuestEntry,
}

impl Found {
    /// Where an address within the range is.
    pub const fn at(&self, address: Virtual) -> GuestPhysical {
        GuestPhysical(self.start.0 | address.0 & (span(self.level) - 1))
    }

    /// All that may be done to it, as a hart with this mode sees it.
    pub const fn allows(&self, access: Access, mode: Mode) -> bool {
        if mode.user != self.user && (mode.user || !mode.sum || matches!(access, Access::Fetch)) {
            return false;
        }
        match access {
            Access::Load => self.reads || mode.mxr && self.executes,
            Access::Store => self.writes,
            Access::Fetch => self.executes,
        }
    }
}

/// Walks the guest's tables for an access, and sets A and D there if its harts do that.
///
/// # Errors
/// What is to be done instead.
#[inline(always)]
pub(crate) fn walk(
    memory: &impl Memory,
    features: Features,
    satp: Satp,
    address: Virtual,
    access: Access,
    mode: Mode,
) -> Result<Found, Stop> {
    const PAGE_FAULT: Stop = Stop::Fault(Fault::Page);
    const ACCESS_FAULT: Stop = Stop::Fault(Fault::Access);
    let Ok(Some(format)) = satp.format() else {
        return Ok(untranslated(address, mode));
    };
    if !format.covers(address) {
        return Err(PAGE_FAULT);
    }
    let mut table = satp.root();
    let mut level = format.levels() - 1;
    let mut global = false;
    // The index of an entry, and three bits for its bytes, are at the end of this.
    let mut indices = address.0 >> (shift(level) - 3);
    // BOUND: the levels.
    loop {
        let at = GuestPhysical(table.0 + (indices & (ENTRIES as u64 - 1) << 3));
        let entry = GuestEntry(memory.load(at).ok_or(ACCESS_FAULT)?);
        global |= entry.is_global();
        if entry.is_pointer() {
            table = entry.address();
            level = level.checked_sub(1).ok_or(PAGE_FAULT)?;
            indices = address.0 >> (shift(level) - 3);
            continue;
        }
        let used = entry.used(access == Access::Store);
        // Mostly it is a page, of which there is no more to find out.
        let found = if level == 0 && entry.is_plain_leaf() {
            page(used, global)
        } else if entry.is_usable_leaf(features) {
            leaf(used, level, address, global).ok_or(PAGE_FAULT)?
        } else {
            return Err(PAGE_FAULT);
        };
        if !found.allows(access, mode) || used != entry && !features.updates {
            return Err(PAGE_FAULT);
        }
        if used != entry && !memory.exchange(at, entry.0, used.0).ok_or(ACCESS_FAULT)? {
            return Err(Stop::Changed);
        }
        let is_page = level == 0 && !found.contiguous;
        return Ok(Found { leaf: is_page.then_some(PageLeaf { at, entry: used }), ..found });
    }
}

/// What an address is without translation: itself, and nobody is kept from it. 1 GiB around it are told.
const fn untranslated(address: Virtual, mode: Mode) -> Found {
    const LEVEL: u32 = 2;
    Found {
        start: GuestPhysical(address.0 & !(span(LEVEL) - 1)),
        level: LEVEL,
        contiguous: false,
        global: false,
        user: mode.user,
        reads: true,
        writes: true,
        executes: true,
        memory_type: MemoryType::Board,
        leaf: None,
    }
}

/// What a [plain](GuestEntry::is_plain_leaf) leaf of the lowest level maps: any page is aligned.
#[inline(always)]
const fn page(entry: GuestEntry, global: bool) -> Found {
    Found {
        start: entry.address(),
        level: 0,
        contiguous: false,
        global,
        user: entry.is_user(),
        reads: entry.reads(),
        writes: entry.writes() && entry.is_dirty(),
        executes: entry.executes(),
        memory_type: MemoryType::Board,
        leaf: None,
    }
}

/// What a leaf maps. `None`: it isn't aligned as its level asks.
fn leaf(entry: GuestEntry, level: u32, address: Virtual, global: bool) -> Option<Found> {
    let contiguous = entry.is_contiguous()?;
    let mut start = entry.address().0;
    if contiguous {
        if level > 0 {
            return None;
        }
        let range = CONTIGUOUS_PAGES * PAGE;
        start = start & !(range - 1) | address.0 & (range - PAGE);
    }
    (start & (span(level) - 1) == 0).then_some(Found {
        start: GuestPhysical(start),
        level,
        contiguous,
        global,
        user: entry.is_user(),
        reads: entry.reads(),
        writes: entry.writes() && entry.is_dirty(),
        executes: entry.executes(),
        memory_type: entry.memory_type(),
        leaf: None,
    })
}
