//! What a core has for guests with a shadow.
#[cfg(not(feature = "no-h"))]
mod shortcut;

use ainori_handover::{Fence, Progress, Requests};
use ainori_sched::{VcpuId, VcpuSet};

use crate::arch::clock;
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
        self.owes_fences();
    }

    /// The running vCPU tries once more to execute the instruction that it has trapped at, or is to execute its next one after others have kept it for long.
    pub fn is_amid_instruction(&mut self, id: VcpuId) {
        let state = self.state(id);
        let pc = state.pc();
        if let Some(progress) = state.progress() {
            progress.tries(pc);
        }
    }

    /// What has been recorded for the loaded vCPU is to be carried out before it is entered: somebody was answered, or it is its own.
    pub fn owes_fences(&mut self) {
        if let Some(id) = self.loaded
            && let Some(progress) = self.residents[id].as_deref_mut().and_then(|it| it.state.progress())
        {
            progress.owes();
        }
    }

    /// All that was recorded for the running vCPU has been carried out.
    pub fn has_fenced(&mut self, id: VcpuId) {
        if let Some((progress, _, stint)) = self.progress(id) {
            progress.settles(stint);
        }
    }

    /// Others want this core to look at a vCPU. If it is the running one, which isn't to do more than to fence, and it is amid an instruction, they are told to wait.
    pub fn puts_off_fences(&mut self, id: VcpuId) -> bool {
        let may_wait = self.loaded == Some(id)
            && self.scheduler.running() == Some(id)
            && self.machine.vcpu(id).requests.wanted() == Requests::FENCE.bits()
            && self.progress(id).is_some_and(|(progress, pc, stint)| progress.puts_off(pc, stint));
        if may_wait {
            self.backlog.put_off.insert(id);
        }
        may_wait
    }

    /// A vCPU is about to be entered: those who have been [put off](Self::puts_off_fences) have their turns a while later, whatever becomes of it. (One that has gone to another core meanwhile has what is
    /// wanted of it in its words.)
    #[inline(always)]
    pub fn resume_put_off(&mut self) {
        if !self.backlog.put_off.is_empty() {
            self.backlog.unread |= core::mem::replace(&mut self.backlog.put_off, VcpuSet::EMPTY);
            self.look_again(clock::now() + self.guard);
        }
    }

    /// The vCPU is about to be entered. Is what is recorded left for later, as who wants it waits?
    pub fn leaves_fences(&mut self, id: VcpuId) -> bool {
        self.progress(id).is_some_and(|(progress, pc, stint)| progress.waits(pc, stint))
    }

    /// Also the address of its instruction, and since when it has run without a break, which tells its [stints](Progress) apart: when it sleeps in the hart it has a break, too.
    fn progress(&mut self, id: VcpuId) -> Option<(&mut Progress, u64, u64)> {
        let since = self.since;
        let state = self.state(id);
        let pc = state.pc();
        state.progress().map(|progress| (progress, pc, since))
    }
}
