//! The real-time path ahead of time.
//!
//! The way from a timer to the RTOS's handler takes the hypervisor some 600 instructions, and it runs to completion with interrupts off, so that
//! whatever it has begun before comes on top. But the RTOS's timer is no surprise: its deadline stands in the sleeping vCPU's state.
//!
//! - The vCPU is woken [`Resident::advance`](crate::guest::vcpu::Resident::advance) before that. The core switches to it, waits until its timer
//!   interrupts it, and enters it then ([`Cpu::await_interrupt`]). KVM does so too (`lapic_timer_advance_ns`).
//! - For a few microseconds before that, the *guard*, nothing is begun that could outlast it: a trap is not handled, but the vCPU is woken at
//!   once. The interrupted guest goes on later at the instruction that trapped, which then traps again. Nor is a switch to somebody less urgent begun.
use ainori_sched::VcpuId;

use super::Cpu;
use crate::arch::clock;
use crate::arch::hart::{self, Interrupts};
use crate::arch::world;
use crate::guest::translation;
use crate::stats::Exit;

/// Length of the guard, in microseconds: what the hypervisor does between two guests seldom takes longer, and of a period of a
/// millisecond it is half a percent of one core, if a trap falls into it at all.
pub const GUARD_US: u64 = 5;
/// How near to a deadline nothing is begun that isn't on its way, in the unit of `guard`, the guard's length: a piece of housework, and
/// then the way to a guest, are over before the guard begins.
#[inline(always)]
pub const fn near(guard: u64) -> u64 {
    2 * guard
}
/// A section that has taken so long has a preemption point before anything that takes up to half the guard: with what follows, a section is
/// not to be longer than the guard.
#[inline(always)]
pub const fn long(guard: u64) -> u64 {
    guard / 4
}
/// A section that has taken so long has no time at all for what takes up to half the guard, and can be done later or not at all.
#[inline(always)]
pub const fn too_long(guard: u64) -> u64 {
    guard / 2
}
/// What takes less counts as nothing: a trap's service has no preemption point behind it, and what was found out of all sleepers still holds.
#[inline(always)]
pub const fn brief(guard: u64) -> u64 {
    guard / 8
}
/// Up to so many levels, to look through the timers of all is done in passing: some 20 instructions each.
pub const FEW_LEVELS: u32 = 4;
/// Up to so many vCPUs, to put a timer in among those of others is done in passing: half of them are passed, some 12 instructions each.
pub const FEW_VCPUS: usize = 24;
/// How long it takes at most to find one of so many cores for a vCPU and to kick it, in the unit of `guard`, the guard's length: half of that, and with more
/// than ten cores more, an eighth of a microsecond for each (3.2 us with 16).
pub const fn kick_time(guard: u64, cores: usize) -> u64 {
    let (least, by_core) = (guard / 2, guard / 4 + guard * cores as u64 / 40);
    if least > by_core { least } else { by_core }
}
/// How long after its deadline a hart's timer may need to be seen, in microseconds. On a chip next to nothing; on the emulator
/// in lockstep time, a slice.
pub const SETTLING_US: u64 = 1;

impl Cpu {
    /// If a deadline is too near to handle the present trap, wakes who waits for it instead.
    #[inline]
    pub(super) fn replay_trap(&mut self) -> bool {
        let is_put_off = self.meet_deadline(self.entered);
        if is_put_off {
            self.note_put_off(self.told_apart(hart::pending_interrupts()));
        }
        is_put_off
    }

    /// Wakes who is to be woken by now: whose deadline is over, or within the guard if that one takes the core from others. True if somebody is.
    ///
    /// That has taken its time. Who goes on to choose somebody looks for interrupts then, and if there are none, chooses from those who are awake by
    /// now; who has chosen already has to choose again.
    #[inline(always)]
    pub(super) fn meet_deadline(&mut self, now: u64) -> bool {
        self.is_deadline_near(now) && self.meet_deadline_out_of_line(now)
    }

    /// May somebody have to be woken by now? To find out whom takes a look at all sleepers.
    #[inline(always)]
    pub(super) fn is_deadline_near(&self, now: u64) -> bool {
        self.next_deadline <= now + self.guard
    }

    #[inline(never)]
    pub(super) fn meet_deadline_out_of_line(&mut self, now: u64) -> bool {
        if self.is_crowded {
            let is_known = self.next_deadline > now && now < self.none_urgent_until;
            if is_known && !self.urgent.contains(self.next_sleeper) {
                return false;
            }
            // To look at them all and to wake one takes more than half the guard, so that what came before may have taken a quarter.
            if self.has_taken(long(self.guard)) && self.is_interrupted() {
                // They are woken behind that interrupt.
                return true;
            }
        }
        let is_woken = self.wake_expired(now);
        if !is_woken {
            // All have been looked at, and none that takes the core from others is due within the guard.
            self.none_urgent_until = now + brief(self.guard);
        } else if self.alarm <= now + self.guard && self.housework_alarm() > now + self.guard {
            // It would cost a round more, on the way to who has been woken. If it was also for what was left for later, it fires again behind that, as it is set anew
            // for whoever is entered; mostly they are held off by then.
            self.cancel_alarm();
        }
        is_woken
    }

    /// Others send IPIs from now on, as the vCPU `id` is entered. False if it can't be: there is mail that can't wait, or an interrupt, or somebody was woken.
    #[inline(always)]
    pub(super) fn leaves_mailbox(&mut self, id: VcpuId) -> bool {
        self.mailbox.leave() || self.leaves_mail_for_later(id)
    }

    /// The same, when what others want of the hypervisor's own for the vCPU has been seen to.
    #[inline(always)]
    pub(super) fn leaves_for(&mut self, id: VcpuId) -> bool {
        !translation::gives_way(self, id) && self.leaves_mailbox(id)
    }

    /// Mail that has come in meanwhile takes a while, too: [`Self::may_leave_mail`] behind a preemption point.
    #[inline(never)]
    fn leaves_mail_for_later(&mut self, id: VcpuId) -> bool {
        !self.meet_deadline(clock::now()) && !self.is_interrupted() && self.may_leave_mail(id)
    }

    /// Mail came in just when this core was about to enter the vCPU `id`. May `id` be entered all the same, and the mail wait? It may, if
    /// `id` takes cores from others or is about to be interrupted by its own timer, and the mail is neither for `id` nor for a vCPU that
    /// takes cores. Where more comes in than this core can do (`is_flooded`), all mail may wait but that for a vCPU that takes cores and is
    /// more urgent than all that are ready: than `id`, or than who waits until the policy takes the core from `id`.
    #[inline(never)]
    pub(super) fn may_leave_mail(&mut self, id: VcpuId) -> bool {
        let now = clock::now();
        let is_urgent = self.urgent.contains(id);
        // One that takes cores hides others' mail by its level already. It is flooded only by its own, and since it was given the core.
        let is_flooded = self.is_flooded(now) && !(is_urgent && now - self.since < self.busy_at_most());
        if !is_flooded && !is_urgent && self.own_timer_near(now).is_none() {
            return false;
        }
        if is_flooded {
            self.keep_quiet(id, now);
        }
        // The core may keep a place for one that is elsewhere: that one doesn't wait here.
        let first = self.scheduler.first().filter(|first| self.has(*first)).unwrap_or(id);
        // BOUND: three rounds. Those who have begun to send, or send for somebody more urgent, and askers of fences are left, who wait for the answer.
        for _ in 0..3 {
            self.read_mail();
            let comes_first =
                if is_flooded { self.has_work_above(first) } else { self.is_wanted_besides(id) };
            if comes_first {
                return false;
            }
            if self.mailbox.leave() {
                if is_flooded {
                    self.interrupt_first(id);
                }
                self.look_again(now + self.scheduler.policy().patience);
                return true;
            }
            if !is_urgent {
                self.keep_quiet(id, now);
            }
        }
        // Never without that others send IPIs from now on: it might be for somebody more urgent.
        false
    }

    /// Is there something to do for one that takes cores, or for the vCPU that is about to be entered itself?
    fn is_wanted_besides(&self, id: VcpuId) -> bool {
        self.has_urgent_work() || self.backlog.unread.contains(id)
    }

    /// When the loaded vCPU's own timer interrupts it, if that is within twice the guard, or was so lately that it may not have begun its work.
    pub(super) fn own_timer_near(&self, now: u64) -> Option<u64> {
        let near = near(self.guard);
        // One that is over counts for a while only: the vCPU may not take it for ever.
        let is_near = |at: &u64| {
            *at <= now + near && (now < *at || world::is_interrupted() && now < at.saturating_add(near))
        };
        world::loaded_deadline().filter(is_near)
    }

    /// What has come in is looked at then, a while after the next vCPU has been entered.
    pub(super) fn look_again(&mut self, at: u64) {
        self.pending.backlog = false;
        self.look_again_at(at);
        let due = self.later.due();
        if due < self.alarm {
            self.own_work_due = due;
            self.alarm = due;
            hart::set_alarm(self.alarm);
        }
        self.pending.alarm = false;
    }

    /// The core could enter the loaded vCPU, which has been woken for an interrupt that isn't there yet, as its timer is due only then: waits
    /// for it. False if this core has something else to do first.
    #[inline(never)]
    pub(super) fn await_interrupt(&mut self, id: VcpuId, due: u64, quantum: Option<u64>) -> bool {
        self.mailbox.enter();
        let mut now = clock::now();
        // Nothing that this core has to do for itself is to interrupt what begins at `due`; but what it has deferred isn't kept from its turn for ever.
        let patience = self.scheduler.policy().patience;
        let look = due + patience;
        if self.own_work_due < look {
            if self.later.due_for_all() > now - patience {
                self.later.put_off(look);
            }
            self.hold_off_housework(due, look);
            self.update_and_set_alarm(quantum);
        }
        let end = due + self.settling;
        let mut is_free = true;
        let mut waits = false;
        // A device of the board interrupts the guest, if it may.
        // BOUND: until the deadline, which is what this core is here for.
        while is_free
            && now < end
            && !world::is_interrupted()
            && !self.told_apart(hart::pending_interrupts()).contains(Interrupts::EXTERNAL)
        {
            if !waits {
                // Interrupts are looked for from now on.
                waits = true;
                self.end_irqs_off(Exit::Backlog, now);
                hart::settle_alarm();
            }
            // There is time for what the policy wants done as soon as the core is taken. If not, it is done when what was deferred is.
            if now + self.kick_time <= due
                && let Some(preempted) = self.backlog.preempted.pop()
            {
                self.entered = now;
                (self.backlog.gave_way_to, self.backlog.deferred_at) = (0, 0);
                self.kick_preempted(preempted);
                self.end_irqs_off(Exit::Backlog, clock::now());
            }
            now = clock::now();
            is_free = now < self.next_deadline;
            // In the last moment mail is left for when the core would enter the vCPU: to read it twice would make that late.
            if now + self.settling / 2 < due && self.mailbox.has_mail() {
                self.read_mail();
                if self.has_urgent_work() {
                    is_free = false;
                } else {
                    // Nothing that could not wait a little longer.
                    self.look_again(look);
                }
            }
        }
        if waits {
            // Nothing that came in meanwhile was kept waiting.
            (self.entered, self.busy_since) = (now, now);
        }
        // The IPI for mail that was read before it came need not be taken once more: that would be a trap just after the guest is entered.
        self.clear_ipi();
        is_free && (self.mailbox.leave() || self.may_leave_mail(id))
    }
}
