//! Messages between cores.
//!
//! A message says only "look at vCPU n". What is wanted stands in the vCPU's own atomic words, so it can be said
//! twice without harm, and it follows the vCPU: a core that finds it gone passes the message on to its new owner.
use core::sync::atomic::Ordering;

use ainori_handover::Fence;
use ainori_mailbox::Delivery;
use ainori_sched::{Occasion, VcpuId};
use ainori_trace::{Event, Line};

use super::Cpu;
use crate::arch::csr::{self, virtual_interrupt};
use crate::arch::{fence, hart, world};
use crate::guest::vcpu::{Hold, Requests, hsm};

/// The item that stands for the machine rather than for a vCPU: the console, or the end of the run.
pub const MACHINE: u32 = 63;

impl Cpu {
    /// Asks the owner of a vCPU for something, itself if that is this core.
    pub fn ask(&mut self, id: VcpuId, what: Requests) {
        let vcpu = self.machine.vcpu(id);
        vcpu.request(what);
        let owner = vcpu.owner();
        if what.contains(Requests::SOFTWARE) {
            self.trace(Event::Raised { vcpu: id.0, line: Line::Software });
        }
        if owner == self.id {
            self.look_at(id);
        } else if vcpu.lies() {
            self.serve_lying(id, what);
        } else if self.accepts(id, owner) || what.contains(Requests::FENCE) {
            self.post(owner, u32::from(id.0));
        }
        // Otherwise the owner is busy with something more urgent. It will look when it has done with that.
    }

    /// Something is wanted of a vCPU that lies. Whoever takes it will see what; the question is only whether it is taken now.
    fn serve_lying(&mut self, id: VcpuId, what: Requests) {
        if what.contains(Requests::FENCE) {
            // It doesn't run, and will see what is recorded before it does.
            self.answer_fences(id);
        } else if what.contains(Requests::STOP) {
            self.take(id);
        } else if self.scheduler.policy().fetches(Occasion::Interrupt) {
            self.invite(id);
        }
    }

    /// Posts an item to another core, and rings if that core would not look by itself.
    pub fn post(&mut self, to: u32, item: u32) {
        self.trace(Event::Posted { to: to as u8, item });
        match self.machine.mail.post(self.id as usize, to as usize, item) {
            Delivery::WillLook => self.counters.ipis_saved += 1,
            Delivery::Ring => {
                self.counters.ipis_sent += 1;
                self.trace(Event::IpiSent { to: to as u8 });
                self.machine.bell.ring(to);
            }
        }
    }

    /// Reads all mail that is there.
    #[inline(never)]
    pub(super) fn read_mail(&mut self) {
        // Who has rung for this mail need not be answered once more: that would be a trap just after the guest is entered. First, as a
        // ring always comes after its mail.
        hart::clear_software_interrupt();
        let machine = self.machine;
        machine.mail.take(self.id as usize, |from, item| {
            self.counters.messages += 1;
            self.trace(Event::Received { from: from as u8, item });
            self.gives_way();
            if item == MACHINE {
                self.look_at_machine();
            } else {
                self.look_at(VcpuId(item as u8));
            }
        });
    }

    /// Something is wanted of a vCPU that lives here or lies. This core is about to do something more urgent or does so already, so
    /// it is not done now: but who waits for it is answered.
    fn put_off_request(&mut self, id: VcpuId) {
        self.answer_fences(id);
        if !self.has(id) {
            // It lies, and nobody has taken it yet.
            self.movable.insert(id);
            self.attend_later(csr::time());
        }
    }

    /// Does what is wanted of a vCPU that lives here, unless this core is busy with something more urgent. If the vCPU lies, this core
    /// has been invited to take it; if it has moved, its new owner is told.
    pub(super) fn look_at(&mut self, id: VcpuId) {
        let vcpu = self.machine.vcpu(id);
        let (lives_here, lies) = (self.has(id), vcpu.lies());
        if !lives_here && !lies {
            let owner = vcpu.owner();
            if owner != self.id {
                self.post(owner, u32::from(id.0));
            }
            return;
        }
        if !self.accepts(id, self.id) {
            return self.put_off_request(id);
        }
        if lies {
            // It doesn't run, and will see what is recorded before it does.
            self.answer_fences(id);
            // If it was lent here, it comes back when its turn comes.
            if vcpu.may_run_on(self.id) && !self.lent.contains(id) {
                self.take(id);
            }
            return;
        }
        let requests = vcpu.take_requests();
        if requests.contains(Requests::FENCE) {
            self.answer_fences(id);
        }
        if requests.contains(Requests::START) {
            let (address, opaque) =
                (vcpu.start_address.load(Ordering::Relaxed), vcpu.start_opaque.load(Ordering::Relaxed));
            self.start(id, address, opaque);
        }
        if requests.contains(Requests::FENCED) && self.resident(id).hold == Hold::Fences {
            self.resident(id).hold = Hold::None;
            self.wake(id);
        }
        if requests.contains(Requests::SOFTWARE) {
            self.raise(id, virtual_interrupt::SOFTWARE, Line::Software);
        }
        if requests.contains(Requests::EXTERNAL) {
            self.update_external(id);
        }
        if requests.contains(Requests::STOP) {
            self.bring_to_rest(id);
        } else if requests.contains(Requests::HOME) {
            self.resident(id).called_home = true;
            self.unsettle(id);
        } else if requests.contains(Requests::WANTED) {
            self.give_away(id);
        }
    }

    fn look_at_machine(&mut self) {
        if self.machine.finishing.load(Ordering::Acquire) {
            self.finish();
        }
        self.feed_input();
        self.drain_console();
    }

    /// Starts a stopped vCPU (SBI HSM).
    pub fn start(&mut self, id: VcpuId, address: u64, opaque: u64) {
        let vcpu = self.machine.vcpu(id);
        if self.machine.guest_of(id).is_stopped() {
            return;
        }
        if self.loaded == Some(id) {
            // What the hart still holds of its former life must not be saved over the new one.
            self.unload();
        }
        let index = u64::from(vcpu.index);
        self.resident(id).start(index, address, opaque);
        vcpu.hsm.store(hsm::STARTED, Ordering::Release);
        self.wake(id);
    }

    /// Carries out what was recorded for the vCPU that is about to be entered.
    #[inline]
    pub(super) fn carry_out_fences(&mut self, id: VcpuId) {
        let recorded = self.resident(id).shared.fences.take();
        if recorded.is_empty() {
            return;
        }
        self.trace(Event::Fence { vcpu: id.0, applied: true });
        if recorded.contains(Fence::TRANSLATIONS) {
            fence::guest_all();
        }
        if recorded.contains(Fence::INSTRUCTIONS) {
            fence::instructions();
        }
    }

    /// Answers those who wait for fences of a vCPU. That it doesn't run at this moment is all they need to know: what is
    /// recorded is carried out before it does ([`Self::carry_out_fences`]).
    fn answer_fences(&mut self, id: VcpuId) {
        for waiter in self.machine.vcpu(id).fences.take_waiting() {
            if self.machine.vcpu(waiter).fences_awaited.answer() {
                self.ask(waiter, Requests::FENCED);
            }
        }
    }

    /// Forgets what the hart holds of the loaded vCPU.
    fn unload(&mut self) {
        if let Some(id) = self.loaded.take() {
            if self.extensions == Some(id) {
                self.extensions = None;
            }
            world::set_lines(0, virtual_interrupt::ALL);
        }
    }
}
