//! Messages between cores.
//!
//! A message says only "look at vCPU n". What is wanted stands in the vCPU's own atomic words, so it can be said
//! twice without harm, and it follows the vCPU: a core that finds it gone passes the message on to its new owner.
use core::sync::atomic::Ordering;

use ainori_handover::{Core, Fence, Fences, ParkingSlot, RequestWord, Requests};
use ainori_mailbox::{Delivery, Items};
use ainori_sched::{Occasion, VcpuId, VcpuSet};
use ainori_trace::{Event, Line};

use super::threshold::hears;
use super::{Cpu, guard};
use crate::arch::fence;
use crate::arch::world::{self, Lines};
use crate::guest::vcpu::{Hold, Resident, Vcpu};

/// The item that stands for the machine rather than for a vCPU: housework, or the end of the run.
pub const MACHINE: u32 = ainori_limits::NO_VCPU as u32;

/// The same in a set of vCPUs: a part of the [backlog](super::backlog) that concerns none in particular.
pub const NO_VCPU: VcpuId = VcpuId(ainori_limits::NO_VCPU);

impl Cpu {
    /// Asks the owner of a vCPU for something, itself if that is this core.
    pub fn ask(&mut self, id: VcpuId, what: Requests) {
        self.request(id, what);
        self.tell(id);
    }

    /// The same behind the present event, and behind a preemption point ([`backlog`](super::backlog)).
    pub fn ask_later(&mut self, id: VcpuId, what: Requests) {
        self.ask_all_later(VcpuSet::of(id), what);
    }

    /// Asks something of several vCPUs: how many there are is up to a guest, so their owners are told [later](Self::ask_later), in their turns. A
    /// single one is told at once, which takes no longer than to defer it, unless the present event has taken long already.
    pub fn ask_all(&mut self, ids: VcpuSet, what: Requests) {
        match (ids.into_iter().next(), ids.len()) {
            (Some(id), 1) if !self.has_taken(guard::long(self.guard)) => {
                self.request(id, what);
                self.tell(id);
            }
            _ => self.ask_all_later(ids, what),
        }
    }

    /// Asks vCPUs to answer those who wait for fences. As what has been recorded stands in their own words, several are not even [requested](Self::request)
    /// before they have their turns.
    pub fn ask_for_fences(&mut self, ids: VcpuSet) {
        if ids.len() == 1 {
            return self.ask_all(ids, Requests::FENCE);
        }
        self.backlog.unfenced |= ids;
        self.resume_backlog();
    }

    /// As [`Self::ask_later`], of several vCPUs.
    pub(super) fn ask_all_later(&mut self, ids: VcpuSet, what: Requests) {
        // BOUND: the vCPUs of one guest, some 25 instructions each.
        for id in ids {
            self.request(id, what);
        }
        self.backlog.untold |= ids;
        self.resume_backlog();
    }

    #[inline(always)]
    fn request(&mut self, id: VcpuId, what: Requests) {
        self.machine.vcpu(id).request(what);
        if what.contains(Requests::SOFTWARE) {
            self.trace(Event::Raised { vcpu: id.0, line: Line::Software });
        }
    }

    /// Tells the owner of a vCPU that something is wanted of it.
    pub(super) fn tell(&mut self, id: VcpuId) {
        ainori_handover::tell(self, id);
    }

    /// Looks whether something is wanted of a vCPU that this core can do.
    pub(super) fn look_at(&mut self, id: VcpuId) {
        crate::guest::translation::look_at(self, id);
    }

    /// Posts an item to another core, and sends an IPI if that core would not look by itself.
    pub fn post(&mut self, to: u32, item: u32) {
        self.trace(Event::Posted { to: to as u8, item });
        match self.machine.mail.post(self.id as usize, to as usize, item) {
            Delivery::WillLook => self.counters.ipis_saved += 1,
            Delivery::SendIpi => {
                self.counters.ipis_sent += 1;
                self.trace(Event::IpiSent { to: to as u8 });
                self.machine.ipi.send(to);
            }
        }
    }

    /// Takes the mail and puts it to what is to be looked at before the next guest is entered, unless the caller
    /// sets an alarm for it instead: who has sent it doesn't say it again.
    pub(super) fn read_mail(&mut self) {
        let mut items = VcpuSet::EMPTY;
        self.mailbox.take(|from, some| items |= self.note_mail(from, some));
        if !items.is_empty() {
            self.put_unread(items);
        }
    }

    /// These are to be looked at before the next guest is entered.
    #[inline]
    pub(super) fn put_unread(&mut self, items: VcpuSet) {
        self.backlog.unread |= items;
        self.pending.backlog = true;
    }

    /// Counts and traces what one core has sent.
    #[inline]
    pub(super) fn note_mail(&mut self, from: usize, items: Items) -> VcpuSet {
        let items = VcpuSet::from_words(items);
        self.counters.messages += items.len() as u64;
        if self.trace.wants(ainori_trace::Kind::Received) {
            self.trace_received(from, items);
        }
        items
    }

    pub(super) fn look_at_machine(&mut self) {
        if self.machine.finishing.load(Ordering::Acquire) {
            self.finish();
        }
        // One at a time, each behind a preemption point: the last ones of many guests may come to rest together.
        match self.resting.pop() {
            Some(id) => {
                self.note_rest(id);
                self.put_unread(VcpuSet::of(NO_VCPU));
            }
            None => self.look_for_housework(),
        }
    }

    /// Starts a vCPU that somebody has asked the start of (SBI HSM).
    pub fn start(&mut self, id: VcpuId) {
        let vcpu = self.machine.vcpu(id);
        if !self.machine.guest_of(id).lifecycle.is_running() {
            return;
        }
        // What the hart still holds of its former life must not be saved over the new one.
        self.unload(id);
        let (address, opaque) = vcpu.hart.start_arguments();
        self.resident(id).start(u64::from(vcpu.index), address, opaque);
        vcpu.hart.note_start();
        self.wake(id);
    }

    /// Carries out the fences that were recorded for a vCPU, which is about to be entered. Every way into a guest does this, but those that
    /// have found nothing [pending](super::pending) since it was entered last: then it has promised none since. True if there were any.
    #[inline(always)]
    pub(super) fn carry_out_fences(&mut self, id: VcpuId, vcpu: &Vcpu) -> bool {
        let recorded = vcpu.fences.take();
        if recorded.is_empty() {
            return false;
        }
        self.carry_out(id, recorded);
        true
    }

    #[inline(never)]
    fn carry_out(&mut self, id: VcpuId, recorded: Fence) {
        self.trace(Event::Fence { vcpu: id.0, applied: true });
        // Of its translations: what the hart has cached of them, and if the hypervisor shadows them, what it keeps
        // itself.
        crate::guest::translation::carry_out(self, id, recorded);
        if recorded.contains(Fence::INSTRUCTIONS) {
            fence::instructions();
        }
    }

    /// Forgets what the hart holds of a vCPU.
    fn unload(&mut self, id: VcpuId) {
        if self.extensions == Some(id) {
            self.extensions = None;
        }
        if self.loaded == Some(id) {
            self.loaded = None;
            world::lower(Lines::all());
            world::forget();
        }
    }
}

/// What the rules of [`ainori_handover`] need of a core.
impl Core for Cpu {
    type Resident = Resident;

    #[inline]
    fn number(&self) -> u32 {
        self.id
    }

    #[inline]
    fn parking(&self, id: VcpuId) -> &ParkingSlot<Resident> {
        &self.machine.vcpu(id).parking
    }

    #[inline]
    fn requests(&self, id: VcpuId) -> &RequestWord {
        &self.machine.vcpu(id).requests
    }

    #[inline]
    fn fences(&self, id: VcpuId) -> &Fences {
        &self.machine.vcpu(id).fences
    }

    #[inline]
    fn has(&self, id: VcpuId) -> bool {
        Cpu::has(self, id)
    }

    #[inline]
    fn accepts(&self, id: VcpuId, core: u32) -> bool {
        Cpu::accepts(self, id, core)
    }

    #[inline]
    fn accepts_here(&self, id: VcpuId) -> bool {
        hears(self.threshold.level, self.machine.vcpu(id).level_on(self.id))
    }

    fn may_run(&self, id: VcpuId) -> bool {
        self.machine.vcpu(id).may_run_on(self.id)
    }

    fn wants(&self, id: VcpuId) -> bool {
        !self.waits_for_its_turn(id)
    }

    fn pulls_for_interrupts(&self) -> bool {
        self.scheduler.policy().pulls(Occasion::Interrupt)
    }

    #[inline]
    fn post(&mut self, to: u32, id: VcpuId) {
        Cpu::post(self, to, u32::from(id.0));
    }

    fn claim(&mut self, id: VcpuId) -> bool {
        Cpu::claim(self, id)
    }

    fn kick(&mut self, id: VcpuId) -> bool {
        Cpu::kick(self, id)
    }

    fn send_on(&mut self, id: VcpuId) {
        self.refuse(id);
    }

    #[inline(always)]
    fn interrupt(&mut self, id: VcpuId, what: Requests) {
        if what.contains(Requests::SOFTWARE) {
            self.resident(id).note_request();
            world::raise(Lines::SOFTWARE);
            self.trace(Event::Injected { vcpu: id.0, line: Line::Software });
        }
        if what.contains(Requests::EXTERNAL) {
            self.update_external(id);
        }
    }

    #[inline]
    fn serve(&mut self, id: VcpuId, what: Requests) {
        let vcpu = self.machine.vcpu(id);
        if what.contains(Requests::RESET) {
            return self.reset(id);
        }
        if what.contains(Requests::START) {
            self.start(id);
            self.tell_of_bells(id);
        }
        // The request may be about fences of a former life.
        if what.contains(Requests::FENCED)
            && self.resident(id).hold == Hold::Fences
            && vcpu.fences_awaited.all_given()
        {
            self.resident(id).hold = Hold::None;
            self.wake(id);
        }
        if what.contains(Requests::SOFTWARE) {
            self.raise(id, Lines::SOFTWARE, Line::Software);
        }
        // A start resets a vCPU's lines with its registers, but not its interrupt controller.
        if what.intersects(Requests::EXTERNAL.union(Requests::START)) {
            self.update_external(id);
        }
        if what.contains(Requests::SEND) {
            self.send_message(id);
        }
        if what.contains(Requests::STOP) {
            self.bring_to_rest(id);
        } else if what.contains(Requests::HOME) {
            self.resident(id).called_home = true;
            self.unsettle(id);
        } else if what.contains(Requests::WANTED) {
            self.give_away(id);
        }
    }

    fn answer(&mut self, waiting: VcpuSet) {
        let mut done = VcpuSet::EMPTY;
        self.note_answered(!waiting.is_empty());
        // BOUND: the vCPUs of one guest, some 20 instructions each.
        for waiter in waiting {
            if self.machine.vcpu(waiter).fences_awaited.answer() {
                done.insert(waiter);
            }
        }
        // Not told at once even if it is only one: that one may have fences to answer itself, and so on.
        self.ask_all_later(done, Requests::FENCED);
    }
}
