//! What the board's interrupt controller sends to one core.
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use ainori_board::{IPI_IDENTITY, Interrupt, identities_of};

use super::Irqchip;
use crate::arch::imsic;

/// The controller as one core sees it. Made by [`Irqchip::core`] only; none of it is for other cores.
#[derive(Debug)]
pub struct CoreIrqs {
    chip: Irqchip,
    /// As [`BoardHart::irq_target`](ainori_board::BoardHart::irq_target).
    target: u32,
    /// Where sources come as identities of messages: the source of each, 0 if there is none.
    sources: Vec<u32>,
}

/// What a core has been interrupted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// By nothing that is there still.
    Nothing,
    /// By another core.
    Ipi,
    /// By a source, which is to be [held](CoreIrqs::hold), and stays quiet then until it is [completed](Irqchip::complete). A message that was on its way may still come, once.
    Source(u32),
}

impl CoreIrqs {
    /// Allocates: only at boot.
    pub(super) fn new(chip: Irqchip, target: u32) -> Self {
        let identities = if let Irqchip::Imsic(imsic) = chip { imsic.identities() as usize + 1 } else { 0 };
        Self { chip, target, sources: vec![0; identities] }
    }

    /// A source will be [routed](Self::route) to the core with this level, 1 to the greatest of [`Levels`](super::Levels). False if it can have no more of that level.
    /// Only at boot.
    pub fn plan(&mut self, source: u32, level: u32) -> bool {
        let Irqchip::Imsic(imsic) = self.chip else { return true };
        let Range { start, end } = identities_of(level, imsic.identities());
        let identities = self.sources.get_mut(start as usize..end as usize);
        let Some(free) = identities.and_then(|all| all.iter_mut().find(|source| **source == 0)) else {
            return false;
        };
        *free = source;
        true
    }

    /// Sends nothing to the core, and opens its threshold. By the core itself, when it starts.
    pub fn reset(&self) {
        match self.chip {
            Irqchip::Plic(plic) => plic.reset_context(self.target),
            Irqchip::Aplic(aplic) => aplic.reset_hart(self.target),
            Irqchip::Imsic(imsic) => imsic.reset_hart(),
        }
    }

    /// Sends a source to the core, as it was [planned](Self::plan). Cores may do so at the same time.
    pub fn route(&self, interrupt: Interrupt, level: u32) {
        match self.chip {
            Irqchip::Plic(plic) => plic.route(interrupt.source, self.target, level),
            Irqchip::Aplic(aplic) => aplic.route(interrupt, self.target, level),
            Irqchip::Imsic(imsic) => {
                if let Some(identity) =
                    self.identity_in(identities_of(level, imsic.identities()), interrupt.source)
                {
                    imsic.route(interrupt, self.target, identity);
                }
            }
        }
    }

    /// Gives a source that comes to the core with one level another one; it was [planned](Self::plan) for both. What is pending stays so. By the core itself.
    pub fn set_level(&self, source: u32, from: u32, to: u32) {
        match self.chip {
            Irqchip::Plic(plic) => plic.set_level(source, to),
            Irqchip::Aplic(aplic) => aplic.set_level(source, self.target, to),
            Irqchip::Imsic(imsic) => {
                let identity = |level| self.identity_in(identities_of(level, imsic.identities()), source);
                if let (Some(from), Some(to)) = (identity(from), identity(to)) {
                    imsic.change(source, self.target, from, to);
                }
            }
        }
    }

    /// The identity as which a source comes, in a range.
    fn identity_in(&self, range: Range<u32>, source: u32) -> Option<u32> {
        let (start, end) = (range.start as usize, range.end as usize);
        // BOUND: the core's sources of one level, 4 instructions each: they have the first identities of it, one behind the other (`plan`).
        let place = self.sources.get(start..end)?.iter().position(|known| *known == source)?;
        Some(range.start + place as u32)
    }

    /// Takes what is most urgent of what is above the core's threshold. What is read from memory later is read after that.
    pub fn claim(&self) -> Claim {
        let source = match self.chip {
            Irqchip::Plic(plic) => plic.claim(self.target),
            Irqchip::Aplic(aplic) => aplic.claim(self.target),
            Irqchip::Imsic(imsic) => {
                let identity = imsic.claim();
                if identity == IPI_IDENTITY {
                    return Claim::Ipi;
                }
                self.sources.get(identity as usize).copied().filter(|source| *source != 0)
            }
        };
        source.map_or(Claim::Nothing, Claim::Source)
    }

    /// Takes another core's message, and nothing else, where IPIs [are messages](Irqchip::sends_ipis). Was there one?
    pub fn claim_ipi(&self) -> bool {
        self.chip.sends_ipis() && imsic::claim_only(IPI_IDENTITY)
    }

    /// A source that the core has claimed stays quiet until it is completed.
    pub fn hold(&self, interrupt: Interrupt) {
        match self.chip {
            // A claim does it.
            Irqchip::Plic(_) => {}
            Irqchip::Aplic(aplic) => aplic.hold(interrupt),
            Irqchip::Imsic(imsic) => imsic.hold(interrupt.source),
        }
    }

    /// A source that the core has claimed may interrupt again.
    pub fn complete(&self, interrupt: Interrupt) {
        self.chip.complete(self.target, interrupt, false);
    }
}
