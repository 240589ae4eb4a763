//! Moving vCPUs between cores (SPUMONE thesis, 4.3).
//!
//! A migration is pulled. When a vCPU of a higher level takes this core, the movable ones of lower levels are *lent*: laid
//! down in their *berths*, with their registers in memory, where whichever core takes one first has it. That is all that
//! the core of the RTOS does; who takes a vCPU and when, the policy decides on other cores, on occasions that
//! they see themselves. When the higher vCPU sleeps, the core takes its own back, or asks for them.
//!
//! | a vCPU is | it is found |
//! |---|---|
//! | running, suspended or asleep on a core | in that core's table of residents and in its scheduler |
//! | lent | in its berth (`Vcpu::take`), and still in the scheduler of the core that has lent it |
//! | laid down, on its way to another core | in its berth, in no scheduler |
use core::sync::atomic::Ordering;

use ainori_sched::{Occasion, State, VcpuId};
use ainori_trace::Event;

use super::{Cpu, SLOTS};
use crate::arch::{csr, world};
use crate::guest::vcpu::Requests;

/// Published by a core that runs nothing.
pub const IDLE: u8 = u8::MAX;

impl Cpu {
    /// `running`, of a higher level, has just got the core: the movable ones are put where others can take them.
    ///
    /// They keep their place in this core's scheduler, since mostly nobody does ([`Self::reclaim`]). This is on the RTOS's
    /// path, so what seldom happens is elsewhere.
    #[inline(never)]
    pub(super) fn lend_others(&mut self, running: VcpuId, now: u64) {
        for id in self.lendable {
            if !self.scheduler.precedes(running, id) {
                continue;
            }
            let in_kernel = world::is_in_kernel(self.context(id));
            self.lent.insert(id);
            let asked_for = self.lay_down(id, self.id);
            if asked_for || self.invites {
                self.invite_lent(id, in_kernel, asked_for);
            }
            if self.attends {
                self.unattended_due = now + self.scheduler.policy().patience;
                self.attention_due = self.unattended_due;
            }
        }
    }

    /// Has a vCPU taken that was lent just now, if this is an occasion. `asked_for`: who has asked for it just before has found this
    /// core busy, and kept quiet.
    #[inline(never)]
    fn invite_lent(&mut self, id: VcpuId, in_kernel: bool, asked_for: bool) {
        let policy = self.scheduler.policy();
        if policy.fetches(Occasion::Preempted { in_kernel })
            || asked_for && policy.fetches(Occasion::Interrupt)
        {
            self.invite(id);
        }
    }

    /// Before the scheduler picks one of the vCPUs that this core has lent, they come back: with all that they had here, or if somebody
    /// has taken them, not at all.
    #[inline(never)]
    pub(super) fn reclaim(&mut self) {
        for id in self.lent {
            if self.scheduler.is_next(id) && !self.take(id) {
                self.lent.remove(id);
                self.scheduler.release(id);
            }
        }
    }

    /// Puts a resident vCPU, which isn't running and whose other registers are in memory, into its berth. Is anything
    /// wanted of it?
    #[inline(always)]
    fn lay_down(&mut self, id: VcpuId, owner: u32) -> bool {
        if self.extensions == Some(id) {
            self.put_away_extensions();
        }
        self.lendable.remove(id);
        let suspended = !self.scheduler.is_asleep(id);
        let Some(mut resident) = self.residents[usize::from(id.0) % SLOTS].take() else { return false };
        resident.suspended = suspended;
        resident.last_core = self.id;
        let vcpu = resident.shared;
        vcpu.lay_down(resident, owner);
        vcpu.has_requests()
    }

    /// Takes a vCPU that lies. False if it didn't.
    pub(super) fn take(&mut self, id: VcpuId) -> bool {
        let vcpu = self.machine.vcpu(id);
        let Some(mut resident) = vcpu.take(self.id) else { return false };
        if self.lent.contains(id) {
            self.lent.remove(id);
            if resident.last_core == self.id {
                // It has been nowhere else meanwhile, so what this core's scheduler knows of it still holds.
                self.residents[usize::from(id.0) % SLOTS] = Some(resident);
                self.lendable.insert(id);
                self.deadlines_changed = true;
                if vcpu.has_requests() {
                    self.look_at(id);
                }
                return true;
            }
            self.scheduler.release(id);
        }
        if resident.last_core != self.id {
            vcpu.fences.distrust_caches();
            resident.counters.migrations += 1;
            self.trace(Event::Migration { vcpu: id.0, from: resident.last_core as u8, to: self.id as u8 });
        }
        let suspended = resident.suspended;
        self.adopt(id, resident);
        self.deadlines_changed = true;
        if suspended {
            self.wake(id);
        }
        if self.resident(id).confined && self.machine.vcpu(id).home != self.id {
            // It comes for a short visit to its kernel: the one that runs here lets it go first.
            self.yield_now();
        }
        self.look_at(id);
        true
    }

    /// Has a vCPU that lies taken by a core that suits it.
    pub(super) fn invite(&mut self, id: VcpuId) {
        // If all its cores are busy with more urgent ones, it lies until one isn't.
        if let Some(core) = self.suitable_core(id) {
            self.fetch(id, core);
        }
    }

    /// The core where a vCPU had best go: one that idles, or else this one, or the next one after its home.
    fn suitable_core(&self, id: VcpuId) -> Option<u32> {
        let vcpu = self.machine.vcpu(id);
        let cores = self.machine.harts.len() as u32;
        let mut busy = None;
        let mut core = vcpu.home;
        for _ in 0..cores {
            core = if core + 1 == cores { 0 } else { core + 1 };
            if vcpu.may_run_on(core) {
                if self.is_idle(core) {
                    return Some(core);
                }
                if self.accepts(id, core) && (busy.is_none() || core == self.id) {
                    busy = Some(core);
                }
            }
        }
        busy
    }

    /// Would a vCPU get its turns on this core?
    pub(super) fn accepts(&self, id: VcpuId, core: u32) -> bool {
        let shield = self.machine.shields[core as usize].level();
        shield == IDLE || shield <= self.scheduler.policy().level(self.machine.vcpu(id).class)
    }

    /// The running vCPU spins. If one of its guest could run but has no core, it probably waits for that: the one that has waited
    /// longest is fetched. If that waits for this very core, the spinner lets it go first.
    ///
    /// How long a vCPU may spin before this is called is up to the hart, whose WRS.NTO traps after a time of its own (Friebel and
    /// Biemueller, "How to Deal with Lock Holder Preemption", yield after a threshold of failed attempts). To wait
    /// for more such traps is of no use: see docs/policies.md.
    pub(super) fn note_spin(&mut self, spinner: VcpuId) {
        let machine = self.machine;
        let others = machine.guest_of(spinner).vcpus().map(VcpuId);
        let waiting = others.filter_map(|id| Some((machine.vcpu(id).waiting_since()?, id))).min();
        // If all of them run or sleep, so does the one that it waits for.
        let Some((_, id)) = waiting else { return };
        if !self.has(id)
            && self.scheduler.policy().fetches(Occasion::Spin)
            && let Some(core) = self.suitable_core(id)
        {
            self.fetch(id, core);
        }
        self.yield_now();
    }

    /// Another core would run a vCPU of this one: it may have it, if it only waits here.
    pub(super) fn give_away(&mut self, id: VcpuId) {
        let vcpu = self.machine.vcpu(id);
        let core = vcpu.wanted_by.load(Ordering::Relaxed);
        if core != self.id && self.scheduler.state(id) == State::Suspended && vcpu.may_run_on(core) {
            self.move_away(id, core);
        }
    }

    /// Tells the others what they may disturb this core for. When that becomes less than it was, this core looks itself for what
    /// they have left undone meanwhile, and takes back its own.
    #[inline]
    pub(super) fn publish_shield(&mut self, shield: u8) {
        let before = core::mem::replace(&mut self.shield, shield);
        if before == shield {
            return;
        }
        // An idle core hides nothing, so as a number it is the lowest.
        if before != IDLE && (shield == IDLE || shield < before) {
            self.published_shield.lower(shield);
            self.catch_up();
        } else {
            self.published_shield.raise(shield);
        }
    }

    #[inline(never)]
    fn catch_up(&mut self) {
        self.unattended_due = u64::MAX;
        // Nor is anybody looked at on a core that idles; if a watched vCPU has just got it, that is set afterwards.
        self.attention_due = u64::MAX;
        for id in self.scheduler.owned() {
            if self.machine.vcpu(id).has_requests() {
                self.look_at(id);
            }
        }
        for id in self.movable {
            let vcpu = self.machine.vcpu(id);
            if self.has(id) || !self.accepts(id, self.id) {
                continue;
            }
            if vcpu.home == self.id {
                if !self.take(id) {
                    self.ask(id, Requests::HOME);
                }
            } else if vcpu.owner() == self.id {
                // A visitor that was laid down here, and that nobody has fetched.
                self.take(id);
            }
        }
    }

    /// Sends a vCPU that lives here, running or not, to another core.
    pub(super) fn move_away(&mut self, id: VcpuId, core: u32) {
        if self.scheduler.running() == Some(id) {
            self.leave_vcpu(Some(id), false, csr::time());
        }
        if self.loaded == Some(id) {
            self.resident(id).world.save();
            self.loaded = None;
        }
        self.lay_down(id, core);
        self.scheduler.release(id);
        self.deadlines_changed = true;
        self.post(core, u32::from(id.0));
    }

    fn is_idle(&self, core: u32) -> bool {
        self.machine.shields[core as usize].level() == IDLE
    }

    /// vCPUs that were laid down here have been left alone for long enough: those that sleep need someone who watches their
    /// timers; those that could run are worth the move only if a core idles.
    pub(super) fn attend(&mut self) {
        self.unattended_due = u64::MAX;
        for id in self.movable {
            let vcpu = self.machine.vcpu(id);
            if self.has(id) || vcpu.owner() != self.id || !vcpu.lies() {
                continue;
            }
            let some_core_idles = self.suitable_core(id).is_some_and(|core| self.is_idle(core));
            if vcpu.waiting_since().is_none() || some_core_idles {
                self.invite(id);
            }
        }
    }

    /// This core has nothing to do: it fetches the vCPU that has waited longest for a core, if that may run here and has waited
    /// for long enough. Otherwise, returns when it will have.
    pub(super) fn find_work(&mut self, now: u64) -> Option<u64> {
        if !self.scheduler.policy().fetches(Occasion::Idle) {
            return None;
        }
        let vcpus = self.machine.vcpus.iter().enumerate().filter(|(_, vcpu)| vcpu.may_run_on(self.id));
        let waiting = vcpus.filter_map(|(index, vcpu)| Some((vcpu.waiting_since()?, VcpuId(index as u8))));
        let (since, id) = waiting.min()?;
        let due = since + self.scheduler.policy().patience;
        if due > now {
            return Some(due);
        }
        self.fetch(id, self.id);
        None
    }

    /// A vCPU may have to go to another core. Done before the next decision, as its own trap may still be served now.
    pub(super) fn unsettle(&mut self, id: VcpuId) {
        if self.movable.contains(id) {
            self.unsettled.insert(id);
        }
    }

    /// Visitors whose home has room for them go there. Who has woken here and would have to wait for an equal goes to a core that
    /// idles, if there is one.
    #[inline(never)]
    pub(super) fn settle(&mut self) {
        for id in core::mem::take(&mut self.unsettled) {
            if !self.has(id) {
                continue;
            }
            let resident = self.resident(id);
            let called_home = core::mem::take(&mut resident.called_home);
            let must_stay = resident.confined && world::is_in_kernel(&resident.context);
            let home = resident.shared.home;
            if called_home && home != self.id && !must_stay && self.accepts(id, home) {
                self.move_away(id, home);
            } else if self.scheduler.waits_for_equal(id)
                && let Some(core) = self.suitable_core(id)
                && self.is_idle(core)
            {
                self.move_away(id, core);
            }
        }
    }

    /// Has a vCPU that waits for a core brought to `core`.
    fn fetch(&mut self, id: VcpuId, core: u32) {
        let vcpu = self.machine.vcpu(id);
        if !vcpu.lies() {
            vcpu.wanted_by.store(core, Ordering::Relaxed);
            self.ask(id, Requests::WANTED);
        } else if core == self.id {
            self.take(id);
        } else {
            self.post(core, u32::from(id.0));
        }
    }
}
