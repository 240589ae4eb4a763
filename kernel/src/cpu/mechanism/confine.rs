//! Trap-based migration (SPUMONE thesis, 4.3.2): where a vCPU shares a core with a higher one, it runs in user mode only.
//!
//! On such a core (its home) none of its traps is delegated to it: each comes here, is prepared for the guest's
//! handler, and moves the vCPU to a core where its kernel may run. There returns of its kernel trap, so that the one to user mode
//! is seen, which moves it home.
use ainori_sched::{Policy, VcpuId};

use crate::arch::trap::Exception;
use crate::cpu::Cpu;
use crate::guest::fault;
use crate::stats::Exit;

/// Whether and how the hart confines vCPUs.
pub struct Confinement {
    /// The policy confines vCPUs: then it is asked on the way to each.
    pub(in crate::cpu) is_on: bool,
    /// It makes a difference to the policy whether a vCPU is in its kernel.
    pub(in crate::cpu) asks_for_mode: bool,
}

impl Confinement {
    /// Nobody is confined yet.
    pub fn new(policy: &Policy) -> Self {
        Self { is_on: policy.confines(), asks_for_mode: policy.asks_for_mode() }
    }
}

impl Cpu {
    /// Moves the vCPU that was chosen to run if it must not do so here: in its kernel at home, or in user mode elsewhere when it has
    /// just returned from its kernel.
    #[inline(never)]
    pub(in crate::cpu) fn relocate(&mut self, id: VcpuId, previous: Option<VcpuId>, now: u64) -> bool {
        let me = self.id;
        let resident = self.resident(id);
        let home = resident.shared.home;
        let returns_home = core::mem::take(&mut resident.returns_home);
        if !resident.shared.confined {
            return false;
        }
        let to = if home != me {
            (returns_home && (self.scheduler.policy().waits_at_home() || self.accepts(id, home)))
                .then_some(home)
        } else if resident.state.is_in_kernel() {
            self.kernel_core(id)
        } else {
            None
        };
        if let Some(core) = to {
            if previous != Some(id) {
                self.leave_vcpu(previous, false, now);
            }
            self.migrate_to(id, core);
        }
        to.is_some()
    }

    /// The core where a confined vCPU's kernel runs: the next one after its home that isn't busy with something more urgent, or
    /// else just the next one.
    fn kernel_core(&self, id: VcpuId) -> Option<u32> {
        let vcpu = self.machine.vcpu(id);
        let cores = self.machine.harts.len() as u32;
        let mut others = (vcpu.home + 1..cores).chain(0..vcpu.home).filter(|core| vcpu.may_run_on(*core));
        // BOUND: the cores, twice, some 15 instructions each.
        others.clone().find(|core| self.accepts(id, *core)).or_else(|| others.next())
    }

    /// Tells other cores whether a vCPU that lives here, and may go elsewhere, is in its kernel, if that matters to the policy.
    #[inline(always)]
    pub(in crate::cpu) fn publish_mode(&mut self, id: VcpuId) {
        if self.mechanisms.confinement.asks_for_mode {
            self.publish_mode_out_of_line(id);
        }
    }

    /// The same where few instructions more don't matter.
    #[inline(never)]
    fn publish_mode_out_of_line(&mut self, id: VcpuId) {
        let resident = self.resident(id);
        let is_about_to_be = resident.due != 0 && !resident.shared.confined;
        resident.shared.publish_mode(resident.state.is_in_kernel() || is_about_to_be);
    }

    /// A trap of a confined vCPU in user mode: its guest's handler gets it, but not on this core.
    pub(in crate::cpu) fn confined_trap(&mut self, vcpu: VcpuId, exception: Exception) -> Exit {
        if !self.machine.vcpu(vcpu).confined {
            return fault::stop(self, vcpu, fault::What::Unknown, exception);
        }
        if self.state(vcpu).deliver(exception) {
            Exit::Confined
        } else {
            fault::stop(self, vcpu, fault::What::Unhandled, exception)
        }
    }
}
