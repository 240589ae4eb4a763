//! What a mapping may be used for.

/// What guests may do there. There are no others: an entry that can be written but not read is reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum Rights {
    /// Loads.
    Read = 0b001,
    /// Loads and stores.
    ReadWrite = 0b011,
    /// Instruction fetch alone.
    Execute = 0b100,
    /// Loads and instruction fetch.
    ReadExecute = 0b101,
    /// All.
    ReadWriteExecute = 0b111,
}

impl Rights {
    /// As the bits R, W and X of an entry have them, from bit 0.
    pub(crate) const fn bits(self) -> u64 {
        self as u64
    }

    /// From these bits; `None` for those of no mapping.
    pub(crate) const fn of_bits(bits: u64) -> Option<Self> {
        Some(match bits {
            0b001 => Self::Read,
            0b011 => Self::ReadWrite,
            0b100 => Self::Execute,
            0b101 => Self::ReadExecute,
            0b111 => Self::ReadWriteExecute,
            _ => return None,
        })
    }

    /// Do these rights allow all that the others do?
    #[must_use]
    pub const fn include(self, others: Self) -> bool {
        others.bits() & !self.bits() == 0
    }
}

/// How harts order and cache accesses (Svpbmt). What isn't [`MemoryType::Board`] is for harts that have Svpbmt: others fault on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum MemoryType {
    /// As the board says (PMA).
    Board = 0,
    /// Main memory that isn't cached (NC).
    NonCacheable = 1,
    /// Registers of a device (IO).
    Device = 2,
}

impl MemoryType {
    /// As the field PBMT of an entry has it, from bit 0.
    pub(crate) const fn bits(self) -> u64 {
        self as u64
    }

    /// From this field; the reserved value counts as [`Self::Board`]: no entry has it.
    pub(crate) const fn of_bits(bits: u64) -> Self {
        match bits {
            1 => Self::NonCacheable,
            2 => Self::Device,
            _ => Self::Board,
        }
    }
}

/// All that a mapping says beside the addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    /// What guests may do.
    pub rights: Rights,
    /// How harts do it.
    pub memory_type: MemoryType,
}

impl Attributes {
    /// Memory as the board has it, with these rights.
    #[must_use]
    pub const fn new(rights: Rights) -> Self {
        Self { rights, memory_type: MemoryType::Board }
    }
}
