//! The board's interrupt controller, whichever kind it is: each kind is a file here, and a case in [`Irqchip`]. All of them have sources that stay
//! quiet from when a claim is held to its completion, and a threshold for each core.
//!
//! Its levels and thresholds are how the hypervisor splits interrupts between guests (SPUMONE 3.4.1): a source has the [level](Levels) of its
//! owner, and while a vCPU runs, its core's threshold keeps the sources of lesser owners away. In the controller's registers another
//! [number](BoardIrqchip::threshold) may stand for a level. A guest's own controller is [`ainori_devices::irqchip`].
//!
//! IPIs come as software interrupts (`cpu/irq.rs`), not as external ones, unless the board has nothing but messages for them.
mod aplic;
mod core_irqs;
mod domain;
mod imsic;
mod levels;
mod plic;
mod threshold;

pub use core_irqs::{Claim, CoreIrqs};
pub use levels::{CLOSED, Levels};
pub use threshold::IrqThreshold;

use core::num::NonZeroU64;

use ainori_board::{BoardIrqchip, Interrupt};
use ainori_devices::aplic::RelayedTo;
use aplic::Aplic;
use imsic::Imsic;
use plic::Plic;

/// The controller.
#[derive(Debug, Clone, Copy)]
pub enum Irqchip {
    /// A [`Plic`].
    Plic(Plic),
    /// An [`Aplic`].
    Aplic(Aplic),
    /// An [`Imsic`] for each hart.
    Imsic(Imsic),
}

impl Irqchip {
    /// The board's controller with all of its sources switched off. None if it can't do what is wanted of it: an APLIC has to tell so many priorities apart
    /// as there are [levels](ainori_limits::IRQ_LEVELS), and to send messages where it is to. Only at boot.
    ///
    /// # Safety
    /// The controller is there, and nothing else drives the part that is the supervisor's. Where it sends messages, the harts let the hypervisor reach them
    /// ([`Features::messages`](crate::arch::hart::Features)).
    pub unsafe fn new(board: BoardIrqchip) -> Option<Self> {
        // SAFETY: as this function's.
        unsafe {
            match board {
                BoardIrqchip::Plic { base, sources } => Some(Self::Plic(Plic::new(base, sources))),
                BoardIrqchip::Aplic { base, sources } => Aplic::new(base, sources).map(Self::Aplic),
                BoardIrqchip::Imsic { base, sources, identities, .. } => {
                    Imsic::new(base, sources, identities).map(Self::Imsic)
                }
            }
        }
    }

    /// Are IPIs messages that come by it?
    pub fn sends_ipis(self) -> bool {
        matches!(self, Self::Imsic(_))
    }

    /// What it sends to a core's target ([`BoardHart::irq_target`](ainori_board::BoardHart::irq_target)). Allocates: only at boot.
    pub fn core(self, target: u32) -> CoreIrqs {
        CoreIrqs::new(self, target)
    }

    /// The threshold of a target, which is open.
    pub fn threshold(self, target: u32) -> IrqThreshold {
        let register = match self {
            Self::Plic(plic) => Some(plic.threshold(target)),
            Self::Aplic(aplic) => Some(aplic.threshold(target)),
            Self::Imsic(_) => None,
        };
        // No controller begins so far down that it is 0: it lies behind the controller's first register.
        IrqThreshold::new(register.and_then(NonZeroU64::new))
    }

    /// A source that a target's core has claimed may interrupt again. From any core. What was written to memory before is seen by whoever claims it
    /// then. `is_new`: from now on it asks as `interrupt` says, which it didn't when it was claimed.
    pub fn complete(self, target: u32, interrupt: Interrupt, is_new: bool) {
        match self {
            Self::Plic(plic) => plic.complete(target, interrupt.source),
            Self::Aplic(aplic) => aplic.complete(interrupt, is_new),
            Self::Imsic(imsic) => imsic.complete(interrupt),
        }
    }

    /// A source that is [held](CoreIrqs::hold) goes to a guest interrupt file of a target's hart from now on, as this identity, and nobody has to complete it there. Where
    /// it went before is noted for [`Self::recall`]. None if the controller can't do that.
    pub fn redirect(
        self,
        source: u32,
        target: u32,
        file: u8,
        identity: u32,
        relayed_to: &RelayedTo,
    ) -> Option<()> {
        let Self::Imsic(imsic) = self else { return None };
        (identity != 0).then(|| imsic.redirect(source, target, file, identity, relayed_to))
    }

    /// It goes where it went before that, and is told of there if it asks.
    pub fn recall(self, interrupt: Interrupt, relayed_to: &RelayedTo) {
        if let Self::Imsic(imsic) = self {
            imsic.recall(interrupt, relayed_to);
        }
    }

    /// Sources that send messages, and have been [held](CoreIrqs::hold), may interrupt again when their wires begin to ask anew: those of a word, 32 each, a bit each. What was
    /// written to memory before is seen by whoever claims them then.
    pub fn rearm(self, word: usize, sources: u32) {
        if let Self::Imsic(imsic) = self {
            imsic.rearm(word, sources);
        }
    }

    /// Levels that send messages do so once more if their wires ask.
    pub fn ask_again(self, word: usize, sources: u32) {
        if let Self::Imsic(imsic) = self {
            imsic.ask_again(word, sources);
        }
    }

    /// The sources of a word whose wires ask; 0 where the controller sends no messages.
    pub fn inputs(self, word: usize) -> u32 {
        if let Self::Imsic(imsic) = self { imsic.inputs(word) } else { 0 }
    }
}
