//! Traps that the hypervisor gives a guest.
use super::VcpuState;
use super::trap::{Access, AccessKind, Exception};
use ainori_limits::cause::exception;
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

    /// Gives the loaded guest the access fault that it would have got for this access from a machine of its own, which has nothing at the address.
    ///
    /// False if it has no trap handler that it could reach.
    pub fn deliver_access_fault(&mut self, access: &Access) -> bool {
        let cause = match access.kind() {
            AccessKind::Fetch if self.is_at_trap_vector() => return false,
            AccessKind::Fetch => exception::FETCH_ACCESS,
            AccessKind::Load => exception::LOAD_ACCESS,
            AccessKind::Store => exception::STORE_ACCESS,
        };
        self.deliver(Exception { cause: cause.into(), value: access.value })
    }

    /// Is the loaded vCPU at the first instruction of its trap handler?
    fn is_at_trap_vector(&self) -> bool {
        self.context.pc == self.registers_of_kernel().with(|registers| registers.stvec()) & !0b11
    }
}
