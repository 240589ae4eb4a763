//! The board's interrupt controller, whichever kind it is: each kind is a file here, and a case in each of these enums. Another kind needs
//! more than that, as some things outside of the enums are so for a PLIC only:
//! - Devices interrupt through [`CoreIrqs::claim`], and until a source is completed it can't come again (`cpu/devices.rs` throttles guests'
//!   devices by that). Interrupts that are messages (MSIs) aren't completed.
//! - The greatest level on every board is [`PLIC_PRIORITY`](ainori_limits::PLIC_PRIORITY): [`Levels`], and the analysis in
//!   `crates/deadlines`.
//! - A core's target is one number, which `crates/board` finds in the node of a PLIC only.
//! - IPIs come as software interrupts (`cpu/irq.rs`), not as external ones.
//! - Of a guest's controller: all guests have the windows of one map (`crates/devices`, `bus`), the sources of a PLIC (`Irqchip::SOURCES`;
//!   a bit each in `cpu/devices.rs`), a `Plic` from `Guest::new`, and their accesses are counted as `mmio-plic`.
//!
//! Its levels and thresholds are how the hypervisor splits interrupts between guests (SPUMONE 3.4.1): a source has the [level](Levels) of its
//! owner, and while a vCPU runs, its core's threshold keeps the sources of lesser owners away. A guest's own controller is
//! [`ainori_devices::irqchip`].
mod levels;
mod plic;

pub use levels::Levels;
use plic::{Context, Plic};

use ainori_board::BoardIrqchip;

/// The controller.
#[derive(Debug, Clone, Copy)]
pub enum Irqchip {
    /// A [`Plic`].
    Plic(Plic),
}

/// What it sends to one core, as that core sees it.
#[derive(Debug, Clone, Copy)]
pub enum CoreIrqs {
    /// A context of a PLIC.
    Plic(Context),
}

impl Irqchip {
    /// The board's controller with all of its sources switched off. Only at boot.
    ///
    /// # Safety
    /// The controller is there, and nothing else drives the part that is the supervisor's.
    pub unsafe fn new(board: BoardIrqchip) -> Self {
        match board {
            // SAFETY: as this function's.
            BoardIrqchip::Plic { base, sources } => Self::Plic(unsafe { Plic::new(base, sources) }),
        }
    }

    /// What it sends to a core's target ([`BoardHart::irq_target`](ainori_board::BoardHart::irq_target)). None if its registers would be at
    /// address 0, where no board has them.
    pub fn core(self, target: u32) -> Option<CoreIrqs> {
        match self {
            Self::Plic(plic) => plic.context(target).map(CoreIrqs::Plic),
        }
    }

    /// Sends nothing to a target, and opens its threshold. By the core itself, when it starts.
    pub fn reset_target(self, target: u32) {
        match self {
            Self::Plic(plic) => plic.reset_context(target),
        }
    }

    /// Sends a source to a target, with a level of 1 to the greatest of [`Levels`]. Cores may do so at the same time, each for its own target.
    pub fn route(self, source: u32, target: u32, level: u32) {
        match self {
            Self::Plic(plic) => plic.route(source, target, level),
        }
    }

    /// A source that a target's core has claimed may interrupt again. From any core.
    pub fn complete(self, target: u32, source: u32) {
        match self {
            Self::Plic(plic) => plic.complete(target, source),
        }
    }
}

impl CoreIrqs {
    /// Only sources above this level reach the core.
    #[inline]
    pub fn set_threshold(self, level: u32) {
        match self {
            Self::Plic(context) => context.set_threshold(level),
        }
    }

    /// Takes the most urgent source; it stays quiet until completed.
    #[inline]
    pub fn claim(self) -> Option<u32> {
        match self {
            Self::Plic(context) => context.claim(),
        }
    }

    /// A source that the core has claimed may interrupt again.
    #[inline]
    pub fn complete(self, source: u32) {
        match self {
            Self::Plic(context) => context.complete(source),
        }
    }
}
