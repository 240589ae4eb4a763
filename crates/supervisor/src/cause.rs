//! Causes of traps, as `scause` has them (privileged specification, "Supervisor Cause Register").

/// Why a trap is taken: what `scause` holds then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cause(u64);

impl Cause {
    const INTERRUPT: u64 = 1 << 63;

    /// The exception of this code (`ainori_limits::cause::exception`).
    #[must_use]
    pub const fn exception(code: u32) -> Self {
        Self(code as u64)
    }

    /// The interrupt of this code (`ainori_limits::cause::interrupt`).
    #[must_use]
    pub const fn interrupt(code: u32) -> Self {
        Self(Self::INTERRUPT | code as u64)
    }

    /// What a hart's `scause` holds.
    #[must_use]
    pub const fn from_bits(scause: u64) -> Self {
        Self(scause)
    }

    /// What `scause` holds.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Is it an interrupt?
    #[must_use]
    pub const fn is_interrupt(self) -> bool {
        self.0 & Self::INTERRUPT != 0
    }

    /// The code of the exception or interrupt.
    #[must_use]
    pub const fn code(self) -> u64 {
        self.0 & !Self::INTERRUPT
    }
}
