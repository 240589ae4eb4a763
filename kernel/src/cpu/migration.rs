//! Moving vCPUs between cores (SPUMONE thesis, 4.3).
//!
//! A migration is pulled. A movable vCPU that could run but must wait, because one of a higher level or an equal has this core, is
//! *lent*: laid down in its *berth*, with its registers in memory, where whichever core takes it first has it. That is all
//! that its core does; who takes it and when, the policy decides on other cores, on occasions that they see themselves. So the core
//! of the RTOS has little to do, and a core that takes a vCPU asks nobody. When its turn comes, the core takes its own
//! back, or finds it gone.
//!
//! | a vCPU is | it is found |
//! |---|---|
//! | running or asleep on a core | in that core's table of residents and in its scheduler |
//! | lent: it waits, or it sleeps on a core that a higher one has | in its berth (`Vcpu::take`), and still in the scheduler of the core that has lent it |
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
    /// `running` has just got the core: the movable ones that now wait for it are put where others can take them. If it is of a higher
    /// level, also those that sleep, as nobody watches their timers here.
    ///
    /// They keep their place in this core's scheduler, since mostly nobody takes them ([`Self::reclaim_next`]). This is on the RTOS's
    /// path, so what seldom happens is elsewhere.
    #[inline(never)]
    pub(super) fn lend_others(&mut self, running: VcpuId, now: u64) {
        for id in self.lendable | self.lent {
            let preempted = self.scheduler.precedes(running, id);
            if !preempted && (id == running || self.scheduler.is_asleep(id)) {
                continue;
            }
            // If it waited for an equal, where it stopped can't be read any more.
            let mut in_kernel = true;
            if self.has(id) {
                in_kernel = world::is_in_kernel(self.context(id));
                self.lend(id);
            }
            if preempted {
                self.attend_later(now);
                if self.invites
                    && self.scheduler.policy().fetches(Occasion::Preempted { in_kernel })
                    && self.lies_here(id)
                {
                    self.invite(id);
                }
            }
        }
    }

    /// Puts a vCPU that waits here where others can take it.
    #[inline(always)]
    fn lend(&mut self, id: VcpuId) {
        self.lent.insert(id);
        self.lay_down(id, self.id);
    }

    /// From now on a vCPU lies where it gets no turn. If nobody has taken it after a while, this core will have that done.
    #[inline]
    pub(super) fn attend_later(&mut self, now: u64) {
        if self.attends {
            self.unattended_due = self.unattended_due.min(now + self.scheduler.policy().patience);
            self.attention_due = self.attention_due.min(self.unattended_due);
        }
    }

    /// If the next one to run is lent, it comes back with all that it had here; or if somebody has taken it, not at all, and the one
    /// after it is the next.
    #[inline(never)]
    pub(super) fn reclaim_next(&mut self, now: u64) {
        while let Some(id) = self.scheduler.next(now).filter(|id| self.lent.contains(*id)) {
            // If it lies, but for another core, it has been away, and this core has no claim to it any more.
            if self.machine.vcpu(id).owner() != self.id || !self.take(id) {
                self.forget(id);
            }
        }
    }

    /// Gives up the place of a vCPU that was lent and has not come back.
    fn forget(&mut self, id: VcpuId) {
        if self.lent.contains(id) {
            self.lent.remove(id);
            self.scheduler.release(id);
        }
    }

    /// Puts a resident vCPU, which isn't running and whose other registers are in memory, into its berth. An asker who hasn't found it
    /// lying, and kept quiet as this core is busy, is seen when somebody takes it, or looks after it ([`Self::attend`]).
    #[inline(always)]
    fn lay_down(&mut self, id: VcpuId, owner: u32) {
        if self.extensions == Some(id) {
            self.put_away_extensions();
        }
        self.lendable.remove(id);
        let suspended = !self.scheduler.is_asleep(id);
        let Some(mut resident) = self.residents[usize::from(id.0) % SLOTS].take() else { return };
        resident.suspended = suspended;
        resident.last_core = self.id;
        resident.shared.lay_down(resident, owner);
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
        // Where it will get its turn anyhow, only a core that idles is better. If all its cores are busy with more urgent ones, it
        // lies until one isn't.
        let waits_for_equal = self.accepts(id, self.machine.vcpu(id).owner());
        if let Some(core) = self.suitable_core(id).filter(|core| !waits_for_equal || self.is_idle(*core)) {
            self.fetch(id, core);
        }
    }

    /// The core where a vCPU had best go: one that idles, or else this one, or the next one after its home.
    fn suitable_core(&self, id: VcpuId) -> Option<u32> {
        let vcpu = self.machine.vcpu(id);
        let level = self.scheduler.policy().level(vcpu.class);
        let shields = &self.machine.shields;
        let mut busy = None;
        // The cores that it may run on, a bit each, the one after its home first.
        let first = vcpu.home + 1;
        let mut rest = vcpu.cores.rotate_right(first);
        while rest != 0 {
            let core = (rest.trailing_zeros() + first) % u64::BITS;
            rest &= rest - 1;
            let shield = shields[core as usize].level();
            if shield == IDLE {
                return Some(core);
            }
            if shield <= level && (busy.is_none() || core == self.id) {
                busy = Some(core);
            }
        }
        busy
    }

    /// Would a vCPU get its turns on this core?
    pub(super) fn accepts(&self, id: VcpuId, core: u32) -> bool {
        let shield = self.machine.shields[core as usize].level();
        shield == IDLE || shield <= self.scheduler.policy().level(self.machine.vcpu(id).class)
    }

    /// Of a vCPU's guest, the one that could run but has waited longest for a core.
    #[inline]
    pub(super) fn someone_waits(&self, id: VcpuId) -> Option<VcpuId> {
        let machine = self.machine;
        let all = machine.guest_of(id).vcpus().map(VcpuId);
        let waiting = all.filter_map(|id| Some((machine.vcpu(id).waiting_since()?, id))).min();
        waiting.map(|(_, id)| id)
    }

    /// The running vCPU spins. If one of its guest could run but has no core, it probably waits for that: the one that has waited
    /// longest is fetched. If that waits for this very core, the spinner lets it go first.
    ///
    /// How long a vCPU may spin before this is called is up to the hart, whose WRS.NTO traps after a time of its own (Friebel and
    /// Biemueller, "How to Deal with Lock Holder Preemption", yield after a threshold of failed attempts). To wait
    /// for more such traps is of no use: see docs/policies.md.
    pub(super) fn note_spin(&mut self, spinner: VcpuId) {
        // If all of its guest run or sleep, so does the one that it waits for.
        let Some(id) = self.someone_waits(spinner) else { return };
        if !self.has(id)
            && self.scheduler.policy().fetches(Occasion::Spin)
            && let Some(core) = self.suitable_core(id)
        {
            self.fetch(id, core);
        }
        self.scheduler.step_aside();
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

    /// A vCPU with this shield will have the core in a moment: who is about to ring for somebody less urgent had better know now.
    #[inline]
    pub(super) fn raise_shield(&mut self, shield: u8) {
        if self.shield == IDLE || shield > self.shield {
            self.shield = shield;
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
                self.gives_way();
                self.look_at(id);
            }
        }
        for id in self.movable {
            let vcpu = self.machine.vcpu(id);
            if self.has(id) || !self.accepts(id, self.id) {
                continue;
            }
            if self.gives_way() {
                // All this comes again when that one is done.
                return self.attend_later(csr::time());
            }
            let lies_here = self.lies_here(id);
            if lies_here && self.lent.contains(id) && !self.scheduler.is_asleep(id) {
                // It comes back when its turn comes.
                continue;
            }
            if !((vcpu.home == self.id || lies_here) && self.take(id)) {
                self.forget(id);
                if vcpu.home == self.id {
                    self.ask(id, Requests::HOME);
                }
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

    /// vCPUs that lie where they get no turn have been left alone for long enough.
    pub(super) fn attend(&mut self) {
        self.unattended_due = u64::MAX;
        for id in self.movable {
            let vcpu = self.machine.vcpu(id);
            let asleep = vcpu.waiting_since().is_none();
            let policy = self.scheduler.policy();
            let occasion = policy.fetches(Occasion::Unattended { asleep })
                || vcpu.has_requests() && policy.fetches(Occasion::Interrupt);
            if occasion && vcpu.lies() && !self.accepts(id, vcpu.owner()) {
                self.invite(id);
            }
        }
    }

    /// Does the vCPU lie where this core has laid it down, or was sent it?
    fn lies_here(&self, id: VcpuId) -> bool {
        let vcpu = self.machine.vcpu(id);
        vcpu.owner() == self.id && vcpu.lies()
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
        for id in self.unsettled {
            if self.gives_way() {
                return;
            }
            self.unsettled.remove(id);
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
            } else if self.loaded != Some(id)
                && self.lendable.contains(id)
                && self.scheduler.waits_for_equal(id)
            {
                self.lend(id);
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
