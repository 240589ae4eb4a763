//! vCPUs that wait here are parked where other cores can take them (SPUMONE thesis, 4.3).
//!
//! A migration is pulled. A migratable vCPU that could run but must wait, because one of a higher level or an equal has this core, is
//! *stealable*: parked in its *slot*, with its registers in memory, where whichever core takes it first has it. That is all
//! that its core does; who takes it and when, the policy decides on other cores, on occasions that they see themselves
//! ([`pull`](super::pull)). So the core of the RTOS has little to do, and a core that takes a vCPU asks nobody. When its turn comes,
//! the core takes its own back, or finds it gone.
//!
//! | a vCPU is | it is found |
//! |---|---|
//! | running or asleep on a core | in that core's table of residents and in its scheduler |
//! | stealable: it waits, or it sleeps on a core that a higher one has | in its slot (`Vcpu::claim`), and still in the scheduler of the core that has parked it |
//! | parked, on its way to another core | in its slot, in no scheduler |
use core::sync::atomic::Ordering;

use ainori_handover::Requests;
use ainori_sched::{Occasion, Policy, State, VcpuId, VcpuSet};
use ainori_trace::Event;

use crate::arch::{clock, fence, world};
use crate::cpu::{Cpu, guard};

/// So many of those that wait here are asked whether they have waited less than who comes, as each takes 0.1 us: of those at the head of the queue, no more
/// get a turn in a millisecond with the usual quantum.
const LOOKED_AT: usize = 4;

/// How long before an RTOS's deadline a vCPU may still be parked on the way to that RTOS, in the unit of `guard`, the guard's length: to
/// park it, and the rest of the way, take no longer.
#[inline(always)]
const fn parking_time(guard: u64) -> u64 {
    guard / 4 * 3
}

/// Which of a core's vCPUs can move, and where they are.
pub struct Migration {
    /// May run elsewhere, and have ever been here, or been offered to this core; never removed.
    pub(in crate::cpu) migratable: VcpuSet,
    /// Those of them that live here now.
    pub(in crate::cpu) here: VcpuSet,
    /// Those that are parked, or were claimed by another core, and still have their place in this core's scheduler.
    pub(in crate::cpu) stealable: VcpuSet,
    /// Those that this core was asked to take from elsewhere, but it was busy with somebody more urgent, or they may not run here now.
    pub(in crate::cpu) refused: VcpuSet,
    /// The policy may have a vCPU pulled at the moment that it is preempted.
    pub(in crate::cpu) kicks: bool,
}

impl Migration {
    /// No vCPU is here.
    pub fn new(policy: &Policy) -> Self {
        Self {
            migratable: VcpuSet::EMPTY,
            here: VcpuSet::EMPTY,
            stealable: VcpuSet::EMPTY,
            refused: VcpuSet::EMPTY,
            kicks: policy.pulls(Occasion::Preempted { in_kernel: true }),
        }
    }
}

impl Cpu {
    /// `running` has just got the core: the migratable ones that now wait for it are put where others can take them. If it is of a higher
    /// level, also those that sleep, as nobody watches their timers here.
    ///
    /// They keep their place in this core's scheduler, since mostly nobody takes them ([`Self::reclaim_next`]). This is on the RTOS's
    /// path, so it is done at once only for `previous`, which had the core until now, and only if there is time; for others
    /// ([`Self::push_starved`]) when the RTOS has begun its work.
    #[inline(never)]
    pub(in crate::cpu) fn make_others_stealable(
        &mut self,
        running: VcpuId,
        previous: Option<VcpuId>,
        now: u64,
    ) {
        let is_urgent = self.urgent.contains(running);
        // Before its timer; or else, if what led to the switch didn't take long itself.
        let has_time = if is_urgent {
            now + parking_time(self.guard) <= self.resident(running).due
                && !self.has_taken(guard::too_long(self.guard))
        } else {
            !self.has_taken(guard::long(self.guard))
        };
        let mut waiting = (self.mechanisms.migration.here - self.scheduler.asleep()).without(running);
        let previous = previous.filter(|id| waiting.contains(*id));
        if let Some(id) = previous.filter(|_| has_time) {
            waiting.remove(id);
            self.make_stealable(id);
            let in_kernel = self.machine.vcpu(id).is_in_kernel();
            if self.mechanisms.migration.kicks
                && self.scheduler.precedes(running, id)
                && self.scheduler.policy().pulls(Occasion::Preempted { in_kernel })
            {
                self.backlog.preempted.insert(id);
            }
        }
        if is_urgent {
            if let Some(id) = previous.filter(|_| !has_time) {
                self.backlog.starved.insert(id);
            }
            let all = self.mechanisms.migration.here | self.mechanisms.migration.stealable;
            // Also those that waited for an equal when the core was taken: only who had it is kicked at once.
            let are_starved = self.mechanisms.push.is_on && !all.is_empty()
                || self.mechanisms.migration.kicks && !all.without(running).is_empty();
            self.mechanisms.push.is_wanted |= are_starved;
            if !self.mechanisms.push.unchecked.is_empty() {
                // Whoever was looked at when the core was taken before may have come back since then.
                self.mechanisms.push.unchecked |= all;
            }
            if are_starved || !(self.backlog.preempted | self.backlog.starved).is_empty() {
                // While the core waits for the RTOS's timer, or else after a while.
                self.look_again_at(now + self.scheduler.policy().patience);
            }
        } else {
            self.backlog.starved |= waiting;
            self.resume_backlog();
        }
    }

    /// Puts a vCPU that waits here where others can take it.
    #[inline(always)]
    fn make_stealable(&mut self, id: VcpuId) {
        self.mechanisms.migration.stealable.insert(id);
        self.park(id, self.id);
    }

    /// The same where few instructions more don't matter.
    #[inline(never)]
    pub(super) fn make_stealable_out_of_line(&mut self, id: VcpuId) {
        self.mechanisms.migration.stealable.insert(id);
        self.park_out_of_line(id, self.id);
    }

    /// If the vCPU that the scheduler would run next is stealable, this core claims it back, with the place and the rest of the quantum
    /// that the vCPU had. If another core has taken the vCPU, its place is given up. False if the decision has to begin anew: as a place
    /// was given up, or as something more urgent has come.
    #[inline(never)]
    pub(in crate::cpu) fn reclaim_next(&mut self, now: u64) -> bool {
        // BOUND: mostly one round. What is wanted of the one that has come back may be that it stops or goes, and then another is the next.
        while let Some(id) =
            self.scheduler.next(now).filter(|id| self.mechanisms.migration.stealable.contains(*id))
        {
            // If it is parked, but for another core, it has been away, and this core has no claim to it any more.
            if self.machine.vcpu(id).owner() != self.id || !self.claim(id) {
                self.forget(id);
                return false;
            }
            if self.gives_way() || self.meet_deadline(clock::now()) {
                // Who is woken now may go on without a switch, at which those below would be looked for.
                self.push_soon(clock::now());
                return false;
            }
        }
        true
    }

    /// A vCPU has been given to this core, which may be not the only one that it may run on.
    pub(in crate::cpu) fn note_adopted(&mut self, id: VcpuId) {
        if self.scheduler.policy().moves() && self.machine.vcpu(id).cores & !(1 << self.id) != 0 {
            self.mechanisms.migration.migratable.insert(id);
            self.mechanisms.migration.here.insert(id);
        }
    }

    /// This core was asked to take a vCPU, and can't now: it looks after it.
    pub(in crate::cpu) fn refuse(&mut self, id: VcpuId) {
        self.mechanisms.migration.migratable.insert(id);
        if self.machine.vcpu(id).owner() != self.id {
            self.mechanisms.migration.refused.insert(id);
        }
        self.backlog.starved.insert(id);
        self.resume_backlog();
    }

    /// Gives up the place of a stealable vCPU that has not come back.
    pub(super) fn forget(&mut self, id: VcpuId) {
        if self.mechanisms.migration.stealable.contains(id) {
            self.mechanisms.migration.stealable.remove(id);
            self.scheduler.release(id);
        }
    }

    /// Parks a resident vCPU, wherever its registers are now. An asker who hasn't found it parked, and kept quiet as this
    /// core is busy, is seen when somebody takes it, or looks after it ([`Self::find_starved`]).
    #[inline(always)]
    fn park(&mut self, id: VcpuId, owner: u32) {
        if self.scheduler.picked() == Some(id) {
            // Since the last decision it has slept and woken here, or is about to be moved.
            self.leave_vcpu(Some(id), false, clock::now());
            self.scheduler.unpick();
        }
        if self.loaded == Some(id) {
            self.state(id).save();
            self.loaded = None;
            world::forget();
        }
        if self.extensions == Some(id) {
            self.put_away_extensions();
        }
        self.publish_mode(id);
        self.mechanisms.migration.here.remove(id);
        let suspended = !self.scheduler.is_asleep(id);
        if !suspended {
            // Who watches its timer from now on is up to where it goes.
            self.ignore_timer(id);
            self.note_asleep(Some(id));
        }
        let Some(mut resident) = self.residents[id].take() else { return };
        resident.suspended = suspended;
        resident.last_core = self.id;
        // If it owns devices: the slot orders memory only.
        fence::memory_and_devices();
        resident.shared.park(resident, owner);
    }

    /// The same where few instructions more don't matter.
    #[inline(never)]
    fn park_out_of_line(&mut self, id: VcpuId, owner: u32) {
        self.park(id, owner);
    }

    /// Claims a parked vCPU. False if it isn't parked any more.
    pub(in crate::cpu) fn claim(&mut self, id: VcpuId) -> bool {
        let vcpu = self.machine.vcpu(id);
        let Some(mut resident) = vcpu.claim(self.id) else { return false };
        if self.mechanisms.migration.stealable.contains(id) {
            self.mechanisms.migration.stealable.remove(id);
            if resident.last_core == self.id {
                // It has been nowhere else meanwhile, so what this core's scheduler knows of it still holds.
                self.residents[id] = Some(resident);
                self.mechanisms.migration.here.insert(id);
                self.note_arrival(id, !self.scheduler.is_asleep(id));
                self.serve_claimed(id, true);
                return true;
            }
            self.scheduler.release(id);
        }
        self.mechanisms.migration.refused.remove(id);
        if resident.last_core != self.id {
            vcpu.fences.distrust_caches();
            // As in `park`: what it does with its devices here comes after what it has done there.
            fence::memory_and_devices();
            resident.counters.migrations += 1;
            self.trace(Event::Migration { vcpu: id.0, from: resident.last_core as u8, to: self.id as u8 });
        }
        let suspended = resident.suspended;
        let waiting_since = vcpu.waiting_since();
        self.adopt(id, resident);
        self.note_arrival(id, suspended);
        if let Some(since) = waiting_since {
            self.keep_seniority(id, since);
        }
        if vcpu.confined && vcpu.home != self.id {
            // It comes for a short visit to its kernel: the one that runs here lets it go first.
            self.yield_now();
        }
        self.serve_claimed(id, false);
        true
    }

    /// What is wanted of a vCPU that has just been claimed is done, at once if it `is_back` from where it was parked here. It waits for a preemption
    /// point if it is a start, or the vCPU has come from elsewhere: each takes as long as the claim before.
    fn serve_claimed(&mut self, id: VcpuId, is_back: bool) {
        let wanted = self.machine.vcpu(id).wanted();
        if wanted.is_empty() {
            return;
        }
        if is_back && !wanted.contains(Requests::START) {
            self.look_at(id);
        } else {
            self.backlog.unread.insert(id);
            self.resume_backlog();
        }
    }

    /// A vCPU that has come from elsewhere has waited there since then, and goes before those of its level that have waited less, if it comes among the
    /// next few. If that began anew with each move, those that are sent to and fro as an RTOS takes its core would wait for ever behind those that stay.
    fn keep_seniority(&mut self, id: VcpuId, since: u64) {
        let machine = self.machine;
        machine.vcpu(id).publish_waiting(since);
        let looked_at = if self.has_taken(guard::too_long(self.guard)) { 1 } else { LOOKED_AT };
        // Also one that has gone from its place here, and waits no more.
        let has_waited_less = |other| machine.vcpu(other).waiting_since().is_none_or(|later| later > since);
        self.scheduler.move_ahead(id, looked_at, has_waited_less);
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

    /// Another core would run a vCPU of this one: it may have it, if it only waits here, and unless something more urgent has come there
    /// since.
    pub(in crate::cpu) fn give_away(&mut self, id: VcpuId) {
        let vcpu = self.machine.vcpu(id);
        let core = vcpu.wanted_by.load(Ordering::Relaxed);
        // Nor the one whose trap is being served, though it may have yielded in it.
        let waits = self.scheduler.state(id) == State::Suspended && self.scheduler.picked() != Some(id);
        if core != self.id && waits && vcpu.may_run_on(core) && self.accepts(id, core) {
            self.migrate_to(id, core);
        }
    }

    /// Sends a vCPU that lives here, running or not, to another core.
    pub(in crate::cpu) fn migrate_to(&mut self, id: VcpuId, core: u32) {
        self.park_for(id, core);
        self.post(core, u32::from(id.0));
    }

    /// Parks a vCPU that lives here for another core. It has no place here any more.
    fn park_for(&mut self, id: VcpuId, core: u32) {
        self.park_out_of_line(id, core);
        self.scheduler.release(id);
    }

    /// A vCPU has come to rest here, or has been put back to its reset state. Where it gets no turns it isn't left: who resets or starts it finds it parked for
    /// its home, and claims it, or looks for a core that has room for it.
    pub(in crate::cpu) fn leave_where_it_starts(&mut self, id: VcpuId) {
        let vcpu = self.machine.vcpu(id);
        let stays = vcpu.is_allowed_on(self.id) && self.accepts(id, self.id);
        if !stays && self.mechanisms.migration.here.contains(id) {
            self.park_for(id, vcpu.home);
        }
    }

    /// Does this core hold a place for a stealable vCPU, so that it comes back when its turn comes? Not if it sleeps, when it gets
    /// none, nor if it has been away since and is parked for another core, when this one has no claim to it any more.
    #[inline]
    pub(in crate::cpu) fn waits_for_its_turn(&self, id: VcpuId) -> bool {
        self.mechanisms.migration.stealable.contains(id)
            && self.machine.vcpu(id).owner() == self.id
            && !self.scheduler.is_asleep(id)
    }

    /// Is the vCPU parked where this core has parked it, or was sent it?
    pub(super) fn is_parked_here(&self, id: VcpuId) -> bool {
        let vcpu = self.machine.vcpu(id);
        vcpu.owner() == self.id && vcpu.is_parked()
    }
}
