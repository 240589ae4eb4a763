//! Instructions of a guest's kernel that trap in user mode, carried out.
use ainori_devices::zicsr::CsrAccess;
use ainori_limits::cause::exception;
use ainori_shadow::Memory;
use ainori_space::GuestPhysical;
use ainori_supervisor::{Effects, Outcome, Privileged};
use ainori_text::BREAKPOINT;

use super::VcpuState;
use super::per_hart::per_hart;
use super::shadow::{AddressSpaceAccess, GuestFence};
use super::timer::program_timer;
use super::trap::{Exception, Trap, cause, fetch, value};
use crate::arch::clock;
use crate::arch::riscv::csr::{self, status};
use crate::stats::Exit;

const ILLEGAL_INSTRUCTION: u64 = exception::ILLEGAL_INSTRUCTION as u64;

/// Instructions with a way of their own.
#[derive(Debug, Clone, Copy)]
pub enum Shortcut {
    /// A fence of an address.
    PageFence(GuestFence),
    /// A write of this to `satp`.
    AddressSpace(u64),
}

impl VcpuState {
    /// The hart, in user mode, has found an instruction illegal. Firmware tells which in `stval`, or nothing.
    #[inline]
    pub(super) fn privileged(&mut self) -> Trap {
        let told = value() as u32;
        let bits = match told {
            // Firmware to which the hart tells nothing has looked itself, later.
            told if is_never_illegal(told) => return Trap::Again,
            told if told != 0 && per_hart().tells_instructions.get() => told,
            told => match fetch(self, ILLEGAL_INSTRUCTION) {
                Some(bits) if may_be(bits, told) => bits,
                // Another hart has put something else there meanwhile, as a breakpoint: the vCPU comes to that.
                Some(_) | None => return Trap::Again,
            },
        };
        self.carry_out(bits)
    }

    /// The vCPU is at a breakpoint: is that known to stand for an instruction that has a way of its own, being frequent, and short mostly?
    #[inline(always)]
    pub(super) fn shortcut(&self) -> Option<Shortcut> {
        if !self.is_in_kernel() {
            return None;
        }
        match Privileged::decode(self.breakpoints.bits_at(self.context.pc)?) {
            Privileged::Fence { address: address @ 1.., asid } => {
                Some(Shortcut::PageFence(self.fence_of(address, asid)))
            }
            Privileged::Csr(instruction) if instruction.number() == csr::SATP && instruction.rd() == 0 => {
                match instruction.access(self.register(instruction.source()?)) {
                    CsrAccess::Write(satp) => Some(Shortcut::AddressSpace(satp)),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// A fence with these registers.
    #[inline(always)]
    fn fence_of(&self, address: u8, asid: u8) -> GuestFence {
        let operand = |number: u8| (number != 0).then(|| self.register(number));
        GuestFence::new(operand(address), operand(asid))
    }

    /// A breakpoint stands for this instruction. (A program that executes what its kernel executes as well comes to it, too.)
    pub fn break_at(&mut self, bits: u32, is_global: bool) -> Trap {
        if self.is_in_kernel() {
            self.breakpoints.learn(self.context.pc, bits, is_global);
        }
        self.carry_out(bits)
    }

    /// Carries out an instruction that traps in user mode.
    #[inline]
    pub(super) fn carry_out(&mut self, bits: u32) -> Trap {
        let instruction = Privileged::decode(bits);
        if let Privileged::Csr(instruction) = instruction {
            let source = instruction.source().map_or(0, |number| self.register(number));
            // A program that tries it is refused below, and has no say in how its kernel runs.
            if instruction.number() == csr::SSTATUS
                && self.is_in_kernel()
                && instruction.change(source).applied_to(0) & status::MXR != 0
                && !self.breakpoints.text().is_off()
            {
                return Trap::ReadsText;
            }
            let outcome = self
                .registers_of_kernel()
                .with(|registers| registers.access(instruction, source, clock::now));
            match outcome {
                Ok(Outcome::Done { old, effects }) => {
                    self.set_register(instruction.rd(), old);
                    self.skip(Privileged::LENGTH);
                    if !effects.is_none() {
                        self.is_settled = false;
                        self.are_rights_told &= !effects.contains(Effects::PROGRAMS);
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
                Trap::Fence(self.fence_of(address, asid))
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

    /// Where the instruction is that it is at, and whether it is there in all address spaces. `None`: the guest has taken it away meanwhile.
    pub fn locate(&self, memory: &impl Memory) -> Option<(GuestPhysical, bool)> {
        self.world.shadow.locate(memory, self.context.pc)
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

const OPCODE: u32 = 0x7f;
const SYSTEM: u32 = 0x73;

/// ECALL, EBREAK or C.EBREAK: who finds that where an illegal instruction was finds what another hart has put there meanwhile, as a breakpoint. The vCPU comes to that.
const fn is_never_illegal(bits: u32) -> bool {
    const BREAK_OR_CALL: u32 = !(1 << 20);
    bits & BREAK_OR_CALL == SYSTEM || bits as u16 == BREAKPOINT
}

/// Can what is at the program counter be the illegal instruction, if the hart has told this one, or nothing, which isn't to be relied on?
const fn may_be(bits: u32, told: u32) -> bool {
    !is_never_illegal(bits) && (told == 0 || bits == told || bits & OPCODE == SYSTEM)
}

const _: () = assert!(
    // MRET, and a write of `cycle`.
    may_be(0x3020_0073, 0) && may_be(0xc000_1073, 0xc000_1073)
        && !may_be(BREAKPOINT as u32, 0)
        // ECALL and EBREAK.
        && is_never_illegal(0x0000_0073) && is_never_illegal(0x0010_0073) && !is_never_illegal(0)
);

/// The privileged instruction that the vCPU, in its kernel, has just trapped for by way of the firmware: one that always does. `None`: it is something else.
pub fn privileged_instruction(state: &VcpuState) -> Option<u32> {
    /// Who may reach a register, in its number (privileged specification, "CSR Address Mapping Conventions"). What user mode reaches as well traps only now and then.
    const PRIVILEGE: u16 = 0b11 << 8;
    if cause() != ILLEGAL_INSTRUCTION || !state.is_in_kernel() {
        return None;
    }
    // Where that isn't to be relied on, memory has something else, which nobody replaces then.
    let bits = value() as u32;
    let is_one = match Privileged::decode(bits) {
        Privileged::Csr(instruction) => instruction.number() & PRIVILEGE != 0,
        instruction => state.registers_of_kernel().with(|registers| registers.allows(instruction)),
    };
    is_one.then_some(bits)
}
