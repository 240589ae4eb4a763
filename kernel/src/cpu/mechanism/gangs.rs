//! Co-scheduling: a guest's vCPUs get their cores at the same time ([`Gangs`](ainori_sched::Gangs)).
//!
//! Whose turn it is follows from the clock, which all cores read alike. So there is nothing to tell other cores, nor to remember here: a turn's end is
//! the quantum's end, for which the alarm is set anyhow.
use ainori_sched::VcpuId;

use crate::cpu::Cpu;

impl Cpu {
    /// What only some policies have to say, before the scheduler decides. If the running vCPU keeps the core for now, that is returned.
    ///
    /// They share one test on the way to the RTOS, so that another one costs it nothing.
    #[inline(never)]
    pub(in crate::cpu) fn ask_policy_first(&mut self, now: u64) -> Option<VcpuId> {
        if self.deferral.is_on
            && let Some(id) = self.defer_preemption(now)
        {
            return Some(id);
        }
        if self.scheduler.policy().co_schedules() {
            self.scheduler.co_schedule(now);
        }
        None
    }
}
