//! Entries of the guest's tables, and of the shadow's (privileged specification, "Sv39: Page-Based 39-bit Virtual-Memory System").
use ainori_limits::PAGE;
use ainori_space::{GuestPhysical, HostPhysical, MemoryType, Rights};

const VALID: u64 = 1 << 0;
const READ: u64 = 1 << 1;
const WRITE: u64 = 1 << 2;
const EXECUTE: u64 = 1 << 3;
const USER: u64 = 1 << 4;
const GLOBAL: u64 = 1 << 5;
const ACCESSED: u64 = 1 << 6;
const DIRTY: u64 = 1 << 7;
const FOR_SOFTWARE: u64 = 0b11 << 8;
const NUMBER: u32 = 10;
const NUMBER_BITS: u32 = 44;
const NUMBER_MASK: u64 = (1 << NUMBER_BITS) - 1;
/// For extensions that no hart has yet: zero.
const RESERVED: u64 = 0b111_1111 << (NUMBER + NUMBER_BITS);
const MEMORY_TYPE: u32 = 61;
const MEMORY_TYPE_MASK: u64 = 0b11 << MEMORY_TYPE;
/// One of several entries that say the same (Svnapot).
const CONTIGUOUS: u64 = 1 << 63;
/// The low bits of the page number of such an entry that stands for 64 KiB, the only size.
const CONTIGUOUS_NUMBER: u64 = 0b1000;
/// Pages in such a range.
pub(crate) const CONTIGUOUS_PAGES: u64 = 16;

/// What the guest's harts are told to have, as far as it changes what entries mean.
#[derive(Debug, Clone, Copy, Default)]
pub struct Features {
    /// Svpbmt: entries have a memory type.
    pub memory_types: bool,
    /// Svnapot: ranges of 64 KiB.
    pub contiguous: bool,
    /// Svadu: the hart sets A and D. Else the guest gets a page fault, and sets them (Svade).
    pub updates: bool,
}

/// An entry of a guest's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GuestEntry(pub u64);

impl GuestEntry {
    /// Is it a leaf that a walk may use? Else, as it is [no pointer](Self::is_pointer), it is a page fault.
    pub const fn is_usable_leaf(self, features: Features) -> bool {
        let reserved_rights = self.0 & (READ | WRITE) == WRITE;
        let mut reserved = RESERVED;
        if !features.memory_types {
            reserved |= MEMORY_TYPE_MASK;
        }
        if !features.contiguous {
            reserved |= CONTIGUOUS;
        }
        let reserved_type = self.0 & MEMORY_TYPE_MASK == MEMORY_TYPE_MASK;
        self.0 & VALID != 0 && self.is_leaf() && !reserved_rights && self.0 & reserved == 0 && !reserved_type
    }

    /// Is it a leaf that a walk may use, whatever harts have, with nothing in it that an extension has added? Others may be [usable](Self::is_usable_leaf), too.
    #[inline(always)]
    pub const fn is_plain_leaf(self) -> bool {
        const EXTENDED: u64 = RESERVED | MEMORY_TYPE_MASK | CONTIGUOUS;
        let reserved_rights = self.0 & (READ | WRITE) == WRITE;
        self.0 & (EXTENDED | VALID) == VALID && self.is_leaf() && !reserved_rights
    }

    /// Does it lead to a table? Then it has nothing but where that is, bits for software, and G.
    pub const fn is_pointer(self) -> bool {
        const FREE: u64 = NUMBER_MASK << NUMBER | FOR_SOFTWARE | GLOBAL;
        self.0 & !FREE == VALID
    }

    /// Does it map something? Else it leads to a table.
    const fn is_leaf(self) -> bool {
        self.0 & (READ | WRITE | EXECUTE) != 0
    }

    pub const fn reads(self) -> bool {
        self.0 & READ != 0
    }

    pub const fn writes(self) -> bool {
        self.0 & WRITE != 0
    }

    pub const fn executes(self) -> bool {
        self.0 & EXECUTE != 0
    }

    /// What may be done to its page as it is: without D nothing is written.
    pub const fn rights(self) -> RightBits {
        const FROM_DIRTY: u32 = DIRTY.trailing_zeros() - WRITE.trailing_zeros();
        RightBits(self.0 & (READ | EXECUTE) | self.0 & self.0 >> FROM_DIRTY & WRITE)
    }

    pub const fn is_user(self) -> bool {
        self.0 & USER != 0
    }

    pub const fn is_global(self) -> bool {
        self.0 & GLOBAL != 0
    }

    pub const fn is_dirty(self) -> bool {
        self.0 & DIRTY != 0
    }

    /// Are both leaves of single pages that a walk may use as they are, of the same kind: of programs or of the kernel, global by themselves or not, of one memory type? `other` is one.
    pub const fn is_like(self, other: Self) -> bool {
        const KIND: u64 = VALID | USER | GLOBAL | ACCESSED | RESERVED | MEMORY_TYPE_MASK | CONTIGUOUS;
        let reserved_rights = self.0 & (READ | WRITE) == WRITE;
        (self.0 ^ other.0) & KIND == 0 && self.is_leaf() && !reserved_rights
    }

    /// With A, and D for a store.
    pub const fn used(self, store: bool) -> Self {
        Self(self.0 | ACCESSED | if store { DIRTY } else { 0 })
    }

    /// Is it one of a range of 64 KiB? `None`: it is of a range whose size isn't one.
    pub const fn is_contiguous(self) -> Option<bool> {
        if self.0 & CONTIGUOUS == 0 {
            Some(false)
        } else if self.number() % CONTIGUOUS_PAGES == CONTIGUOUS_NUMBER {
            Some(true)
        } else {
            None
        }
    }

    const fn number(self) -> u64 {
        self.0 >> NUMBER & NUMBER_MASK
    }

    pub const fn address(self) -> GuestPhysical {
        GuestPhysical(self.number() * PAGE)
    }

    /// Its memory type, as the field has it.
    pub const fn memory_type(self) -> MemoryType {
        match self.0 >> MEMORY_TYPE & 0b11 {
            1 => MemoryType::NonCacheable,
            2 => MemoryType::Device,
            _ => MemoryType::Board,
        }
    }
}

/// An entry of the shadow: nothing, a leaf, or a pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry(pub u64);

/// What a leaf of the shadow says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Leaf {
    pub host: HostPhysical,
    pub reads: bool,
    pub writes: bool,
    pub executes: bool,
    pub user: bool,
    pub memory_type: MemoryType,
}

impl Entry {
    pub const NONE: Self = Self(0);

    /// A leaf. It has A and D, so that no hart has to set them, and never G: it is of one address space of one vCPU.
    pub const fn leaf(leaf: Leaf) -> Self {
        let mut bits = VALID | ACCESSED | DIRTY | (leaf.host.0 / PAGE) << NUMBER;
        bits |= if leaf.reads { READ } else { 0 };
        bits |= if leaf.writes { WRITE } else { 0 };
        bits |= if leaf.executes { EXECUTE } else { 0 };
        bits |= if leaf.user { USER } else { 0 };
        Self(bits | (leaf.memory_type as u64) << MEMORY_TYPE)
    }

    /// Leads to a table of the next level.
    pub const fn pointer(table: HostPhysical) -> Self {
        Self(VALID | (table.0 / PAGE) << NUMBER)
    }

    /// A leaf as this one, for another page of the same kind: where it is, and what may be done to it. `None`: nothing may.
    pub const fn like(self, host: HostPhysical, rights: RightBits) -> Option<Self> {
        const OWN: u64 = NUMBER_MASK << NUMBER | RightBits::ALL;
        let leaf = Self(self.0 & !OWN | (host.0 / PAGE) << NUMBER | rights.0);
        if leaf.is_leaf() { Some(leaf) } else { None }
    }

    /// Is nothing there?
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    pub const fn is_leaf(self) -> bool {
        self.0 & (READ | EXECUTE) != 0
    }

    /// Does it lead to a table?
    pub const fn leads_on(self) -> bool {
        !self.is_none() && !self.is_leaf()
    }

    /// Where the range or the table is.
    pub const fn address(self) -> HostPhysical {
        HostPhysical((self.0 >> NUMBER & NUMBER_MASK) * PAGE)
    }
}

/// Bits of a leaf that say what may be done: to read, to write, to execute. None has writing alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RightBits(u64);

impl RightBits {
    const ALL: u64 = READ | WRITE | EXECUTE;

    /// To read, to write if it may be read, to execute.
    pub const fn new((reads, writes, executes): (bool, bool, bool)) -> Self {
        let mut bits = if reads { READ } else { 0 };
        bits |= if reads && writes { WRITE } else { 0 };
        bits |= if executes { EXECUTE } else { 0 };
        Self(bits)
    }

    /// Those of the second stage.
    pub const fn of(rights: Rights) -> Self {
        Self::new(allows(rights))
    }

    /// What both have. (Where one has no reading, it has no writing.)
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

/// Rights of the second stage, as single questions.
pub(crate) const fn allows(rights: Rights) -> (bool, bool, bool) {
    (rights.include(Rights::Read), rights.include(Rights::ReadWrite), rights.include(Rights::Execute))
}
