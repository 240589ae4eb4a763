//! Choosing what runs next, and the world switch.
use ainori_sched::{Decision, VcpuId};
use ainori_trace::Event;

use super::Cpu;
use super::mechanism::Before;
use super::threshold::IDLE;
use crate::arch::clock;
use crate::arch::context::{begin_again, enter_guest};
use crate::arch::{VcpuState, hart, world};
use crate::guest::translation;
use crate::stats::Exit;

impl Cpu {
    /// The end of every event but those that return at once: reads the mail, decides which vCPU runs, and prepares the hart for it. Returns
    /// the state of that vCPU. None if no guest is to be entered yet: something else has to be done first, or no vCPU could run and the
    /// core has waited here for an interrupt.
    #[inline(always)]
    pub fn dispatch(&mut self) -> Option<*mut VcpuState> {
        if self.mailbox.has_mail() || self.pending.backlog {
            // Who is due while that is read had better be woken before.
            if self.meet_deadline(clock::now()) && self.gives_way() {
                return None;
            }
            if self.is_wanted() && !self.has_urgent_work() && !self.mechanisms.deferral.is_on {
                // The mail is read at the end of its way, if there is time. A policy that defers may go on with somebody else.
                if self.pending.backlog {
                    self.defer_backlog(true);
                }
            } else {
                if !self.work_off() || self.gives_way() {
                    return None;
                }
            }
        }
        let mut now = clock::now();
        // What was done meanwhile took its time: whoever is due by now should not wait for one more switch.
        if self.meet_deadline(now) && self.gives_way() {
            return None;
        }
        (self.pending.woken, self.pending.fences) = (false, false);
        if self.mechanisms.are_any {
            match self.prepare_decision(&mut now) {
                Before::Decide => {}
                Before::Again => return None,
                Before::Keep(id) => {
                    return (!self.pending.backlog && self.leaves_for(id))
                        .then(|| &raw mut self.resident(id).state);
                }
            }
        }
        let decision = self.scheduler.schedule(now);
        let Some(id) = decision.run else {
            self.leave_vcpu(decision.previous, false, now);
            if let Some(VcpuId(from)) = decision.previous {
                self.trace(Event::Switch { from: Some(from), to: None });
            }
            self.publish_threshold(IDLE);
            self.note_asleep(decision.previous);
            if self.pending.deadlines {
                // An idle core watches the timers of all levels.
                if self.is_crowded && self.gives_way_if_long() {
                    return None;
                }
                self.update_deadline_out_of_line(None);
            }
            let look_again = self.pull_work(now);
            if !self.pending.woken && !self.pending.backlog {
                self.idle(look_again);
            }
            return None;
        };
        if self.mechanisms.confinement.is_on && self.relocate(id, decision.previous, now) {
            return None;
        }
        if decision.previous != Some(id) || self.loaded != Some(id) {
            self.switch(&decision, id, now);
        } else {
            // They may have been raised for one that, after all, doesn't get the core.
            let resident = self.resident(id);
            let (irq_threshold, threshold) = (resident.irq_threshold, resident.threshold);
            self.set_irq_threshold(irq_threshold);
            self.publish_threshold(threshold);
            // So may files have been, for one that has left since.
            if self.files.are_others {
                self.watch_files_beside(id);
            }
            if !self.mechanisms.watch.vcpus.is_empty() {
                self.look_for_sample();
            }
        }
        if self.pending.backlog {
            // Something more urgent than what was chosen may come of it.
            return None;
        }
        if self.pending.deadlines {
            if self.is_crowded && self.gives_way_if_long() {
                return None;
            }
            self.update_deadline(None);
        }
        self.set_alarm(decision.alarm);
        if clock::now() >= self.next_deadline {
            // The switch itself took its time: it is quicker to switch again than to leave and be interrupted at once.
            return None;
        }
        if !self.leaves_for(id) {
            return None;
        }
        let resident = self.resident(id);
        let (due, shared) = (resident.due, resident.shared);
        self.carry_out_fences(id, shared);
        if due != 0 {
            if world::is_interrupted() {
                self.resident(id).note_delivery();
            } else {
                if !self.await_interrupt(id, due, decision.alarm) {
                    return None;
                }
                self.resident(id).note_delivery();
            }
        }
        self.trace_taken(id);
        Some(&raw mut self.resident(id).state)
    }

    /// Gives the core to another vCPU than before.
    #[inline(always)]
    fn switch(&mut self, decision: &Decision, id: VcpuId, now: u64) {
        self.leave_vcpu(decision.previous, decision.preempted, now);
        self.enter_vcpu(id, now);
        if self.later.is_deferred() {
            self.interrupt_first(id);
            self.hold_off_look(id, now);
            self.end_quiet_above(id);
        }
        if self.mechanisms.are_any {
            self.note_switch(decision, id, now);
        }
        let from = decision.previous.map(|previous| previous.0);
        self.trace(Event::Switch { from, to: Some(id.0) });
    }

    /// The vCPU that ran until now doesn't any more, or the core was without any until now. All of a core's time is the one or the other.
    #[inline(always)]
    pub(super) fn leave_vcpu(&mut self, previous: Option<VcpuId>, preempted: bool, now: u64) {
        let ran = now - self.since;
        self.since = now;
        let Some(id) = previous else {
            self.counters.idle += ran;
            return;
        };
        let waiting = if self.scheduler.is_asleep(id) { 0 } else { now };
        let resident = self.resident(id);
        let shared = resident.shared;
        shared.publish_waiting(waiting);
        // Asleep or not, what others want of its translations can wait until it runs again.
        shared.fences.depart();
        resident.counters.running += ran;
        resident.counters.preemptions += u64::from(preempted);
        resident.count_latency();
    }

    /// Makes the hart that of the vCPU.
    #[inline(always)]
    fn enter_vcpu(&mut self, id: VcpuId, now: u64) {
        let me = core::ptr::from_mut(self).cast();
        let is_loaded = self.loaded == Some(id);
        let mut old = None;
        if !is_loaded {
            old = self.loaded.map(|old| &raw mut *self.state(old));
            self.loaded = Some(id);
            self.counters.switches += 1;
        }
        let others_extensions = self.extensions != Some(id);
        let resident = self.resident(id);
        let shared = resident.shared;
        shared.fences.arrive();
        shared.publish_waiting(0);
        resident.counters.dispatches += 1;
        let (irq_threshold, threshold) = (resident.irq_threshold, resident.threshold);
        if !is_loaded {
            // A timer that ran out while it could not run: nobody has waited for it so far.
            if resident.due == 0
                && let Some(at) = resident.state.deadline().filter(|at| *at <= now)
            {
                resident.due = at;
            }
            // SAFETY: `old` is another vCPU than this one, and nobody else refers to it.
            let old = old.map(|old| unsafe { &mut *old });
            match old {
                // SAFETY: the world of `old` is in the hart. `me` is this core, which boot has made for ever (`boot::cores::make`). The
                // reference to it that the trap entry has given to this event ends before the next trap of a guest: the event's last deed
                // is to enter one, and never returns.
                Some(old) => unsafe { resident.state.load_over(old, me) },
                // SAFETY: no world is in the hart; `me` is as above.
                None => unsafe { resident.state.load(me) },
            }
            if others_extensions {
                // They are exchanged now if the guest has the units switched on, so that it will probably use them; else its
                // first use traps. That takes half as long as the switch: before it is a preemption point, which only an urgent one doesn't
                // heed that is its core's most urgent.
                resident.state.switch_extensions_off();
                if resident.state.wants_extensions()
                    && (!self.gives_way() && !self.is_deadline_near(clock::now())
                        || self.urgent.contains(id) && self.is_top(id))
                {
                    self.reload_extensions(id);
                }
            }
        } else if self.files.are_others {
            self.watch_files_beside(id);
        }
        self.set_irq_threshold(irq_threshold);
        self.publish_threshold(threshold);
    }

    /// Puts the extension registers of the loaded vCPU into the hart.
    #[inline(never)]
    pub(super) fn reload_extensions(&mut self, id: VcpuId) {
        self.put_away_extensions();
        self.extensions = Some(id);
        // SAFETY: the registers of the former owner have just been saved.
        unsafe { self.state(id).load_extensions() };
    }

    /// Writes the extension registers that are in the hart to memory.
    #[inline(never)]
    pub(super) fn put_away_extensions(&mut self) {
        let Some(id) = self.extensions.take() else { return };
        // SAFETY: `extensions` said whose registers the hart holds.
        unsafe { self.state(id).save_extensions() };
    }

    /// Only devices of guests that are at least as urgent may interrupt a vCPU: lower ones wait in the interrupt controller until
    /// the core is given to somebody less urgent. The threshold is as the controller [has it](ainori_board::BoardIrqchip::threshold); of any, 0
    /// lets all through.
    #[inline]
    pub(super) fn set_irq_threshold(&mut self, threshold: u16) {
        if self.irq_threshold.set(threshold) && self.devices.are_waiting() {
            self.review_waiting();
        }
    }

    /// Sets the alarm to the earliest of: end of the quantum, deadlines of sleeping vCPUs that may take the core,
    /// housework, and what was left for [later](super::later).
    #[inline(always)]
    fn set_alarm(&mut self, quantum: Option<u64>) {
        self.pending.alarm = false;
        self.own_work_due = self.housework_alarm().min(self.later.due());
        let alarm = self.next_deadline.min(quantum.unwrap_or(u64::MAX)).min(self.own_work_due);
        if alarm != self.alarm {
            self.alarm = alarm;
            hart::set_alarm(alarm);
        }
    }

    /// Sets the alarm anew, having found out who is due next if that is out of date: [`Self::set_alarm`] takes `next_deadline` as it is.
    #[inline(never)]
    pub(super) fn update_and_set_alarm(&mut self, quantum: Option<u64>) {
        if self.pending.deadlines {
            self.update_deadline(None);
        }
        self.set_alarm(quantum);
    }

    /// Waits for an interrupt of the core, which the next attempt takes. At `look_again` at the latest there may be something to do.
    #[inline(never)]
    fn idle(&mut self, look_again: Option<u64>) {
        self.set_irq_threshold(self.mechanisms.windows.idle_threshold);
        self.watch_files_of_sleepers();
        self.update_and_set_alarm(look_again);
        if world::is_interrupted()
            && let Some(id) = self.loaded.take()
        {
            // A vCPU that has stopped, say. If it is one that sleeps, it is about to be woken.
            self.state(id).save();
            world::forget();
        }
        if self.mailbox.leave() {
            hart::wait();
            self.mailbox.enter();
        }
        self.entered = clock::now();
        self.busy_since = self.entered;
    }

    /// Can the running vCPU wait for an interrupt in the hart? If it makes no difference to others, and nobody else here could run. Not while something
    /// is deferred, or others keep quiet: a core that idles does that at once.
    #[inline(always)]
    pub(super) fn may_doze(&mut self, id: VcpuId) -> bool {
        self.resident(id).may_doze
            && self.scheduler.is_alone(id)
            && self.pending.is_empty()
            && !self.later.is_deferred()
    }

    /// Waits with the running vCPU in the hart, which is woken by that one's own timer as well as by all that interrupts the core. Others see what
    /// they see of a vCPU that runs, but for its fences, which need not wake it. If the core is wanted otherwise, it sleeps from then on.
    #[inline(never)]
    pub(super) fn doze(&mut self, id: VcpuId) -> ! {
        self.note_exit(id, Exit::Wfi);
        self.trace(Event::Switch { from: Some(id.0), to: None });
        let began = clock::now();
        let ran = began - self.since;
        let resident = self.resident(id);
        resident.shared.fences.depart();
        resident.counters.running += ran;
        hart::wait();
        let now = clock::now();
        self.counters.idle += now - began;
        (self.since, self.entered, self.busy_since) = (now, now, now);
        self.trace(Event::Switch { from: None, to: Some(id.0) });
        let resident = self.resident(id);
        let shared = resident.shared;
        shared.fences.arrive();
        if world::is_interrupted() && hart::pending_interrupts().is_empty() && !translation::is_owed(shared) {
            // By nothing but its timer, or what it had pending and won't take now: what others want comes with an IPI.
            resident.due = world::loaded_deadline().unwrap_or(now);
            resident.note_delivery();
            // Another look for it behind the next lines would be five instructions more on the way of each WFI.
            let mut state = &raw mut resident.state;
            if self.carry_out_fences(id, shared) {
                state = self.state(id);
            }
            self.trace_taken(id);
            self.note_irqs_off(Exit::Wfi, clock::now());
            // SAFETY: the vCPU whose state this is was left in the hart.
            unsafe { enter_guest(state) }
        }
        self.mailbox.enter();
        self.wait_for_interrupt(id);
        // SAFETY: this is the core's stack, which is left for good here.
        unsafe { begin_again(core::ptr::from_mut(self).cast()) }
    }

    /// The running vCPU lets its equals go first.
    pub fn yield_now(&mut self) {
        self.scheduler.yield_now();
    }

    /// First entry of this core into a guest, or into its wait for one.
    pub fn run(&mut self) -> ! {
        self.since = clock::now();
        self.entered = self.since;
        self.busy_since = self.since;
        self.mailbox.enter();
        #[cfg(feature = "watchdog")]
        if self.id == self.machine.console_core {
            self.begin_watching();
        }
        // SAFETY: nobody needs what led to here any more.
        unsafe { begin_again(core::ptr::from_mut(self).cast()) }
    }
}
