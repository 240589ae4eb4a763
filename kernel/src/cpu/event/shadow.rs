//! What a core has for guests with a shadow.
#[cfg(not(feature = "no-h"))]
mod shortcut;

use ainori_handover::Fence;
use ainori_sched::VcpuId;

use crate::cpu::Cpu;

impl Cpu {
    /// A preemption point between two steps of one trap's service: is the rest to wait for an interrupt, or for a deadline that is too near for it? The vCPU traps again then.
    pub fn stops_between_steps(&mut self) -> bool {
        self.gives_way() || self.is_deadline_near(self.entered)
    }

    /// The running vCPU carries out a fence of its own before it goes on, as those that others want of it.
    pub fn fence_before_entry(&mut self, id: VcpuId, what: Fence) {
        self.machine.vcpu(id).fences.record_own(what);
        self.pending.fences = true;
    }
}
