//! Work that has many parts, a part at a time.
//!
//! How much a core has to do for others can be up to the guests: a guest with many vCPUs sends interrupts to all of them, others'
//! messages come in, lent vCPUs are to be brought back. The hypervisor runs to completion with interrupts off, so in one go all
//! that would be the RTOS's delay. Instead, the vCPUs that are concerned stand in a set, the *backlog*, and after each of them there is
//! a *preemption point* (seL4's word): if a more urgent vCPU wants the core by then, or an interrupt does, what is left waits.
//!
//! Nothing gets lost by that, since a member says only "look at vCPU n", and what is wanted of it stands in its own words. Nobody waits
//! for ever either: what is left is taken up again when the more urgent one leaves, or [`Policy::patience`](ainori_sched::Policy::patience)
//! later, beside it. Then only those are served that wait for a fence, which takes little.
use ainori_sched::{VcpuId, VcpuSet};
use ainori_trace::Event;

use super::Cpu;
use super::mail::MACHINE;
use crate::arch::csr::{self, interrupt};
use crate::arch::hart;
use crate::stats::Exit;

/// What is still to be done, by vCPU.
pub(super) struct Backlog {
    /// Is to be looked at before the next guest is entered. If not, but there is something, an alarm is set for it.
    pub(super) due: bool,
    /// This core has requested something of them, and not told their owners yet.
    pub(super) untold: VcpuSet,
    /// Others want them to be looked at.
    pub(super) unread: VcpuSet,
    /// They wait here, or lie, where they get no turn.
    pub(super) unattended: VcpuSet,
    /// They belong here, or were lent here, and this core has room for them again.
    pub(super) strays: VcpuSet,
}

/// One part.
enum Part {
    Tell(VcpuId),
    Look(VcpuId),
    Attend(VcpuId),
    Collect(VcpuId),
}

impl Backlog {
    pub(super) const EMPTY: Self = Self {
        due: false,
        untold: VcpuSet::EMPTY,
        unread: VcpuSet::EMPTY,
        unattended: VcpuSet::EMPTY,
        strays: VcpuSet::EMPTY,
    };

    fn is_empty(&self) -> bool {
        (self.untold | self.unread | self.unattended | self.strays).is_empty()
    }

    /// Takes out the next part: what concerns `urgent` vCPUs first.
    fn next(&mut self, urgent: VcpuSet) -> Option<Part> {
        if let Some(id) = (self.unread & urgent).pop() {
            self.unread.remove(id);
            return Some(Part::Look(id));
        }
        let parts: [(&mut VcpuSet, fn(VcpuId) -> Part); 4] = [
            (&mut self.untold, Part::Tell),
            (&mut self.unread, Part::Look),
            (&mut self.unattended, Part::Attend),
            (&mut self.strays, Part::Collect),
        ];
        parts.into_iter().find_map(|(set, part)| set.pop().map(part))
    }
}

impl Cpu {
    /// Reads the mail, and does what there is to do until all is done or something more urgent is.
    #[inline(never)]
    pub(super) fn work_off(&mut self) {
        // Who has rung for this mail need not be answered once more: that would be a trap just after the guest is entered. First, as a
        // ring always comes after its mail.
        hart::clear_software_interrupt();
        self.read_mail();
        if self.deadlines_changed {
            self.next_deadline = self.earliest_deadline();
        }
        // BOUND: a part a round; the sets grow only by mail, and between two parts is a preemption point.
        while !self.is_wanted() {
            match self.backlog.next(self.urgent) {
                None => {
                    self.backlog.due = false;
                    return;
                }
                Some(Part::Look(VcpuId(id))) if u32::from(id) == MACHINE => self.look_at_machine(),
                Some(Part::Look(id)) => self.look_at(id),
                Some(Part::Tell(id)) => self.tell(id),
                Some(Part::Attend(id)) => self.attend_to(id),
                Some(Part::Collect(id)) => self.collect(id),
            }
            if self.preemption_point() {
                break;
            }
        }
        self.put_off_backlog();
    }

    /// Must the present work give way to something more urgent? If not, nothing has been kept waiting by what was done so far.
    pub(super) fn preemption_point(&mut self) -> bool {
        let now = csr::time();
        if self.next_deadline <= now + self.guard {
            self.meet_deadline();
        }
        if self.is_wanted() || hart::pending_interrupts() & !interrupt::SOFTWARE != 0 {
            return true;
        }
        if self.machine.mail.has_mail(self.id as usize) {
            self.read_mail();
        }
        self.end_stretch(now);
        false
    }

    /// At this moment no interrupt is pending: what was done so far has kept nobody waiting for longer than it took.
    pub(super) fn end_stretch(&mut self, now: u64) {
        const CAUSE: usize = Exit::Backlog as usize;
        let stretch = now - self.entered;
        self.counters.stretch_total[CAUSE] += stretch;
        self.counters.stretch_max[CAUSE] = stretch.max(self.counters.stretch_max[CAUSE]);
        self.entered = now;
    }

    /// Is a vCPU that takes cores from others ready to take this one?
    #[inline]
    pub(super) fn is_wanted(&self) -> bool {
        let first = self.scheduler.first().filter(|id| self.urgent.contains(*id));
        first.is_some() && first != self.scheduler.running()
    }

    /// What is left of the backlog waits: until the more urgent vCPU leaves, or for a while; if it gives way to an interrupt, just until
    /// that is served.
    fn put_off_backlog(&mut self) {
        self.backlog.due = false;
        if !self.backlog.is_empty() {
            let now = csr::time();
            let pause = if self.is_wanted() { self.scheduler.policy().patience } else { 0 };
            self.look_again_at(now + pause);
        }
    }

    /// What was put off is taken up again before the next guest is entered.
    #[inline]
    pub(super) fn resume_backlog(&mut self) {
        self.backlog.due = !self.backlog.is_empty();
    }

    /// Takes the mail and puts it to what is to be looked at.
    pub(super) fn read_mail(&mut self) {
        let machine = self.machine;
        machine.mail.take(self.id as usize, |from, items| {
            let items = VcpuSet::from_bits(items);
            self.counters.messages += items.len() as u64;
            self.backlog.unread |= items;
            if self.trace.wants(ainori_trace::Kind::Received) {
                for VcpuId(item) in items {
                    self.trace(Event::Received { from: from as u8, item: u32::from(item) });
                }
            }
        });
    }
}
