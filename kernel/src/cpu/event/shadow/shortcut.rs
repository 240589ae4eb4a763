//! What a core has for the short way of what a guest with a shadow does most.
use crate::arch::shadow::AddressSpaceWrite;
use crate::arch::{VcpuState, clock};
use crate::cpu::Cpu;
use crate::stats::Exit;

impl Cpu {
    /// The running vCPU goes to another address space, which it does so often that it isn't to go the usual way of a trap: carries that out, if it is all that there is to do, and the vCPU goes on with
    /// these registers. It takes less than the way back to a guest from anything else, so neither a
    /// deadline nor an interrupt is looked for: both interrupt the guest.
    #[inline(always)]
    pub fn take_shortcut(&mut self, write: AddressSpaceWrite) -> Option<*mut VcpuState> {
        let vcpu = self.scheduler.running().filter(|_| self.pending.is_empty())?;
        let resident = self.residents[vcpu].as_deref_mut().filter(|resident| resident.due == 0)?;
        let began = clock::now();
        if !resident.state.changes_address_space(write) {
            return None;
        }
        let state = &raw mut resident.state;
        self.entered = began;
        self.note_exit(vcpu, Exit::AddressSpace);
        self.note_irqs_off(Exit::AddressSpace, clock::now());
        Some(state)
    }
}
