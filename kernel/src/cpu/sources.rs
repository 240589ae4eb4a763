//! Interrupt sources of the board that belong to a guest: what its own interrupt controller does to those that it relays.
use ainori_devices::irqchip::{Board, Msi};

use super::{Machine, SourceOwner};
use crate::chip::irqchip::Irqchip;
use crate::guest::Guest;

/// Those of one guest. What is done to sources that aren't its own is nothing.
pub struct Sources {
    pub machine: &'static Machine,
    pub guest: &'static Guest,
}

impl Sources {
    /// One of them, and the board's controller.
    fn known(&self, source: u32) -> Option<(&'static Irqchip, &'static SourceOwner)> {
        let owner = self.machine.owner_of(source).filter(|owner| owner.guest == self.guest.index)?;
        Some((self.machine.irqchip.as_ref()?, owner))
    }

    /// As [`Board::redirect`]. None if it can't.
    fn redirect_to_file(&self, source: u32, msi: Msi) -> Option<()> {
        let own = self.guest.vcpus();
        let vcpu = self.machine.vcpus().get(usize::from(own.start)..usize::from(own.end))?.get(msi.hart)?;
        let target = self.machine.board.harts.get(vcpu.home as usize)?.irq_target?;
        let (irqchip, owner) = self.known(source)?;
        irqchip.redirect(source, target, vcpu.file?.number, msi.identity, &owner.relayed_to)
    }
}

impl Board for Sources {
    #[inline(never)]
    fn complete(&mut self, source: u32, is_edge: bool) {
        if let Some((irqchip, owner)) = self.known(source) {
            let is_new = owner.interrupt.set_edge(is_edge);
            irqchip.complete(owner.target, owner.interrupt.now(), is_new);
        }
    }

    #[inline(never)]
    fn redirect(&mut self, source: u32, msi: Msi) -> bool {
        self.redirect_to_file(source, msi).is_some()
    }

    #[inline(never)]
    fn recall(&mut self, source: u32) {
        if let Some((irqchip, owner)) = self.known(source) {
            irqchip.recall(owner.interrupt.own(), &owner.relayed_to);
        }
    }

    // The guest's controller names its own sources only here: it has been given no others to relay.
    #[inline(never)]
    fn rearm(&mut self, word: usize, sources: u32) {
        if let Some(irqchip) = self.machine.irqchip {
            irqchip.rearm(word, sources);
        }
    }

    #[inline(never)]
    fn ask_again(&mut self, word: usize, sources: u32) {
        if let Some(irqchip) = self.machine.irqchip {
            irqchip.ask_again(word, sources);
        }
    }

    #[inline(never)]
    fn inputs(&mut self, word: usize) -> u32 {
        self.machine.irqchip.map_or(0, |irqchip| irqchip.inputs(word))
    }
}
