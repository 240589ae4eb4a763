//! Messages between cores.
//!
//! A message says only "look at vCPU n". What is wanted stands in the vCPU's own atomic words, so it can be said
//! twice without harm, and it follows the vCPU: a core that finds it gone passes the message on to its new owner.
use core::sync::atomic::Ordering;

use ainori_handover::Fence;
use ainori_mailbox::Delivery;
use ainori_sched::{Occasion, VcpuId, VcpuSet};
use ainori_trace::{Event, Line};

use super::Cpu;
use crate::arch::csr::virtual_interrupt;
use crate::arch::{fence, world};
use crate::guest::vcpu::{Hold, Requests, hsm};

/// The item that stands for the machine rather than for a vCPU: the console, or the end of the run.
pub const MACHINE: u32 = 63;

impl Cpu {
    /// Asks the owner of a vCPU for something, itself if that is this core.
    pub fn ask(&mut self, id: VcpuId, what: Requests) {
        self.request(id, what);
        self.tell(id);
    }

    /// Asks something of several vCPUs. Each of them is told in its turn ([`backlog`](super::backlog)): how many there are is up to a guest.
    pub fn ask_all(&mut self, ids: VcpuSet, what: Requests) {
        // BOUND: the vCPUs of one guest, some 25 instructions each.
        for id in ids {
            self.request(id, what);
        }
        self.tell_later(ids);
    }

    fn request(&mut self, id: VcpuId, what: Requests) {
        self.machine.vcpu(id).request(what);
        if what.contains(Requests::SOFTWARE) {
            self.trace(Event::Raised { vcpu: id.0, line: Line::Software });
        }
    }

    /// Has the owners of vCPUs told what was requested of them. One of them at once: that takes no longer than to put it off.
    pub fn tell_later(&mut self, ids: VcpuSet) {
        match (ids.into_iter().next(), ids.len()) {
            (Some(id), 1) => self.tell(id),
            _ => {
                self.backlog.untold |= ids;
                self.resume_backlog();
            }
        }
    }

    /// Tells the owner of a vCPU that something is wanted of it.
    pub(super) fn tell(&mut self, id: VcpuId) {
        let vcpu = self.machine.vcpu(id);
        let what = vcpu.wanted();
        let owner = vcpu.owner();
        if owner == self.id {
            self.look_at(id);
        } else if vcpu.lies() {
            self.serve_lying(id, what);
        } else if self.accepts(id, owner) || what.contains(Requests::FENCE) && !self.answer_for_absent(id) {
            self.post(owner, u32::from(id.0));
        }
        // Otherwise the owner is busy with something more urgent. It will look when it has done with that.
    }

    /// The core that has a vCPU is busy with something more urgent, and best not disturbed. If the vCPU doesn't run at this moment, then
    /// anybody can answer those who wait for its fences. False if it may be running still.
    fn answer_for_absent(&mut self, id: VcpuId) -> bool {
        let vcpu = self.machine.vcpu(id);
        match vcpu.fences.take_waiting_if_absent() {
            Some(waiting) => self.answer(waiting),
            None => {
                // Its owner may have looked for those who wait just while they were taken out.
                vcpu.request(Requests::FENCE);
                return false;
            }
        }
        true
    }

    /// Something is wanted of a vCPU that lies. Whoever takes it will see what; the question is only whether it is taken now.
    fn serve_lying(&mut self, id: VcpuId, what: Requests) {
        if what.contains(Requests::FENCE) {
            // It doesn't run, and will see what is recorded before it does.
            self.answer_fences(id);
        }
        if what.contains(Requests::STOP) {
            self.take(id);
        } else if what.contains(Requests::START)
            || !what.difference(Requests::FENCE).is_empty() && self.scheduler.policy().fetches(Occasion::Interrupt)
        {
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

    /// Something is wanted of a vCPU that lives here or lies. This core does something more urgent, so it is not done now: but who waits
    /// for it is answered.
    fn put_off_request(&mut self, id: VcpuId) {
        self.answer_fences(id);
        if !self.has(id) {
            // It lies, and nobody has taken it yet.
            self.movable.insert(id);
            self.attend_later(crate::arch::csr::time());
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

    pub(super) fn look_at_machine(&mut self) {
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
        if !vcpu.may_run_on(self.id) {
            // It was brought here only to be stopped.
            self.move_away(id, vcpu.home);
        }
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
        self.answer(self.machine.vcpu(id).fences.take_waiting());
    }

    /// Answers vCPUs that wait for a fence.
    fn answer(&mut self, waiting: VcpuSet) {
        if waiting.is_empty() {
            return;
        }
        let mut done = VcpuSet::EMPTY;
        // BOUND: the vCPUs of one guest, some 20 instructions each.
        for waiter in waiting {
            if self.machine.vcpu(waiter).fences_awaited.answer() {
                done.insert(waiter);
            }
        }
        // Not told at once even if it is only one: that one may have fences to answer itself, and so on.
        for waiter in done {
            self.machine.vcpu(waiter).request(Requests::FENCED);
        }
        self.backlog.untold |= done;
        self.resume_backlog();
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
