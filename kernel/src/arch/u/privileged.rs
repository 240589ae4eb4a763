//! Instructions of a guest's kernel that trap in user mode, carried out.
use ainori_limits::cause::exception;
use ainori_supervisor::{Outcome, Privileged};

use super::VcpuState;
use super::hart::program_timer;
use super::shadow::{AddressSpaceAccess, GuestFence};
use super::trap::{Exception, Trap, fetch, value};
use crate::arch::clock;
use crate::stats::Exit;

const ILLEGAL_INSTRUCTION: u64 = exception::ILLEGAL_INSTRUCTION as u64;

impl VcpuState {
    /// The hart, in user mode, has found an instruction illegal. Firmware tells which in `stval`, or nothing.
    #[inline]
    pub(super) fn privileged(&mut self) -> Trap {
        let bits = match value() as u32 {
            0 => match fetch(self, ILLEGAL_INSTRUCTION) {
                Some(bits) => bits,
                None => return Trap::Again,
            },
            bits => bits,
        };
        let instruction = Privileged::decode(bits);
        if let Privileged::Csr(instruction) = instruction {
            let source = instruction.source().map_or(0, |number| self.register(number));
            let now = clock::now();
            let outcome =
                self.registers_of_kernel().with(|registers| registers.access(instruction, source, now));
            match outcome {
                Ok(Outcome::Done { old, effects }) => {
                    self.set_register(instruction.rd(), old);
                    self.skip(Privileged::LENGTH);
                    if !effects.is_none() {
                        self.is_settled = false;
                        program_timer();
                    }
                    return Trap::Done(Exit::Privileged);
                }
                Ok(Outcome::AddressSpace(access)) => {
                    return Trap::AddressSpace(AddressSpaceAccess::new(access, instruction.rd()));
                }
                // Of those that the guest may read, the hart has told it itself: `scounteren`.
                Ok(Outcome::Counter(_) | Outcome::Unit(_)) | Err(_) => {}
            }
            return self.unit_or_illegal(bits);
        }
        if !self.registers_of_kernel().with(|registers| registers.allows(instruction)) {
            return self.unit_or_illegal(bits);
        }
        match instruction {
            Privileged::Return => {
                if let Some(pc) = self.registers_of_kernel().with(|registers| registers.sret()) {
                    self.context.pc = pc;
                    self.is_settled = false;
                }
                let to_user = !self.is_in_kernel();
                if self.watches_returns { Trap::KernelReturn { to_user } } else { Trap::Done(Exit::Return) }
            }
            Privileged::WaitForInterrupt => {
                self.skip(Privileged::LENGTH);
                // What it has pending is in no hart, so that none that waits would be woken by it.
                if self.world.is_interrupted() { Trap::Done(Exit::Wfi) } else { Trap::Wait }
            }
            Privileged::Fence { address, asid } | Privileged::Invalidate { address, asid } => {
                let operand = |number: u8| (number != 0).then(|| self.register(number));
                Trap::Fence(GuestFence::new(operand(address), operand(asid)))
            }
            // What they order is done at once. A wait that ends at once is one.
            Privileged::FenceBeforeInvalidations
            | Privileged::FenceAfterInvalidations
            | Privileged::WaitOnReservation
            | Privileged::WaitOnReservationShortly => {
                self.skip(Privileged::LENGTH);
                Trap::Done(Exit::Privileged)
            }
            Privileged::Csr(_) | Privileged::Other => self.unit_or_illegal(bits),
        }
    }

    /// The use of a unit that isn't loaded, or the guest's own affair.
    #[inline(never)]
    fn unit_or_illegal(&mut self, bits: u32) -> Trap {
        if self.world.needs_extensions(&self.context) {
            return Trap::Extensions;
        }
        Trap::Illegal(Exception { cause: ILLEGAL_INSTRUCTION, value: bits.into() })
    }
}
