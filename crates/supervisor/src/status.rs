//! Fields of `sstatus` (privileged specification, "Supervisor Status Register").

pub(crate) const SIE: u64 = 1 << 1;
pub(crate) const SPIE: u64 = 1 << 5;
pub(crate) const SPP: u64 = 1 << 8;
pub(crate) const VS: u64 = 0b11 << 9;
pub(crate) const VS_INITIAL: u64 = 0b01 << 9;
pub(crate) const FS: u64 = 0b11 << 13;
pub(crate) const FS_INITIAL: u64 = 0b01 << 13;
pub(crate) const SUM: u64 = 1 << 18;
pub(crate) const MXR: u64 = 1 << 19;
/// User mode is 64 bits wide.
pub(crate) const UXL_64: u64 = 0b10 << 32;
/// FS or VS is dirty.
pub(crate) const SD: u64 = 1 << 63;

/// A value whose SD is as its FS and VS say.
pub(crate) const fn with_summary(status: u64) -> u64 {
    let dirty = status & FS == FS || status & VS == VS;
    status & !SD | if dirty { SD } else { 0 }
}

/// A unit with registers of its own, which can be switched off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// The floating-point unit (`sstatus.FS`).
    Float,
    /// The vector unit (`sstatus.VS`).
    Vector,
}

/// A set of units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Units(u64);

impl Units {
    /// None.
    pub const NONE: Self = Self(0);

    /// That one.
    #[must_use]
    pub const fn of(unit: Unit) -> Self {
        Self(match unit {
            Unit::Float => FS,
            Unit::Vector => VS,
        })
    }

    /// These and those.
    #[must_use]
    pub const fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Those that are on, in a value of `sstatus`.
    #[must_use]
    pub const fn on(status: u64) -> Self {
        let float = if status & FS != 0 { FS } else { 0 };
        let vector = if status & VS != 0 { VS } else { 0 };
        Self(float | vector)
    }

    /// Those whose registers were written, in a value of `sstatus`.
    #[must_use]
    pub const fn dirty(status: u64) -> Self {
        let float = if status & FS == FS { FS } else { 0 };
        let vector = if status & VS == VS { VS } else { 0 };
        Self(float | vector)
    }

    /// Is it among them?
    #[must_use]
    pub const fn contains(self, unit: Unit) -> bool {
        self.0 & Self::of(unit).0 != 0
    }

    /// The fields of `sstatus` that say what state they are in.
    #[must_use]
    pub const fn fields(self) -> u64 {
        self.0
    }
}
