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

use ainori_handover::Requests;
use ainori_sched::{Occasion, State, VcpuId, VcpuSet};
use ainori_trace::Event;

use super::Cpu;
use super::mail::NO_VCPU;
use crate::arch::{clock, hart, world};
use crate::guest::vcpu::hsm;
use crate::stats::Exit;

/// So many vCPUs are looked at in one go when a core has room for them again.
const MADE_UP_FOR: usize = 5;

/// After so many times [`Policy::patience`](ainori_sched::Policy::patience) a core tries again to have a sleeper watched, for which no core
/// was free: a millisecond, since that interrupts the RTOS that the core runs.
const RETRY: u64 = 40;

/// So many vCPUs are looked at in one go whether they have been left alone.
const ATTENDED_AT_ONCE: usize = 16;

/// Published by a core that runs nothing.
pub const IDLE: u8 = u8::MAX;

impl Cpu {
    /// `running` has just got the core: the movable ones that now wait for it are put where others can take them. If it is of a higher
    /// level, also those that sleep, as nobody watches their timers here.
    ///
    /// They keep their place in this core's scheduler, since mostly nobody takes them ([`Self::reclaim_next`]). This is on the RTOS's
    /// path, so it is done at once only for `previous`, which had the core until now, and only if there is time; for others
    /// ([`Self::attend_to`]) when the RTOS has begun its work.
    #[inline(never)]
    pub(super) fn lend_others(&mut self, running: VcpuId, previous: Option<VcpuId>, now: u64) {
        let is_urgent = self.urgent.contains(running);
        // Before its timer; or else, if what led to the switch didn't take long itself.
        let has_time = if is_urgent {
            now + self.guard / 4 * 3 <= self.resident(running).due
        } else {
            now < self.entered + self.guard / 4
        };
        let stays = self.scheduler.asleep() | VcpuSet::from_iter([running]);
        let mut waiting = self.lendable - stays;
        let previous = previous.filter(|id| waiting.contains(*id));
        if let Some(id) = previous.filter(|_| has_time) {
            waiting.remove(id);
            let in_kernel = self.state(id).is_in_kernel();
            self.lend(id);
            if self.invites
                && self.scheduler.precedes(running, id)
                && self.scheduler.policy().fetches(Occasion::Preempted { in_kernel })
            {
                self.backlog.uninvited.insert(id);
            }
        }
        if is_urgent {
            if let Some(id) = previous.filter(|_| !has_time) {
                self.backlog.unattended.insert(id);
            }
            if !(self.lendable | self.lent).is_empty() {
                self.attend_later(now);
            }
            if self.invites && !(self.lendable - VcpuSet::from_iter([running])).is_empty() {
                self.attend_soon(now);
            }
            if !(self.backlog.uninvited | self.backlog.unattended).is_empty() {
                // While the core waits for the RTOS's timer, or else after a while.
                self.look_again_at(now + self.scheduler.policy().patience);
            }
        } else {
            self.backlog.unattended |= waiting;
            self.resume_backlog();
        }
    }

    /// Puts a vCPU that waits here where others can take it.
    #[inline(always)]
    fn lend(&mut self, id: VcpuId) {
        self.lent.insert(id);
        self.lay_down(id, self.id);
    }

    /// The same where few instructions more don't matter.
    #[inline(never)]
    fn lend_late(&mut self, id: VcpuId) {
        self.lend(id);
    }

    /// From now on a vCPU lies where it gets no turn. If nobody has taken it after a while, this core will have that done.
    #[inline]
    fn attend_later(&mut self, now: u64) {
        if self.attends {
            self.attend_soon(now);
        }
    }

    /// The same also where who is preempted is fetched at once.
    fn attend_soon(&mut self, now: u64) {
        self.has_unattended = true;
        self.look_again_at(now + self.scheduler.policy().patience);
    }

    /// Has this core look at `at`, whatever it does then, for what it has put off and whom it has left alone.
    ///
    /// That interrupts whoever runs then. If it is one that takes cores from others, not just when its own timer is due: as that may be set anew
    /// whenever it is, a while after the next time is the best guess.
    #[inline]
    pub(super) fn look_again_at(&mut self, at: u64) {
        let at = self.clear_of_own_timer(at);
        self.unattended_due = self.unattended_due.min(at);
        self.attention_due = self.attention_due.min(at);
        self.pending.alarm = true;
    }

    /// What was put off for a vCPU that has run before waits for one that takes cores from others, too, if that gets the core now. But
    /// only for one of each priority in turn, should the core be taken again and again.
    #[inline(never)]
    pub(super) fn hold_off_attention(&mut self, id: VcpuId, now: u64) {
        let rank = self.machine.vcpu(id).class.priority + 1;
        if self.urgent.contains(id) && rank > self.held_off_for {
            self.held_off_for = rank;
            let begins = self.resident(id).due.max(now);
            self.unattended_due = self.unattended_due.max(begins + self.scheduler.policy().patience);
            self.attention_due = self.unattended_due;
        }
    }

    fn clear_of_own_timer(&self, at: u64) -> u64 {
        let runs =
            self.scheduler.running().filter(|id| self.urgent.contains(*id) && self.loaded == Some(*id));
        let own = runs.and_then(|_| world::loaded_deadline());
        let now = clock::now();
        let comes_first = |own: &u64| now < *own && *own <= at + self.guard;
        own.filter(comes_first).map_or(at, |own| own + self.scheduler.policy().patience)
    }

    /// If the next one to run is lent, it comes back with all that it had here; or if somebody has taken it, not at all, and the one
    /// after it is the next. False if there is something else to do before that one is found.
    #[inline(never)]
    pub(super) fn reclaim_next(&mut self, now: u64) -> bool {
        // BOUND: mostly one round. What is wanted of the one that has come back may be that it stops or goes, and then another is the next.
        while let Some(id) = self.scheduler.next(now).filter(|id| self.lent.contains(*id)) {
            // If it lies, but for another core, it has been away, and this core has no claim to it any more.
            if self.machine.vcpu(id).owner() != self.id || !self.take(id) {
                self.forget(id);
                return false;
            }
            if self.gives_way() {
                return false;
            }
        }
        true
    }

    /// Gives up the place of a vCPU that was lent and has not come back.
    fn forget(&mut self, id: VcpuId) {
        if self.lent.contains(id) {
            self.lent.remove(id);
            self.scheduler.release(id);
        }
    }

    /// Puts a resident vCPU into its berth, wherever its registers are now. An asker who hasn't found it lying, and kept quiet as this
    /// core is busy, is seen when somebody takes it, or looks after it ([`Self::attend`]).
    #[inline(always)]
    fn lay_down(&mut self, id: VcpuId, owner: u32) {
        if self.scheduler.picked() == Some(id) {
            // Since the last decision it has slept and woken here, or is about to be moved.
            self.leave_vcpu(Some(id), false, clock::now());
            self.scheduler.unpick();
        }
        if self.loaded == Some(id) {
            self.state(id).save_late();
            self.loaded = None;
        }
        if self.extensions == Some(id) {
            self.put_away_extensions();
        }
        if self.confines {
            self.publish_kernel_visit(id);
        }
        self.lendable.remove(id);
        let suspended = !self.scheduler.is_asleep(id);
        if !suspended {
            // Who watches its timer from now on is up to where it goes.
            self.ignore_timer(id);
        }
        let Some(mut resident) = self.residents[id].take() else { return };
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
                self.residents[id] = Some(resident);
                self.lendable.insert(id);
                self.note_arrival(id, !self.scheduler.is_asleep(id));
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
        self.note_arrival(id, suspended);
        if self.resident(id).confined && self.machine.vcpu(id).home != self.id {
            // It comes for a short visit to its kernel: the one that runs here lets it go first.
            self.yield_now();
        }
        if self.machine.vcpu(id).has_requests() {
            // Behind a preemption point: to take it has taken its time, and a start does, too.
            self.backlog.unread.insert(id);
            self.resume_backlog();
        }
        true
    }

    /// A vCPU lives here from now on: it could run, or this core watches its timer.
    #[inline(never)]
    fn note_arrival(&mut self, id: VcpuId, suspended: bool) {
        if suspended {
            self.wake(id);
        } else {
            self.watch_timer(id);
            // Unlike one that has just run here, it may be less urgent than who does.
            self.pending.deadlines = true;
        }
    }

    /// Has a vCPU taken that has just lost this core, if it lies still and gets no turn there.
    pub(super) fn invite_preempted(&mut self, id: VcpuId) {
        let vcpu = self.machine.vcpu(id);
        if vcpu.lies() && !self.gets_turns(id) {
            self.invite(id);
        }
    }

    /// Has a vCPU that lies taken by a core that suits it. False if there is none.
    pub(super) fn invite(&mut self, id: VcpuId) -> bool {
        // Where it will get its turn anyhow, only a core that idles is better. If all its cores are busy with more urgent ones, it
        // lies until one isn't.
        let waits_for_equal = self.gets_turns(id);
        let core = self.suitable_core(id).filter(|core| !waits_for_equal || self.is_idle(*core));
        if let Some(core) = core {
            self.fetch(id, core);
        }
        core.is_some()
    }

    /// The core where a vCPU had best go: one that idles, or else this one, or the next one after its home.
    fn suitable_core(&self, id: VcpuId) -> Option<u32> {
        let vcpu = self.machine.vcpu(id);
        let level = self.scheduler.policy().level(vcpu.class);
        let shields = &self.machine.shields;
        let mut busy = None;
        // The cores that it may run on, a bit each, the one after its home first.
        let first = vcpu.home + 1;
        let mut rest = vcpu.cores_now().rotate_right(first);
        // BOUND: the cores, some 25 instructions each.
        while rest != 0 {
            let core = (rest.trailing_zeros() + first) % u64::BITS;
            rest &= rest - 1;
            let shield = shields[core].level();
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
        let shield = self.machine.shields[core].level();
        shield == IDLE || shield <= self.scheduler.policy().level(self.machine.vcpu(id).class)
    }

    /// Would a vCPU get its turns where it lies? An idle core is of no use to one that must not run there.
    fn gets_turns(&self, id: VcpuId) -> bool {
        let vcpu = self.machine.vcpu(id);
        let owner = vcpu.owner();
        vcpu.may_run_on(owner) && self.accepts(id, owner)
    }

    /// Of a vCPU's guest, the one that could run but has waited longest for a core.
    #[inline]
    pub(super) fn someone_waits(&self, id: VcpuId) -> Option<VcpuId> {
        let machine = self.machine;
        let all = machine.guest_of(id).vcpus().map(VcpuId);
        // BOUND: the vCPUs of one guest, some 12 instructions each.
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

    /// Another core would run a vCPU of this one: it may have it, if it only waits here, and unless something more urgent has come there
    /// since.
    pub(super) fn give_away(&mut self, id: VcpuId) {
        let vcpu = self.machine.vcpu(id);
        let core = vcpu.wanted_by.load(Ordering::Relaxed);
        // Nor the one whose trap is being served, though it may have yielded in it.
        let waits = self.scheduler.state(id) == State::Suspended && self.scheduler.picked() != Some(id);
        if core != self.id && waits && vcpu.may_run_on(core) && self.accepts(id, core) {
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
        self.pending.deadlines = true;
        // An idle core hides nothing, so as a number it is the lowest.
        if before != IDLE && (shield == IDLE || shield < before) {
            self.published_shield.lower(shield);
            self.catch_up();
        } else {
            self.hide_housework(before, clock::now());
            self.published_shield.raise(shield);
        }
    }

    /// A vCPU with this shield will have the core in a moment: who is about to ring for somebody less urgent had better know now.
    #[inline]
    pub(super) fn raise_shield(&mut self, shield: u8, now: u64) {
        if self.shield == IDLE || shield > self.shield {
            self.hide_housework(self.shield, now);
            self.shield = shield;
            self.pending.deadlines = true;
            self.published_shield.raise(shield);
        }
    }

    #[inline(never)]
    fn catch_up(&mut self) {
        self.show_housework();
        // Nobody is looked at on a core that idles; if a watched vCPU has just got it, that is set afterwards.
        self.attention_due = u64::MAX;
        if self.unattended_due != u64::MAX {
            self.review_unattended();
        }
        // Those that are less urgent than who has the core now have their turn when it leaves.
        let lowest = self.scheduler.running().map_or(0, |id| self.machine.vcpu(id).class.priority);
        let neglected = (self.scheduler.owned() | self.movable) & self.at_least(lowest);
        if self.machine.vcpu_count <= MADE_UP_FOR {
            self.make_up_for(neglected);
        } else {
            self.backlog.neglected = neglected;
        }
        self.resume_backlog();
        if self.pending.backlog {
            self.leave_out_running();
        }
    }

    /// Who has just got this core doesn't wait for another one any more: to look at that would take from the time that it has got, which may be
    /// little. (Where two others took a core from each other every 30 us, one below them never got anywhere.)
    #[inline(never)]
    fn leave_out_running(&mut self) {
        if let Some(id) = self.scheduler.running()
            && self.machine.vcpu(id).requests.wanted() == Requests::WANTED.bits()
        {
            self.backlog.unread.remove(id);
            self.resume_backlog();
        }
    }

    /// Somebody less urgent has got this core than those before whom others waited here.
    #[inline(never)]
    fn review_unattended(&mut self) {
        if self.scheduler.running().is_some_and(|id| self.urgent.contains(id)) {
            // For those below nothing has changed. If they have been put off already, their turn is now, before the next time.
            if self.held_off_for != 0 && core::mem::take(&mut self.has_unattended) {
                self.backlog.unattended.insert(NO_VCPU);
            }
            self.attention_due = self.unattended_due;
        } else {
            self.unattended_due = u64::MAX;
            self.has_unattended = false;
            self.retry_due = u64::MAX;
            self.held_off_for = 0;
            self.unchecked = VcpuSet::EMPTY;
        }
    }

    /// Looks for what was wanted of a few vCPUs while this core had something more urgent to do.
    #[inline(always)]
    fn make_up_for(&mut self, some: VcpuSet) {
        // BOUND: `MADE_UP_FOR` vCPUs, some 30 instructions each.
        for id in some & self.scheduler.owned() {
            if self.machine.vcpu(id).has_requests() {
                self.backlog.unread.insert(id);
            }
        }
        let elsewhere = (some & self.movable) - self.lendable;
        if !elsewhere.is_empty() {
            self.look_for_strays(elsewhere);
        }
    }

    /// The same for those that are a part of the backlog: of some now, of the others in their turns.
    #[inline(never)]
    pub(super) fn make_up_for_some(&mut self, neglected: VcpuSet) {
        let some = neglected.lowest::<MADE_UP_FOR>();
        self.backlog.neglected = neglected - some;
        self.make_up_for(some);
    }

    #[inline(never)]
    fn look_for_strays(&mut self, elsewhere: VcpuSet) {
        // BOUND: a few vCPUs, some 50 instructions each.
        for id in elsewhere {
            if self.is_stray(id) {
                self.backlog.strays.insert(id);
            }
        }
    }

    /// Does a vCPU, which this core has room for, lie where it doesn't come back from by itself, or is it elsewhere?
    fn is_stray(&self, id: VcpuId) -> bool {
        !self.has(id)
            && self.accepts(id, self.id)
            && !(self.waits_for_its_turn(id) && self.machine.vcpu(id).lies())
    }

    /// Does this core hold a place for a vCPU that it has lent, so that it comes back when its turn comes? Not if it sleeps, when it gets
    /// none, nor if it has been away since and lies for another core, when this one has no claim to it any more.
    #[inline]
    pub(super) fn waits_for_its_turn(&self, id: VcpuId) -> bool {
        self.lent.contains(id) && self.machine.vcpu(id).owner() == self.id && !self.scheduler.is_asleep(id)
    }

    /// Takes a [stray](Self::is_stray) back, or has it sent home.
    pub(super) fn collect(&mut self, id: VcpuId) {
        if !self.is_stray(id) {
            return;
        }
        let vcpu = self.machine.vcpu(id);
        let may_take = (vcpu.home == self.id || self.lies_here(id)) && vcpu.may_run_on(self.id);
        if !(may_take && self.take(id)) {
            self.forget(id);
            if vcpu.home == self.id {
                self.ask(id, Requests::HOME);
            }
        }
    }

    /// Sends a vCPU that lives here, running or not, to another core.
    pub(super) fn move_away(&mut self, id: VcpuId, core: u32) {
        self.lay_down(id, core);
        self.scheduler.release(id);
        self.post(core, u32::from(id.0));
    }

    fn is_idle(&self, core: u32) -> bool {
        self.machine.shields[core].level() == IDLE
    }

    /// vCPUs that lie, or wait here, where they get no turn have been left alone for long enough.
    pub(super) fn attend(&mut self) {
        let all = if self.unchecked.is_empty() { self.movable } else { self.unchecked };
        let are_few = self.machine.vcpu_count <= ATTENDED_AT_ONCE;
        let some = if are_few { all } else { all.lowest::<ATTENDED_AT_ONCE>() };
        self.unchecked = all - some;
        if !self.unchecked.is_empty() {
            self.attend_soon(clock::now());
        }
        // BOUND: a few vCPUs, some 20 instructions each.
        for id in some {
            let vcpu = self.machine.vcpu(id);
            let waits_here = self.lendable.contains(id) && self.scheduler.running() != Some(id);
            if waits_here || vcpu.lies() && !self.gets_turns(id) {
                self.backlog.unattended.insert(id);
            }
        }
    }

    /// Looks after a vCPU that may be waiting where it gets no turn.
    pub(super) fn attend_to(&mut self, id: VcpuId) {
        let mut preempted_in_kernel = None;
        if let Some(running) = self.scheduler.running()
            && self.lendable.contains(id)
            && id != running
        {
            let preempted = self.scheduler.precedes(running, id);
            if preempted || !self.scheduler.is_asleep(id) {
                preempted_in_kernel = preempted.then(|| self.state(id).is_in_kernel());
                self.lend_late(id);
            }
        }
        let vcpu = self.machine.vcpu(id);
        if vcpu.hsm.load(Ordering::Acquire) == hsm::STOPPED && !vcpu.has_requests() {
            // It lies, where whoever starts it finds it, and has no timer that somebody must watch.
            return;
        }
        let asleep = vcpu.waiting_since().is_none();
        let policy = self.scheduler.policy();
        let occasion = policy.fetches(Occasion::Unattended { asleep })
            || vcpu.hsm.load(Ordering::Relaxed) == hsm::START_PENDING
            || vcpu.has_requests() && policy.fetches(Occasion::Interrupt)
            || preempted_in_kernel.is_some_and(|in_kernel| policy.fetches(Occasion::Preempted { in_kernel }));
        if occasion && vcpu.lies() && !self.gets_turns(id) && !self.invite(id) && asleep {
            // A core that idles looks for those that could run, but nobody for a sleeper.
            self.retry_due = clock::now() + RETRY * self.scheduler.policy().patience;
            self.look_again_at(self.retry_due);
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
        let mut longest: Option<(u64, VcpuId)> = None;
        // BOUND: the machine's vCPUs, some 20 instructions each. An interrupt goes first: then this core looks again behind it.
        for (index, vcpu) in self.machine.vcpus().iter().enumerate() {
            if !hart::pending_interrupts().is_empty() {
                return None;
            }
            if let Some(since) = vcpu.waiting_since().filter(|_| vcpu.may_run_on(self.id))
                && longest.is_none_or(|(earliest, _)| since < earliest)
            {
                longest = Some((since, VcpuId(index as u8)));
            }
        }
        self.end_stretch(Exit::Backlog, clock::now());
        let (since, id) = longest?;
        let due = since + self.scheduler.policy().patience;
        if due > now {
            return Some(due);
        }
        self.fetch(id, self.id);
        // If another core was faster, or its own goes on with it, somebody else may be waiting.
        Some(now + self.scheduler.policy().patience)
    }

    /// A vCPU may have to go to another core. Done before the next decision, as its own trap may still be served now.
    pub(super) fn unsettle(&mut self, id: VcpuId) {
        if self.movable.contains(id) {
            self.unsettled.insert(id);
            self.pending.unsettled = true;
        }
    }

    /// Visitors whose home has room for them go there. Who has woken here and would have to wait for an equal goes to a core that
    /// idles, if there is one.
    #[inline(never)]
    pub(super) fn settle(&mut self) {
        // BOUND: one of those that have woken a round, and between two is a preemption point.
        while !self.is_wanted()
            && let Some(id) = self.unsettled.pop()
        {
            if !self.has(id) {
                continue;
            }
            if self.confines {
                self.publish_kernel_visit(id);
            }
            let resident = self.resident(id);
            let called_home = core::mem::take(&mut resident.called_home);
            let must_stay = resident.confined && resident.state.is_in_kernel();
            let home = resident.shared.home;
            if called_home && home != self.id && !must_stay && self.accepts(id, home) {
                self.move_away(id, home);
            } else if self.scheduler.waits_for_equal(id)
                && let Some(core) = self.suitable_core(id)
                && core != self.id
                && self.is_idle(core)
            {
                self.move_away(id, core);
            } else if self.loaded != Some(id)
                && self.lendable.contains(id)
                && self.scheduler.waits_for_equal(id)
            {
                self.lend_late(id);
            }
            if self.is_preempted() {
                return;
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
