//! Preemption points. The hypervisor runs to completion with interrupts off; where that may take long, it asks here whether something more
//! urgent has come up meanwhile ("preemption point" is seL4's word), and accounts for how long interrupts were off.
use super::{Cpu, given_way, guard};
use crate::arch::clock;
use crate::arch::hart::{self, Interrupts};
use crate::chip::irqchip::CoreIrqs;
use crate::stats::Exit;

/// How many times as long as an alarm for the hypervisor's own work has come late the guest goes on before the next one, at least, where the firmware sets the timer.
const TIMES_LATE: u64 = 8;

impl Cpu {
    /// For how many ticks the guest that was interrupted goes on at least, before it is for the same work again, which was due at `due` and is begun `now`.
    ///
    /// Pauses are chosen for harts where the way from a guest to such work and back takes less. Where the firmware sets the timer, and mostly tells the time as well, it can take longer (U54:
    /// 60 us, where a look at who may spin comes behind 10): each time would be over before the guest has executed an instruction, for ever. The way to the work is a part of that, and known. What
    /// has been late for another reason waits no longer than what has [given way](given_way).
    #[inline(always)]
    pub(super) fn least_pause(&self, due: u64, now: u64) -> u64 {
        if !cfg!(feature = "sbi-timer") {
            return 0;
        }
        let late = now.saturating_sub(due);
        TIMES_LATE.saturating_mul(late).min(self.machine.ticks(given_way::INTERVAL_US))
    }

    /// A preemption point: has an interrupt come in meanwhile?
    pub fn gives_way(&mut self) -> bool {
        self.gives_way_to(Interrupts::all())
    }

    /// The same for some interrupts only.
    #[inline(never)]
    pub(super) fn gives_way_to(&mut self, interrupts: Interrupts) -> bool {
        // Mostly there is none: this is on the RTOS's way.
        let pending = hart::pending_interrupts();
        let gives_way = pending.intersects(interrupts) && self.told_apart(pending).intersects(interrupts);
        if !gives_way {
            self.end_irqs_off(Exit::Backlog, clock::now());
        }
        gives_way
    }

    /// A preemption point before what takes up to half the guard, if the present section has been [`long`](guard::long) already: has an
    /// interrupt come in meanwhile?
    #[inline(never)]
    pub(super) fn gives_way_if_long(&mut self) -> bool {
        self.has_taken(guard::long(self.guard)) && self.gives_way()
    }

    /// Has the present section taken so long already, in ticks?
    #[inline(always)]
    pub(super) fn has_taken(&self, limit: u64) -> bool {
        clock::now() - self.entered >= limit
    }

    /// What is pending, in which an IPI is a software interrupt on any board: one that has come as a message becomes that here. To be asked where devices are
    /// given way to, but mail isn't: else the IPI would cost somebody whose deadline is near a round more.
    #[inline(always)]
    pub(super) fn told_apart(&self, pending: Interrupts) -> Interrupts {
        if self.ipis_are_messages { self.tell_apart() } else { pending }
    }

    /// The same where IPIs are messages.
    #[cold]
    #[inline(never)]
    fn tell_apart(&self) -> Interrupts {
        if self.irqs.as_ref().is_some_and(CoreIrqs::claim_ipi) {
            hart::raise_software_interrupt();
        }
        hart::pending_interrupts()
    }

    /// The IPI for mail that is looked for from here on need not be taken: that would be a trap just after a guest is entered.
    #[inline(always)]
    pub(super) fn clear_ipi(&self) {
        if self.ipis_are_messages {
            self.tell_apart();
        }
        hart::clear_software_interrupt();
    }

    /// Serves the interrupts that have come in meanwhile, until there are no more: a preemption point.
    #[inline(never)]
    pub(super) fn look_for_interrupts(&mut self) {
        // BOUND: mostly a round or two. An alarm that has been taken is off, a core that looks at its mail isn't sent IPIs, and a source of the
        // interrupt controller comes again only when it has been handed on and completed: once in a while for each guest. A file that has been taken is mute, isn't watched any
        // more, or is a bell that says nothing before its hearer has looked.
        loop {
            self.end_irqs_off(Exit::Backlog, clock::now());
            let pending = hart::pending_interrupts();
            if pending.contains(Interrupts::TIMER) {
                self.take_alarm_between_guests();
            } else if pending.contains(Interrupts::SOFTWARE) {
                self.take_ipi();
            } else if pending.contains(Interrupts::GUEST_FILE) {
                self.take_guest_file_unless_woken();
            } else if pending.contains(Interrupts::EXTERNAL) {
                if !self.told_apart(pending).contains(Interrupts::SOFTWARE) {
                    self.take_external_unless_woken();
                }
            } else {
                return;
            }
        }
    }

    /// A preemption point: must the present work give way to something more urgent, or to an interrupt?
    pub(super) fn is_preempted(&mut self) -> bool {
        if self.is_interrupted() {
            return true;
        }
        if self.is_deadline_near(self.entered) {
            // To look at all sleepers takes its time, whether one is woken or not.
            self.meet_deadline_out_of_line(self.entered);
            if self.is_interrupted() {
                return true;
            }
        }
        if self.is_wanted_out_of_line() {
            return true;
        }
        if !self.mailbox.has_mail() {
            return false;
        }
        self.read_mail();
        // That has taken its time, too.
        self.is_interrupted()
    }

    /// Has an interrupt come in meanwhile, other than that there is mail?
    pub(super) fn is_interrupted(&mut self) -> bool {
        self.gives_way_to(Interrupts::all() - Interrupts::SOFTWARE)
    }

    /// A preemption point between a trap that took a while and what follows from it.
    #[inline(always)]
    pub(super) fn pause_if_long(&mut self, exit: Exit) {
        let now = clock::now();
        if now - self.entered >= guard::brief(self.guard) {
            self.end_irqs_off(exit, now);
            self.look_for_interrupts();
        }
    }

    /// At this moment interrupts are looked for: what was done so far has kept nobody waiting for longer than it took.
    #[inline(never)]
    pub(super) fn end_irqs_off(&mut self, cause: Exit, now: u64) {
        self.note_irqs_off(cause, now);
        self.entered = now;
    }

    #[inline(always)]
    #[expect(clippy::indexing_slicing, reason = "there is a place for each `Exit`")]
    pub(super) fn note_irqs_off(&mut self, cause: Exit, now: u64) {
        let time = now - self.entered;
        self.counters.irqs_off_total[cause as usize] += time;
        let longest = &mut self.counters.irqs_off_max[cause as usize];
        if time > *longest {
            *longest = time;
        }
    }
}
