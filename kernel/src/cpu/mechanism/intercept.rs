//! Which traps and returns of the running vCPU come to the hypervisor for the policy's sake: for [confinement](super::confine), and for a
//! [grace](super::defer).
use ainori_sched::VcpuId;

use crate::arch::hart;
use crate::cpu::Cpu;

/// What the hart intercepts.
pub struct Interception {
    /// Guests take their own traps: none are intercepted.
    delegates: bool,
}

impl Interception {
    /// As boot sets the hart up.
    pub const fn new() -> Self {
        Self { delegates: true }
    }
}

impl Cpu {
    /// Has the hart intercept what is to be seen of the vCPU that is about to run: all traps of a confined one at its home, and returns of its kernel
    /// elsewhere; and the return that ends a grace.
    #[inline]
    pub(super) fn intercept(&mut self, id: VcpuId) {
        let me = self.id;
        let ends_grace = self.mechanisms.deferral.grace_end != u64::MAX;
        let resident = self.resident(id);
        let (confined, (delegated, is_switched)) = (resident.shared.confined, resident.state.delegation());
        let at_home = confined && resident.shared.home == me;
        let returns_trap = confined && !at_home || ends_grace;
        resident.state.watch_returns(returns_trap);
        self.pending.policy = confined || ends_grace;
        if self.mechanisms.interception.delegates == at_home || is_switched {
            self.mechanisms.interception.delegates = !at_home;
            hart::delegate_to_guests(!at_home, delegated);
        }
    }

    /// A return of a guest's kernel that had to be seen: that of a confined vCPU to user mode, or the end of a grace.
    pub(in crate::cpu) fn note_return(&mut self, vcpu: VcpuId, to_user: bool) {
        let resident = self.resident(vcpu);
        let confined = resident.shared.confined;
        resident.returns_home = to_user && confined;
        if !confined {
            // It was watched for the sake of a grace, which now ends.
            resident.state.watch_returns(false);
        }
    }
}
