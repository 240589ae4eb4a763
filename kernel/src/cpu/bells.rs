//! Doorbells: one guest interrupts another, by the channel between them.
//!
//! To the guest that hears it a bell is an interrupt of one of its devices, and it is held back, or brought to a vCPU at once, as those are. A bell that
//! has rung interrupts once, until its hearer has looked ([`ainori_devices::channel`]). But one that looks at once could be rung for again at once, so a
//! guest that rings all the time would have the core of a more urgent one for that guest's handler alone. Therefore bells for one guest have
//! [turns](super::devices), wherever they are rung from: who comes too soon has its bell kept on its own core until it has one. So has a guest that finds its
//! bell rung as it unmasks it, which is then rung again.
//!
//! Whose bells have no turns was found out at boot ([`Peer::has_turns`]).
use ainori_devices::bus::channel_source;

use super::Cpu;
use crate::guest::{Guest, Peer};

impl Cpu {
    /// The running vCPU, of the guest `from`, rings.
    pub fn ring(&mut self, from: &Guest, peer: Peer) {
        let machine = self.machine;
        let Some(guest) = machine.guests.get(usize::from(peer.guest)) else { return };
        let slot = usize::from(peer.slot);
        // If it doesn't run, it finds that its bell has rung, or has forgotten it, when it is started again.
        let is_due = guest.devices.channels.get(slot).is_some_and(|end| end.ring());
        if !is_due || !guest.lifecycle.is_running() {
            return;
        }
        if peer.has_turns {
            self.hand_on_bell(from, guest, slot);
        } else {
            self.hand_on(guest, channel_source(slot));
        }
    }

    /// A bell of `guest` has rung, by a vCPU of the guest `by` that runs here. If it has to wait,
    /// it does so behind those who are more urgent than both here: `by` isn't kept waiting by itself.
    pub fn hand_on_bell(&mut self, by: &Guest, guest: &'static Guest, slot: usize) {
        let level = self.device_level_now(by).max(self.device_level_now(guest));
        self.hand_on_in_turn(guest, channel_source(slot), level);
    }
}
