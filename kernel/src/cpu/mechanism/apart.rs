//! Balance scheduling: of a guest's vCPUs, at most one waits on each core, or runs there ([`Seats`](ainori_handover::Seats)).
//!
//! A vCPU takes a seat with its guest when it joins a core's run queue, and gives it back when it sleeps. Where others of its guest have seats, it
//! isn't sent ([`Vcpu::cores_now`](crate::guest::vcpu::Vcpu::cores_now)). If it wakes where another one has come meanwhile, it goes on before
//! the scheduler's next decision. There is a seat for each, as a guest has no more vCPUs than cores under such a policy (the manifest's checks).
use ainori_limits::bits::lowest_bit_out_of_line;
use ainori_sched::{Policy, VcpuId, VcpuSet};

use crate::cpu::Cpu;

/// Which of a core's vCPUs have no seat here.
pub struct Apart {
    /// The policy keeps vCPUs apart: then it is asked when one wakes or sleeps.
    pub(super) is_on: bool,
    /// Those that have found none anywhere, as others were just on their way: they look again.
    unseated: VcpuSet,
}

impl Apart {
    /// No vCPU is here.
    pub fn new(policy: &Policy) -> Self {
        Self { is_on: policy.keeps_apart(), unseated: VcpuSet::EMPTY }
    }
}

impl Cpu {
    /// A vCPU has joined the run queue of this core.
    #[inline(never)]
    pub(super) fn take_seat(&mut self, id: VcpuId) {
        if !self.machine.vcpu(id).take_seat(self.id) {
            self.unsettle(id);
        }
    }

    /// A vCPU has left the run queue, as it sleeps.
    #[inline(never)]
    pub(super) fn leave_seat(&mut self, id: VcpuId) {
        self.machine.vcpu(id).leave_seat();
        self.mechanisms.apart.unseated.remove(id);
    }

    /// The core where a vCPU that is here has to go, as another one of its guest has the seat: where it gets a turn, or else where it can wait.
    pub(super) fn core_with_seat(&mut self, id: VcpuId) -> Option<u32> {
        let vcpu = self.machine.vcpu(id);
        if !self.mechanisms.apart.is_on || self.scheduler.is_asleep(id) || vcpu.take_seat(self.id) {
            return None;
        }
        let free = vcpu.cores_now() & !(1 << self.id);
        let core = self
            .suitable_core(id)
            .or_else(|| (free != 0).then(|| lowest_bit_out_of_line(free)))
            .filter(|core| vcpu.take_seat(*core));
        if core.is_none() {
            self.mechanisms.apart.unseated.insert(id);
        }
        core
    }

    /// Has those look again that have found no seat.
    pub(super) fn unsettle_unseated(&mut self) {
        self.mechanisms.settling.unsettled |= core::mem::take(&mut self.mechanisms.apart.unseated);
    }
}
