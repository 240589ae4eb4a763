//! Deferred preemption: the running vCPU keeps the core for a grace if a higher one wakes while it is in its kernel, or holds a lock.
use ainori_sched::{Condition, Policy, VcpuId};

use crate::cpu::Cpu;

/// The grace of a core's running vCPU.
pub struct Deferral {
    /// The policy puts preemptions off: then it is asked on the way to each vCPU.
    pub(in crate::cpu) is_on: bool,
    /// When the grace ends, in ticks of `time`, if a higher vCPU waits for it; `u64::MAX` if none does.
    pub(in crate::cpu) grace_end: u64,
}

impl Deferral {
    /// There is none.
    pub fn new(policy: &Policy) -> Self {
        Self { is_on: policy.defers(), grace_end: u64::MAX }
    }
}

impl Cpu {
    /// A higher vCPU wants the core while the running one is in a condition that the policy has it keep for a while: goes on with
    /// that one, and returns it.
    #[inline(never)]
    pub(in crate::cpu) fn defer_preemption(&mut self, now: u64) -> Option<VcpuId> {
        let running = self.scheduler.running().filter(|_| self.scheduler.is_preemption_due());
        let granted = running.and_then(|id| {
            let resident = self.resident(id);
            let condition =
                Condition { in_kernel: resident.state.is_in_kernel(), holds_lock: resident.holds_lock };
            Some((id, self.scheduler.policy().grace(condition)?))
        });
        let Some((id, grace)) = granted else {
            self.mechanisms.deferral.grace_end = u64::MAX;
            return None;
        };
        self.mechanisms.deferral.grace_end = self.mechanisms.deferral.grace_end.min(now + grace);
        if self.mechanisms.deferral.grace_end <= now {
            self.mechanisms.deferral.grace_end = u64::MAX;
            return None;
        }
        self.intercept(id);
        self.update_and_set_alarm(Some(self.mechanisms.deferral.grace_end));
        self.carry_out_fences(id, self.machine.vcpu(id));
        Some(id)
    }
}
