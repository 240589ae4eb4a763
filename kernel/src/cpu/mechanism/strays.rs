//! Strays: vCPUs that belong to this core, or were parked with it, and that it has room for again. They are taken back, or sent home.
use ainori_handover::Requests;
use ainori_sched::{VcpuId, VcpuSet};

use crate::cpu::Cpu;

impl Cpu {
    #[inline(never)]
    pub(in crate::cpu) fn look_for_strays(&mut self, elsewhere: VcpuSet) {
        // BOUND: a few vCPUs, some 50 instructions each.
        for id in elsewhere {
            if self.is_stray(id) {
                self.backlog.strays.insert(id);
            } else {
                self.watch_over(id);
            }
        }
    }

    /// Does a vCPU, which this core has room for, stay parked where it doesn't come back from by itself, or is it elsewhere?
    fn is_stray(&self, id: VcpuId) -> bool {
        !self.has(id)
            && self.accepts(id, self.id)
            && !(self.waits_for_its_turn(id) && self.machine.vcpu(id).is_parked())
    }

    /// This core can't take a vCPU back now, as somebody more urgent has come meanwhile or as the vCPU must not run here. If that vCPU is
    /// parked with this core, or was refused here, the core looks after it again. It has to be noted anew, as the core has forgotten whom
    /// it was trying to place when its threshold went down ([`review_starved`](Self::review_starved)).
    fn watch_over(&mut self, id: VcpuId) {
        if (self.is_parked_here(id) || self.mechanisms.migration.refused.contains(id)) && !self.gets_turns(id)
        {
            self.backlog.starved.insert(id);
        }
    }

    /// Takes a [stray](Self::is_stray) back, or has it sent home.
    pub(in crate::cpu) fn collect(&mut self, id: VcpuId) {
        if !self.is_stray(id) {
            return self.watch_over(id);
        }
        let vcpu = self.machine.vcpu(id);
        if !vcpu.is_parked() || self.gets_turns(id) {
            // Somebody else has taken it.
            self.mechanisms.migration.refused.remove(id);
        }
        let is_ours =
            vcpu.home == self.id || self.is_parked_here(id) || self.mechanisms.migration.refused.contains(id);
        if is_ours && vcpu.may_run_on(self.id) && self.claim(id) {
            return;
        }
        self.forget(id);
        if vcpu.home == self.id {
            self.ask(id, Requests::HOME);
        }
        if is_ours && vcpu.is_parked() {
            // It may not run here now: it must be watched over.
            self.backlog.starved.insert(id);
        }
    }
}
