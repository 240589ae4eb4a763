//! Push migration: vCPUs that wait where they get no turn aren't left alone for longer than [`Policy::patience`](ainori_sched::Policy::patience): this core
//! looks after them, and has another one take them if the policy says so.
use ainori_lifecycle::HartState;
use ainori_sched::{Occasion, Policy, VcpuId, VcpuSet};

use crate::arch::clock;
use crate::cpu::Cpu;
use crate::cpu::mail::NO_VCPU;

/// After so many times [`Policy::patience`](ainori_sched::Policy::patience) a core tries again to have a vCPU pulled, for which no core
/// was free: a millisecond, since that interrupts the RTOS that the core runs.
const RETRY: u64 = 40;

/// So many vCPUs are looked at in one go whether they have been left alone: 2.5 us at most.
const CHECKED_AT_ONCE: usize = 10;

/// What a core knows of vCPUs that wait where they get no turn.
pub struct Push {
    /// The policy has this core look after them.
    pub(in crate::cpu) is_on: bool,
    /// There are such vCPUs: at the next [look](Cpu::look_again_at) they will have been left alone for long enough.
    pub(in crate::cpu) is_wanted: bool,
    /// vCPUs for which no core was free, and which one was tried last.
    unplaced: VcpuSet,
    tried: VcpuId,
    /// When to try the next one, in ticks of `time`; `u64::MAX` if there is none.
    retry_due: u64,
    /// vCPUs of which isn't known yet whether they are such.
    pub(in crate::cpu) unchecked: VcpuSet,
}

impl Push {
    /// There is none yet.
    pub fn new(policy: &Policy) -> Self {
        Self {
            // Where everybody who is preempted is pulled at once, only sleepers, and those who found no core, are left to be looked after.
            is_on: policy.pulls(Occasion::Starved { asleep: true, in_kernel: false })
                && !policy.pulls(Occasion::Preempted { in_kernel: false }),
            is_wanted: false,
            unplaced: VcpuSet::EMPTY,
            tried: VcpuId(0),
            retry_due: u64::MAX,
            unchecked: VcpuSet::EMPTY,
        }
    }
}

impl Cpu {
    /// vCPUs wait or are parked where they get no turn. If nobody has claimed them after a while, this core will have that done.
    pub(super) fn push_soon(&mut self, now: u64) {
        self.mechanisms.push.is_wanted = true;
        self.look_again_at(now + self.scheduler.policy().patience);
    }

    /// Somebody less urgent has got this core than those before whom others waited here.
    #[inline(never)]
    pub(in crate::cpu) fn review_starved(&mut self) {
        if self.scheduler.running().is_some_and(|id| self.urgent.contains(id)) {
            // For those below nothing has changed. If they have been deferred already, their turn is now, before the next time.
            if self.later.is_held_off() && core::mem::take(&mut self.mechanisms.push.is_wanted) {
                self.backlog.starved.insert(NO_VCPU);
            }
            self.later.leave_out_sample();
        } else {
            self.later.forget_look();
            self.mechanisms.push.is_wanted = false;
            self.mechanisms.push.retry_due = u64::MAX;
            self.mechanisms.push.unplaced = VcpuSet::EMPTY;
            self.mechanisms.push.unchecked = VcpuSet::EMPTY;
        }
    }

    /// vCPUs that wait or are parked here, where they get no turn, have been left alone for long enough.
    pub(in crate::cpu) fn find_starved(&mut self) {
        let all = if self.mechanisms.push.unchecked.is_empty() {
            self.mechanisms.migration.migratable
        } else {
            self.mechanisms.push.unchecked
        };
        let are_few = self.machine.vcpu_count <= CHECKED_AT_ONCE;
        let some = if are_few { all } else { all.lowest::<CHECKED_AT_ONCE>() };
        self.mechanisms.push.unchecked = all - some;
        if !self.mechanisms.push.unchecked.is_empty() {
            self.push_soon(clock::now());
        }
        // Those that are here wait, but for the one that runs.
        let here = some & self.mechanisms.migration.here;
        self.backlog.starved |= self.holder().map_or(here, |holder| here.without(holder));
        // BOUND: `CHECKED_AT_ONCE` vCPUs, some 50 instructions each.
        for id in some - here {
            if self.machine.vcpu(id).is_parked() && !self.gets_turns(id) {
                self.backlog.starved.insert(id);
            }
        }
    }

    /// Looks after a vCPU that may be waiting where it gets no turn. True if there is no core for it at this moment: it will be tried again.
    pub(in crate::cpu) fn push_starved(&mut self, id: VcpuId) -> bool {
        if self.mechanisms.migration.here.contains(id) {
            let Some(holder) = self.holder() else {
                // Who has just gone to sleep may be woken before anybody else gets the core.
                self.push_soon(clock::now());
                return false;
            };
            if id != holder && (self.scheduler.precedes(holder, id) || !self.scheduler.is_asleep(id)) {
                self.make_stealable_out_of_line(id);
            }
        }
        let vcpu = self.machine.vcpu(id);
        let (wanted, state) = (vcpu.wanted(), vcpu.hart.state());
        if wanted.end_a_life() {
            // Who asked may have kept quiet, as it wasn't parked yet.
            self.look_at(id);
            return false;
        }
        if state == HartState::Stopped && wanted.is_empty() {
            // It is parked, where whoever starts it finds it, and has no timer that somebody must watch.
            return false;
        }
        let asleep = vcpu.waiting_since().is_none();
        let policy = self.scheduler.policy();
        let occasion = policy.pulls(Occasion::Starved { asleep, in_kernel: vcpu.is_in_kernel() })
            || state == HartState::StartPending
            || !wanted.is_empty() && policy.pulls(Occasion::Interrupt);
        occasion && self.place(id)
    }

    /// A vCPU that gets no turn here found no other core. A core that idles looks for those that could run; but one that was just busy with
    /// somebody more urgent doesn't, and nobody looks for a sleeper.
    ///
    /// One of them is tried each time, in turn: if there is no core for it, there is hardly one for the others that may run on the same cores, and
    /// each look interrupts an RTOS.
    #[inline(never)]
    pub(super) fn push_again(&mut self, id: VcpuId) {
        self.mechanisms.push.unplaced.insert(id);
        self.mechanisms.push.tried = id;
        if self.mechanisms.push.retry_due == u64::MAX {
            self.mechanisms.push.retry_due = clock::now() + RETRY * self.scheduler.policy().patience;
        }
        self.look_again_at(self.mechanisms.push.retry_due);
    }

    /// The time is over for which those were left alone who get no turn here.
    #[inline(always)]
    pub(in crate::cpu) fn serve_push(&mut self, now: u64) {
        if core::mem::take(&mut self.mechanisms.push.is_wanted) {
            self.backlog.starved.insert(NO_VCPU);
        }
        if self.mechanisms.push.retry_due <= now {
            self.retry_next();
        } else if self.mechanisms.push.retry_due != u64::MAX {
            self.look_again_at(self.mechanisms.push.retry_due);
        }
    }

    /// Has the next one tried for which no core was free, behind the present event.
    #[inline(never)]
    pub(in crate::cpu) fn retry_next(&mut self) {
        self.mechanisms.push.retry_due = u64::MAX;
        if let Some(id) = self.mechanisms.push.unplaced.pop_from(self.mechanisms.push.tried.0 + 1) {
            self.backlog.preempted.insert(id);
            self.resume_backlog();
        }
    }
}
