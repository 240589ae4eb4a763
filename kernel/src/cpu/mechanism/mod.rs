//! What policies are made of. A policy is a pure choice (`crates/sched`); what it chooses among is done here, one file each, with its state.
//!
//! What all mechanisms may be asked at is in this file: before a decision, at a switch, when a vCPU wakes, and when it has left the run
//! queue. So another mechanism is its file, a field of [`Mechanisms`], and a line in those of these functions that concern it. On the way to
//! an RTOS, before the decision and at the switch, one flag is tested however many mechanisms there are.
//!
//! What only one mechanism has to say is asked of it where it happens: a core that idles pulls work, a trap may be that of a confined vCPU, a
//! part of the backlog pushes somebody or takes a stray back, a message offers a vCPU, an alarm is over.
pub mod apart;
pub mod confine;
pub mod defer;
mod intercept;
pub mod migrate;
pub mod pull;
pub mod push;
pub mod settle;
mod strays;
pub mod watch;
pub mod windows;

use alloc::boxed::Box;

use ainori_sched::{Decision, Policy, VcpuId};

use self::apart::Apart;
use self::confine::Confinement;
use self::defer::Deferral;
use self::intercept::Interception;
use self::migrate::Migration;
use self::pull::Pull;
use self::push::Push;
use self::settle::Settling;
use self::watch::Watch;
use self::windows::Windows;
use super::{Cpu, Machine};
use crate::arch::clock;

/// The mechanisms' state on a core. (Co-scheduling has none: the clock says all.)
pub struct Mechanisms {
    /// The policy has a mechanism that is asked at a decision or at a switch.
    pub(in crate::cpu) are_any: bool,
    /// The policy has something to say [before](Cpu::ask_policy) the scheduler decides.
    has_say: bool,
    pub(in crate::cpu) migration: Migration,
    pub(in crate::cpu) settling: Settling,
    pub(in crate::cpu) push: Push,
    pub(in crate::cpu) apart: Apart,
    pub(in crate::cpu) confinement: Confinement,
    pub(in crate::cpu) deferral: Deferral,
    interception: Interception,
    pub(in crate::cpu) watch: Watch,
    pub(in crate::cpu) pull: Pull,
    /// Apart from what is asked for on the RTOS's way.
    pub(in crate::cpu) windows: Box<Windows>,
}

impl Mechanisms {
    /// Of core `id`, which has had no vCPU yet. Only at boot.
    pub fn new(machine: &Machine, id: u32, policy: &Policy) -> Self {
        let watch = Watch::new(machine, policy);
        Self {
            are_any: policy.moves()
                || policy.confines()
                || policy.defers()
                || policy.co_schedules()
                || policy.has_windows()
                || !watch.vcpus.is_empty(),
            has_say: policy.defers() || policy.co_schedules() || policy.has_windows(),
            migration: Migration::new(policy),
            settling: Settling::new(),
            push: Push::new(policy),
            apart: Apart::new(policy),
            confinement: Confinement::new(policy),
            deferral: Deferral::new(policy),
            interception: Interception::new(),
            watch,
            pull: Pull::new(machine),
            windows: Box::new(Windows::new(machine, id, policy)),
        }
    }
}

/// What the mechanisms want before a decision.
pub(super) enum Before {
    /// The scheduler decides.
    Decide,
    /// Something else has to be done first: then they are asked again.
    Again,
    /// This vCPU, which has the core, keeps it for now.
    Keep(VcpuId),
}

impl Cpu {
    /// What the mechanisms do before the scheduler decides. `now` is later afterwards where that has taken its time.
    #[inline(always)]
    pub(super) fn prepare_decision(&mut self, now: &mut u64) -> Before {
        if self.mechanisms.has_say {
            // Where many guests take turns, to find whose it is takes as long as all the rest.
            if self.gives_way() {
                return Before::Again;
            }
            if self.mechanisms.windows.is_on && self.keep_to_windows(now) {
                return Before::Again;
            }
            if let Some(id) = self.ask_policy(*now) {
                return Before::Keep(id);
            }
        }
        if self.pending.unsettled {
            self.settle();
            // Who has gone meanwhile has been accounted for until then.
            *now = clock::now();
            // Somebody who is woken here may be unsettled, too.
            let is_woken = self.meet_deadline(*now);
            self.pending.unsettled = !self.mechanisms.settling.unsettled.is_empty();
            if is_woken && self.pending.unsettled || self.gives_way() {
                return Before::Again;
            }
            self.pending.woken = false;
        }
        // The same time for both: later than this another one might be the next.
        if !self.mechanisms.migration.stealable.is_empty() && !self.reclaim_next(*now) {
            return Before::Again;
        }
        Before::Decide
    }

    /// What only some policies have to say. If the running vCPU keeps the core for now, that is returned.
    #[inline(never)]
    fn ask_policy(&mut self, now: u64) -> Option<VcpuId> {
        if self.mechanisms.deferral.is_on
            && let Some(id) = self.defer_preemption(now)
        {
            return Some(id);
        }
        if self.scheduler.policy().co_schedules() {
            // Whose turn it is follows from the clock, which all cores read alike (`ainori_sched::Gangs`): nothing to tell others, nor to
            // remember. A turn's end is the quantum's end, for which the alarm is set anyhow.
            self.scheduler.co_schedule(now);
        }
        None
    }

    /// The core has just been given to the vCPU `id`.
    #[inline(always)]
    pub(super) fn note_switch(&mut self, decision: &Decision, id: VcpuId, now: u64) {
        if self.mechanisms.confinement.is_on || self.mechanisms.deferral.is_on {
            self.intercept(id);
        }
        if !self.mechanisms.migration.migratable.is_empty() {
            self.note_asleep(decision.previous);
            self.make_others_stealable(id, decision.previous, now);
        }
        if !self.mechanisms.watch.vcpus.is_empty() {
            if self.mechanisms.watch.vcpus.contains(id) {
                self.watch(decision.alarm.is_some(), now);
            } else {
                self.later.leave_out_sample();
            }
        }
    }

    /// A vCPU of this core has joined the run queue.
    #[inline(always)]
    pub(super) fn note_ready(&mut self, id: VcpuId) {
        if self.mechanisms.apart.is_on {
            self.take_seat(id);
        }
    }

    /// A vCPU of this core doesn't run any more. If it sleeps, it has left the run queue. (Where no vCPU may run elsewhere, nobody asks at a switch.)
    #[inline]
    pub(super) fn note_asleep(&mut self, id: Option<VcpuId>) {
        if self.mechanisms.apart.is_on
            && let Some(id) = id.filter(|id| self.scheduler.is_asleep(*id))
        {
            self.leave_seat(id);
        }
    }
}
