//! The interrupt lines of the vCPUs that live here, and of the interrupt controllers of their guests.
use ainori_handover::Requests;
use ainori_sched::{VcpuId, VcpuSet};
use ainori_trace::{Event, Line};

use super::Cpu;
use super::sources::Sources;
use crate::arch::world::{self, Lines};
use crate::guest::Guest;

impl Cpu {
    /// Raises an interrupt line of a resident vCPU that somebody asked for.
    pub(super) fn raise(&mut self, id: VcpuId, lines: Lines, line: Line) {
        self.resident(id).note_request();
        self.set_lines(id, lines, true);
        self.trace(Event::Injected { vcpu: id.0, line });
        self.wake(id);
    }

    /// Raises or lowers interrupt lines of a resident vCPU, wherever its registers are now.
    fn set_lines(&mut self, id: VcpuId, lines: Lines, raised: bool) {
        match (self.loaded == Some(id), raised) {
            (true, true) => world::raise(lines),
            (true, false) => world::lower(lines),
            (false, _) => self.state(id).set_lines(lines, raised),
        }
    }

    /// Sets the external-interrupt line of a resident vCPU to what its interrupt controller says.
    pub(super) fn update_external(&mut self, id: VcpuId) {
        let machine = self.machine;
        let irqchip = &machine.guest_of(id).devices.irqchip;
        let is_pending = irqchip.is_pending(machine.vcpu(id).index as usize);
        if irqchip.has_files() {
            if machine.vcpu(id).file.is_some() {
                return self.hand_on_messages(id);
            }
            if self.loaded == Some(id) {
                self.state(id).show_external(is_pending);
            }
        }
        if is_pending {
            self.raise(id, Lines::EXTERNAL, Line::External(0));
        } else {
            self.set_lines(id, Lines::EXTERNAL, false);
        }
    }

    /// What the interrupt controller of a guest relays.
    pub fn sources_of(&self, guest: &'static Guest) -> Sources {
        Sources { machine: self.machine, guest }
    }

    /// Sends one of the messages that a store of this vCPU has left: each is a part of the [backlog](super::backlog), and so is each vCPU that it may interrupt, with a preemption
    /// point behind it. While somebody more urgent has the vCPU's core the rest waits; where there is more than a core can do, it may go on before all are sent.
    #[inline(never)]
    pub(super) fn send_message(&mut self, id: VcpuId) {
        let guest = self.machine.guest_of(id);
        // The controller of one that has stopped is about to be reset, on another core.
        if !guest.lifecycle.is_running() {
            return;
        }
        let (is_left, harts) = guest.devices.irqchip.send_next(&mut self.sources_of(guest));
        // What follows takes as long again.
        let _ = self.gives_way_if_long();
        let others = self.update_running(guest, harts);
        // Not told here: one that lives on this core may have messages to send as well, also to this one, which may be gone when that returns.
        self.ask_all_later(others, Requests::EXTERNAL);
        if is_left {
            self.ask_later(id, Requests::SEND);
        }
    }

    /// The external interrupts of these harts of a guest (their ids there, a bit each) may have changed.
    #[inline]
    pub fn look_at_harts(&mut self, guest: &Guest, harts: u64) {
        if harts != 0 {
            self.ask_for_harts(guest, harts);
        }
    }

    #[inline(never)]
    fn ask_for_harts(&mut self, guest: &Guest, harts: u64) {
        let others = self.update_running(guest, harts);
        if !others.is_empty() {
            self.ask_all(others, Requests::EXTERNAL);
        }
    }

    /// Of these harts of a guest, the one that runs here is seen to. The vCPUs of the others.
    fn update_running(&mut self, guest: &Guest, harts: u64) -> VcpuSet {
        let mut vcpus = guest.vcpu_set(harts);
        // Not by a request, which isn't looked at while this core keeps quiet about it: it would be interrupted by what it has claimed, again and again.
        if let Some(running) = self.scheduler.running().filter(|id| vcpus.contains(*id)) {
            self.machine.vcpu(running).note_asked();
            self.update_external(running);
            vcpus.remove(running);
        }
        vcpus
    }
}
