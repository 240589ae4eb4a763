//! Traps that the hypervisor gives a guest, and returns of a guest that it carries out.
use super::VcpuState;
use super::trap::{Exception, INTERRUPT};
use crate::arch::riscv::csr::{self, hstatus, status};

impl VcpuState {
    /// True if the loaded vCPU takes an interrupt that it has enabled as soon as it is entered.
    #[inline(always)]
    pub fn takes_interrupts(&self) -> bool {
        !self.is_in_kernel() || csr::read!(csr::VSSTATUS) & status::SIE != 0
    }

    /// Gives the loaded guest a trap, as the hart would have done had it been delegated.
    ///
    /// False if the guest has no trap vector yet (reset value), so that it can't take one.
    pub fn deliver(&mut self, exception: Exception) -> bool {
        const VECTORED: u64 = 1;
        let Exception { cause, value } = exception;
        let vector = csr::read!(csr::VSTVEC);
        if vector == 0 {
            return false;
        }
        let mut guest = csr::read!(csr::VSSTATUS);
        let from_supervisor = self.is_in_kernel();
        let enabled = guest & status::SIE != 0;
        guest &= !(status::SIE | status::SPIE | status::SPP);
        guest |= if enabled { status::SPIE } else { 0 } | if from_supervisor { status::SPP } else { 0 };
        let context = &mut self.context;
        // SAFETY: concerns only the guest.
        unsafe {
            csr::write!(csr::VSSTATUS, guest);
            csr::write!(csr::VSEPC, context.pc);
            csr::write!(csr::VSCAUSE, cause);
            csr::write!(csr::VSTVAL, value);
        }
        let offset =
            if cause & INTERRUPT != 0 && vector & VECTORED != 0 { 4 * (cause & !INTERRUPT) } else { 0 };
        context.pc = (vector & !0b11).wrapping_add(offset);
        context.sstatus |= status::SPP;
        context.hstatus |= hstatus::SPVP;
        true
    }

    /// Is the loaded vCPU at the first instruction of its trap handler?
    pub(in crate::arch) fn is_at_trap_vector(&self) -> bool {
        self.context.pc == csr::read!(csr::VSTVEC) & !0b11
    }

    /// Carries out the SRET at which the loaded guest has trapped. True if it returns to user mode.
    pub(super) fn carry_out_return(&mut self) -> bool {
        let context = &mut self.context;
        let mut guest = csr::read!(csr::VSSTATUS);
        let to_user = guest & status::SPP == 0;
        let enable = guest & status::SPIE != 0;
        guest &= !(status::SIE | status::SPP);
        guest |= status::SPIE | if enable { status::SIE } else { 0 };
        // SAFETY: concerns only the guest.
        unsafe { csr::write!(csr::VSSTATUS, guest) };
        context.pc = csr::read!(csr::VSEPC);
        if to_user {
            context.sstatus &= !status::SPP;
            context.hstatus &= !hstatus::SPVP;
        }
        to_user
    }
}
