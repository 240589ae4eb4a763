//! Traps that the hypervisor gives a guest.
use super::VcpuState;
use super::trap::Exception;
use ainori_supervisor::Cause;

impl VcpuState {
    /// True if the loaded vCPU takes an interrupt that it has enabled as soon as it is entered.
    #[inline(always)]
    pub fn takes_interrupts(&self) -> bool {
        self.registers_of_kernel().with(|registers| registers.takes_interrupts())
    }

    /// Gives the loaded guest a trap, as its hart would have done.
    ///
    /// False if the guest has no trap vector yet (reset value), so that it can't take one.
    pub fn deliver(&mut self, exception: Exception) -> bool {
        let Exception { cause, value } = exception;
        let pc = self.context.pc;
        let next = self.registers_of_kernel().with(|registers| {
            registers.has_handler().then(|| registers.trap(Cause::from_bits(cause), value, pc))
        });
        next.is_some_and(|next| {
            self.context.pc = next;
            self.is_settled = false;
            true
        })
    }

    /// Is the loaded vCPU at the first instruction of its trap handler?
    pub(in crate::arch) fn is_at_trap_vector(&self) -> bool {
        self.context.pc == self.registers_of_kernel().with(|registers| registers.stvec()) & !0b11
    }
}
