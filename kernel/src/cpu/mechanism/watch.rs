//! Looking for vCPUs that spin. What is done about one is `note_spin` in [`pull`](super::pull).
//!
//! Where the hart has Zawrs, the guest says so itself: its spin locks execute WRS.NTO, which traps. Where guests aren't offered that,
//! the core looks at the registers of the running vCPU now and then, and a [`SpinDetector`] judges.
//!
//! The alarm for this is set only while a *watched* vCPU runs ([`watched`]), and as long as all others of its guest that could run do
//! run, it does nothing but to look whether that has changed. So the core of the RTOS, which takes a vCPU's core away, need not tell
//! anybody: the other cores find out by themselves within a millisecond.
use ainori_sched::{Occasion, Policy, SpinDetector, VcpuId, VcpuSet};

use crate::arch::VcpuState;
use crate::cpu::{Cpu, Machine};
use crate::stats::Exit;

/// What a core knows of spinning.
pub struct Watch {
    /// vCPUs that are looked at while they run: the same on all cores.
    pub(in crate::cpu) vcpus: VcpuSet,
    /// When to look at the running one, in ticks of `time`. Means nothing if it isn't watched.
    pub(in crate::cpu) sample_due: u64,
    /// Judges.
    pub(in crate::cpu) detector: SpinDetector,
}

impl Watch {
    /// Has seen nothing yet. Only at boot.
    pub fn new(machine: &Machine, policy: &Policy) -> Self {
        Self {
            vcpus: watched(machine, policy),
            sample_due: u64::MAX,
            detector: SpinDetector::new(machine.board.timebase_hz),
        }
    }
}

impl Cpu {
    /// A watched vCPU has just got the core. `shared`: an equal waits for it, perhaps the one that this one is going to spin for.
    #[inline(never)]
    pub(in crate::cpu) fn watch(&mut self, shared: bool, now: u64) {
        self.mechanisms.watch.detector.restart(shared);
        self.mechanisms.watch.sample_due = now + self.mechanisms.watch.detector.pause();
        self.later.set_sample(self.mechanisms.watch.sample_due);
    }

    /// When to look at whoever has the core; never, if that isn't watched. Also one that has let its equals go first: it may go on without a switch.
    pub(in crate::cpu) fn next_sample(&self) -> u64 {
        let is_watched = self.scheduler.picked().is_some_and(|id| self.mechanisms.watch.vcpus.contains(id));
        if is_watched { self.mechanisms.watch.sample_due } else { u64::MAX }
    }

    /// It is [time](Self::next_sample) to look at the running vCPU. Not if somebody has just woken, who may want the core; nor if it doesn't run at this moment.
    #[inline(never)]
    pub(in crate::cpu) fn take_sample(&mut self, now: u64) -> Exit {
        let machine = self.machine;
        let least = self.least_pause(self.mechanisms.watch.sample_due, now);
        let watch = &mut self.mechanisms.watch;
        watch.sample_due = now + watch.detector.pause().max(least);
        let Some(id) = self.scheduler.running().filter(|_| !self.pending.woken) else {
            return Exit::Timer;
        };
        let mut siblings = machine.guest_of(id).vcpus().map(VcpuId);
        // BOUND: the vCPUs of one guest, some 12 instructions each.
        if !siblings.any(|sibling| machine.vcpu(sibling).waiting_since().is_some()) {
            watch.sample_due = now + watch.detector.rest();
            return Exit::Sample;
        }
        let Some(resident) = &self.residents[id] else { return Exit::Timer };
        let state = &resident.state;
        let spins = if state.is_in_kernel() {
            watch.detector.sample(state.pc(), digest(state))
        } else {
            watch.detector.works();
            false
        };
        watch.sample_due = now + watch.detector.pause().max(least);
        if spins {
            self.note_spin(id);
            Exit::Spin
        } else {
            Exit::Sample
        }
    }
}

/// Program counter and general registers as one number: different ones are as good as never the same.
fn digest(state: &VcpuState) -> u64 {
    /// Odd, so that no step loses anything; its bits are those of the golden ratio.
    const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
    // BOUND: 31 registers, 5 instructions each.
    state.registers().iter().fold(state.pc(), |digest, register| (digest ^ register).wrapping_mul(MIX))
}

/// The vCPUs that are looked at while they run: whose guest doesn't say itself that it spins, that can be waiting for another one
/// whose core was taken from it, and for whom something can be done about that. Only at boot.
fn watched(machine: &Machine, policy: &Policy) -> VcpuSet {
    if machine.features.has_spin_hints() {
        return VcpuSet::EMPTY;
    }
    // Where they meet: at the home of one of them.
    let level = |id: VcpuId, at: VcpuId| machine.orders[machine.vcpu(at).home].rank(id).level;
    let all = || (0..machine.vcpus().len() as u8).map(VcpuId);
    let share_core = |one: VcpuId, other: VcpuId| {
        let (home, visitor) = (machine.vcpu(one).home, machine.vcpu(other));
        let visits = policy.moves() && visitor.guest != machine.vcpu(one).guest && visitor.may_run_on(home);
        one != other && (visitor.home == home || visits)
    };
    let may_lose_core =
        |id: VcpuId| all().any(|other| share_core(id, other) && level(other, id) >= level(id, id));
    let can_yield =
        |id: VcpuId| all().any(|other| share_core(id, other) && level(other, id) == level(id, id));
    all()
        .filter(|id| {
            let mut siblings = machine.guest_of(*id).vcpus().map(VcpuId);
            siblings.len() > 1
                && siblings.any(may_lose_core)
                && (policy.pulls(Occasion::Spin) || can_yield(*id))
        })
        .collect()
}
