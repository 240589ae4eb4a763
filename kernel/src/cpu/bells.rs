//! Doorbells: one guest interrupts another, by the channel between them.
//!
//! To the guest that hears it a bell is an interrupt of one of its devices, and it is held back, or brought to a vCPU at once, as those are. A bell that
//! has rung interrupts once, until its hearer has looked ([`ainori_devices::channel`]). But one that looks at once could be rung for again at once, so a
//! guest that rings all the time would have the core of a more urgent one for that guest's handler alone. Therefore bells for one guest are rung one in a
//! while, as the board's devices [are](super::devices), wherever they are rung from: who comes too soon has its bell kept on its own core for the rest of
//! that. It isn't kept where the one that rings is more urgent than the one that hears: that one's time it can have anyhow, and who would wait for it to
//! leave? Nor is it under windows in time: in its window the hearer's core is the hearer's alone, and on a core where it has none a bell would be kept for good.
use core::sync::atomic::Ordering;

use ainori_devices::bus::channel_source;

use super::Cpu;
use crate::guest::Peer;

impl Cpu {
    /// The running vCPU rings.
    pub fn ring(&mut self, peer: Peer) {
        let machine = self.machine;
        let Some(guest) = machine.guests.get(usize::from(peer.guest)) else { return };
        let slot = usize::from(peer.slot);
        // If it doesn't run, it finds that its bell has rung, or has forgotten it, when it is started again.
        let is_due = guest.devices.channels.get(slot).is_some_and(|end| end.ring());
        if !is_due || !guest.lifecycle.is_running() {
            return;
        }
        let source = channel_source(slot);
        if self.device_level_now(guest) <= machine.irq_level(self.irq_threshold.number()) {
            self.hand_on_edge(guest, source);
        } else {
            let next = guest.next_bell.load(Ordering::Relaxed);
            self.hand_on_in_turn(guest, source, next);
        }
    }
}
