//! Doorbells: one guest interrupts another, by the channel between them.
//!
//! To the guest that hears it a bell is an interrupt of one of its devices, and it is held back, or brought to a vCPU at once, as those are. A bell that
//! has rung interrupts once, until its hearer has looked ([`ainori_devices::channel`]). But one that looks at once could be rung for again at once, so a
//! guest that rings all the time would have the core of a more urgent one for that guest's handler alone. Therefore bells for one guest have
//! [turns](super::devices), wherever they are rung from: who comes too soon has its bell kept on its own core until it has one. So has a guest that finds its
//! bell rung as it unmasks it, which is then rung again.
//!
//! Whose bells have no turns was found out at boot ([`Peer::has_turns`]).
//!
//! Where the hearer's hart has guest interrupt files to spare, a bell is one of them ([`BellFile`]): who rings stores to its page, without a trap, and can do nothing
//! else there. The hart tells the hypervisor when it runs nobody more urgent than the hearer, as it does of [files of vCPUs](super::files). Such a bell has turns
//! whoever rings: no trap keeps that one from its next store.
use ainori_devices::bus::channel_source;
use ainori_sched::VcpuId;

use super::Cpu;
use crate::arch::{fence, files};
use crate::guest::{BellFile, Guest, Peer};

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

    /// Something has come into the guest interrupt file of this number. If that is a bell, it rings, or waits for its turn.
    pub(super) fn take_bell(&mut self, number: u8) {
        // BOUND: the bells of all harts, some 10 instructions each.
        let bell = self.files.bells().find(|bell| bell.number == number);
        if let Some(bell) = bell {
            self.hear_bell(bell);
        }
    }

    /// The file says nothing from now on, until the hearer has looked ([`Self::tell_of_bell`]): who stores there all the time disturbs nobody meanwhile.
    fn hear_bell(&mut self, bell: &BellFile) {
        files::quiet_bell(bell.number);
        let guest = self.machine.guest_of(bell.hearer);
        self.hand_on_bell(guest, guest, usize::from(bell.slot));
    }

    /// The bell of a guest in this slot, if it is a file of this hart.
    fn bell_file(&self, guest: &Guest, slot: usize) -> Option<&'static BellFile> {
        let first = guest.vcpus().start;
        // BOUND: the bells of all harts, some 10 instructions each.
        self.files.bells().find(|bell| bell.hearer.0 == first && usize::from(bell.slot) == slot)
    }

    /// A guest has looked at its bell, which it does on this hart if that is a file of one: the file tells of the next ring, also of one that has come meanwhile.
    pub fn tell_of_bell(&self, guest: &Guest, slot: usize) {
        if let Some(bell) = self.bell_file(guest, slot) {
            files::tell_of_bell(bell.number);
        }
    }

    /// A vCPU starts: if it is its guest's first, the files of that one's bells tell of what rings, and of what has rung.
    pub(super) fn tell_of_bells(&self, id: VcpuId) {
        // BOUND: the bells of one hart, some 30 instructions each.
        for bell in self.files.bells().filter(|bell| bell.hearer == id) {
            files::tell_of_bell(bell.number);
        }
    }

    /// A bell of a guest has its turn. If it is a file of this hart that has rung, it rings now.
    pub(super) fn ring_by_file(&self, guest: &Guest, slot: usize) {
        if let Some(bell) = self.bell_file(guest, slot) {
            ring_if_rung(guest, bell);
        }
    }

    /// A vCPU is put back, and the ends of its guest's channels have been before: what has rung at them since is kept for the next life.
    pub(super) fn keep_rings(&self, id: VcpuId) {
        let guest = self.machine.guest_of(id);
        // BOUND: the bells of one hart, some 50 instructions each.
        for bell in self.files.bells().filter(|bell| bell.hearer == id) {
            ring_if_rung(guest, bell);
        }
    }
}

/// What has come into the file of a bell of this guest since somebody asked last rings now.
fn ring_if_rung(guest: &Guest, bell: &BellFile) {
    if files::take_ring(bell.number) {
        // What was stored before the ring is seen by whoever hears it.
        fence::after_device();
        let _ = guest.devices.channels.get(usize::from(bell.slot)).map(|end| end.ring());
    }
}
