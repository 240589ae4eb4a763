//! The board's interrupt controller, whichever kind it is: each kind is a file here, and a case in [`Irqchip`]. All of them have sources that stay
//! quiet from a claim to its completion, and for each core a register with its threshold.
//!
//! Its levels and thresholds are how the hypervisor splits interrupts between guests (SPUMONE 3.4.1): a source has the [level](Levels) of its
//! owner, and while a vCPU runs, its core's threshold keeps the sources of lesser owners away. In the controller's registers another
//! [number](BoardIrqchip::number) may stand for a level. A guest's own controller is [`ainori_devices::irqchip`].
//!
//! IPIs come as software interrupts (`cpu/irq.rs`), not as external ones. A kind whose interrupts are messages (MSIs) has neither completions nor a
//! threshold in memory, so what is said above has to change for it: [`CoreIrqs`], and how `cpu/devices.rs` throttles guests' devices.
mod aplic;
mod levels;
mod plic;

pub use levels::{CLOSED, Levels};

use core::num::NonZeroU64;
use core::ptr::write_volatile;

use ainori_board::{BoardIrqchip, Interrupt};
use aplic::Aplic;
use plic::Plic;

/// The controller.
#[derive(Debug, Clone, Copy)]
pub enum Irqchip {
    /// A [`Plic`].
    Plic(Plic),
    /// An [`Aplic`].
    Aplic(Aplic),
}

/// What it sends to one core, as that core sees it. Made by [`Irqchip::core`] only.
#[derive(Debug, Clone, Copy)]
pub struct CoreIrqs {
    /// The address of the register with the threshold.
    threshold: NonZeroU64,
    /// As [`BoardHart::irq_target`](ainori_board::BoardHart::irq_target).
    pub target: u32,
}

impl Irqchip {
    /// The board's controller with all of its sources switched off. None if it can't tell so many levels apart as there are. Only at boot.
    ///
    /// # Safety
    /// The controller is there, and nothing else drives the part that is the supervisor's.
    pub unsafe fn new(board: BoardIrqchip) -> Option<Self> {
        match board {
            // SAFETY: as this function's.
            BoardIrqchip::Plic { base, sources } => Some(Self::Plic(unsafe { Plic::new(base, sources) })),
            // SAFETY: as this function's.
            BoardIrqchip::Aplic { base, sources } => unsafe { Aplic::new(base, sources) }.map(Self::Aplic),
        }
    }

    /// What it sends to a core's target ([`BoardHart::irq_target`](ainori_board::BoardHart::irq_target)). None if its registers would be at
    /// address 0, where no board has them.
    pub fn core(self, target: u32) -> Option<CoreIrqs> {
        let threshold = match self {
            Self::Plic(plic) => plic.threshold(target),
            Self::Aplic(aplic) => aplic.threshold(target),
        };
        NonZeroU64::new(threshold).map(|threshold| CoreIrqs { threshold, target })
    }

    /// Sends nothing to a target, and opens its threshold. By the core itself, when it starts.
    pub fn reset_target(self, target: u32) {
        match self {
            Self::Plic(plic) => plic.reset_context(target),
            Self::Aplic(aplic) => aplic.reset_hart(target),
        }
    }

    /// Sends a source to a target, with a level of 1 to the greatest of [`Levels`]. Cores may do so at the same time, each for its own target.
    pub fn route(self, interrupt: Interrupt, target: u32, level: u32) {
        match self {
            Self::Plic(plic) => plic.route(interrupt.source, target, level),
            Self::Aplic(aplic) => aplic.route(interrupt, target, level),
        }
    }

    /// Gives a source that has been sent to a target another level, of the same range. What is pending stays so. By the target's core.
    pub fn set_level(self, source: u32, target: u32, level: u32) {
        match self {
            Self::Plic(plic) => plic.set_level(source, level),
            Self::Aplic(aplic) => aplic.set_level(source, target, level),
        }
    }

    /// Takes the most urgent source above a target's threshold; it stays quiet until completed. By the target's core. What is read from memory later
    /// is read after that.
    pub fn claim(self, target: u32) -> Option<u32> {
        match self {
            Self::Plic(plic) => plic.claim(target),
            Self::Aplic(aplic) => aplic.claim(target),
        }
    }

    /// A source that a target's core has claimed may interrupt again. From any core. What was written to memory before is seen by whoever claims it
    /// then.
    pub fn complete(self, target: u32, source: u32) {
        match self {
            Self::Plic(plic) => plic.complete(target, source),
            Self::Aplic(aplic) => aplic.complete(source),
        }
    }
}

impl CoreIrqs {
    /// Only sources above a level reach the core: the one for which this [number](BoardIrqchip::number) stands.
    ///
    /// No matter what kind the controller is, as this is on the RTOS's way.
    #[inline]
    pub fn set_threshold(self, number: u32) {
        // SAFETY: `Irqchip::new` was promised that the device is here; its registers are outside of all Rust objects.
        unsafe { write_volatile(self.threshold.get() as *mut u32, number) }
    }
}
