//! What a core has for the short ways of what a guest with a shadow does most.
use crate::arch::shadow::{AddressFence, AddressSpaceWrite, Answer, PageFault};
use crate::arch::{VcpuState, clock};
use crate::cpu::Cpu;
use crate::guest::translation::GuestMemory;
use crate::stats::Exit;

impl Cpu {
    /// The running vCPU goes to another address space, which it does so often that it isn't to go the usual way of a trap: carries that out, if it is all that there is to do, and the vCPU goes on with
    /// these registers. It takes less than the way back to a guest from anything else, so neither a
    /// deadline nor an interrupt is looked for: both interrupt the guest.
    #[inline(always)]
    pub fn take_shortcut(&mut self, write: AddressSpaceWrite) -> Option<*mut VcpuState> {
        self.carry_out_at_once(clock::now(), Exit::AddressSpace, |state| state.changes_address_space(write))
    }

    /// The running vCPU has a page fault that may be its shadow's: answers it, if there is nothing else to do, and the vCPU goes on with these registers.
    /// If not, steps of it may have been done, and the present trap is to be seen to as any other; it may have become a guest-page fault by that.
    ///
    /// A step takes no longer than a section may. So before the first one interrupts aren't looked for, as above, but nothing is begun shortly before a deadline; between two, both are.
    #[inline(always)]
    pub fn answer_at_once(&mut self, fault: PageFault) -> Option<*mut VcpuState> {
        let vcpu = self.scheduler.running().filter(|_| self.pending.is_empty())?;
        let began = clock::now();
        if self.is_deadline_near(began) {
            return None;
        }
        self.entered = began;
        // BOUND: what one page takes, as where it is answered in the usual way.
        let exit = loop {
            let memory = GuestMemory(&self.machine.guest_of(vcpu).space);
            let resident = self.residents[vcpu].as_deref_mut().filter(|resident| resident.due == 0)?;
            let state = &mut resident.state;
            if !state.has_shadow() {
                return None;
            }
            match state.answer(fault, &memory) {
                Answer::Again => break Exit::Shadow,
                Answer::Guest(exception) if state.deliver(exception) => break Exit::PageFault,
                Answer::NotYet if !self.stops_between_steps() => {}
                Answer::NotYet | Answer::Guest(_) | Answer::Elsewhere => {
                    // What has been done so far isn't to be added to what comes.
                    if !self.gives_way() {
                        return None;
                    }
                    break Exit::Shadow;
                }
            }
        };
        if exit == Exit::Shadow {
            self.is_amid_instruction(vcpu);
        }
        self.note_exit(vcpu, exit);
        self.note_irqs_off(exit, clock::now());
        Some(self.state(vcpu))
    }

    /// The running vCPU fences an address, which is one step: carries that out, if there is nothing else to do, and the vCPU goes on with these registers. Interrupts and deadlines as for a page fault.
    #[inline(always)]
    pub fn fence_at_once(&mut self, fence: AddressFence) -> Option<*mut VcpuState> {
        let began = clock::now();
        if self.is_deadline_near(began) {
            return None;
        }
        self.carry_out_at_once(began, Exit::Fence, |state| state.fences_address(fence))
    }

    /// What the running vCPU has trapped by is done, and it goes on with these registers; unless there is something else to do, or `carry_out` does nothing and says so.
    #[inline(always)]
    fn carry_out_at_once(
        &mut self,
        began: u64,
        exit: Exit,
        carry_out: impl FnOnce(&mut VcpuState) -> bool,
    ) -> Option<*mut VcpuState> {
        let vcpu = self.scheduler.running().filter(|_| self.pending.is_empty())?;
        let resident = self.residents[vcpu].as_deref_mut().filter(|resident| resident.due == 0)?;
        if !carry_out(&mut resident.state) {
            return None;
        }
        let state = &raw mut resident.state;
        self.entered = began;
        self.note_exit(vcpu, exit);
        self.note_irqs_off(exit, clock::now());
        Some(state)
    }
}
