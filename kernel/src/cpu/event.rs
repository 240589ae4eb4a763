//! The event loop of a core: a trap comes in, and its service ends with [`resume_guest`], given the context to go on with.
use ainori_sched::VcpuId;

use super::Cpu;
use crate::arch::context::{begin_again, resume_guest};
use crate::arch::guest_access::fetch_instruction;
use crate::arch::trap::GuestPageFault;
use crate::arch::{Context, Exception, Interrupt, Trap, csr, hart, trap, world};
use crate::guest::{fault, mmio, sbi};
use crate::stats::Exit;

/// Called by the trap entry, on the core's empty stack, with the guest's registers saved; and without a trap when the core begins, or
/// nobody was entered at the end of the last event ([`begin_again`]).
///
/// It doesn't return: so the compiler has no reason to keep registers for a caller, which has none in use.
pub extern "C" fn handle_trap(cpu: &mut Cpu, has_trapped: bool) -> ! {
    let exit = match cpu.scheduler.running() {
        Some(vcpu) if has_trapped => {
            cpu.entered = csr::time();
            cpu.mailbox.enter();
            match serve_trap(cpu, vcpu) {
                // SAFETY: the world of the vCPU that the context belongs to was left where it is.
                Ok(context) => unsafe { resume_guest(context) },
                Err(exit) => exit,
            }
        }
        _ => {
            // However often nobody is entered, interrupts are seen to, and what is due is done.
            cpu.look_for_interrupts();
            Exit::Backlog
        }
    };
    let Some(context) = cpu.dispatch() else {
        // SAFETY: this is the core's stack, which is left for good here.
        unsafe { begin_again(core::ptr::from_mut(cpu).cast()) }
    };
    cpu.note_stretch(exit, csr::time());
    // SAFETY: the world of the vCPU that the context belongs to has been loaded.
    unsafe { resume_guest(context) }
}

/// Serves a trap of the running vCPU. Returns its registers if it goes on at once, else what kind of trap it was: then there is
/// something to decide.
#[inline(always)]
fn serve_trap(cpu: &mut Cpu, vcpu: VcpuId) -> Result<*mut Context, Exit> {
    // The timer is how an RTOS is woken: its path comes first, and all others stay out of its way.
    let exit = if trap::is_timer() {
        cpu.take_alarm()
    } else if trap::is_software() && cpu.answers_ring_at_once(vcpu) {
        return Ok(cpu.go_on(vcpu, Exit::Ipi));
    } else if cpu.put_off_trap() {
        Exit::PutOff
    } else {
        let exit = cpu.take_trap(vcpu);
        if exit == Exit::Spin && cpu.is_unaffected(vcpu) {
            return Ok(cpu.go_on(vcpu, exit));
        }
        exit
    };
    cpu.note_exit(vcpu, exit);
    // These two are on the RTOS's way, and take little themselves.
    if !matches!(exit, Exit::Timer | Exit::Wfi) {
        cpu.pause_if_long(exit);
    }
    Err(exit)
}

const WFI: u32 = 0x1050_0073;
const WRS_NTO: u32 = 0x00d0_0073;
const SRET: u32 = 0x1020_0073;

impl Cpu {
    #[inline(always)]
    #[expect(clippy::indexing_slicing, reason = "there is a place for each `Exit`")]
    fn note_exit(&mut self, vcpu: VcpuId, exit: Exit) {
        // If it was found spinning, it may have been given to another core by what came behind.
        let Some(resident) = &mut self.residents[vcpu] else { return };
        resident.counters.exits[exit as usize] += 1;
        self.trace_trap(vcpu, exit);
    }

    /// A preemption point between a trap that took a while and what follows from it.
    #[inline(always)]
    fn pause_if_long(&mut self, exit: Exit) {
        let now = csr::time();
        if now - self.entered >= self.guard / 4 {
            self.end_stretch(exit, now);
            self.look_for_interrupts();
        }
    }

    /// Has the trap left everything as it was? Then there is nothing to decide, and the core may leave at once.
    #[inline(never)]
    fn is_unaffected(&self, vcpu: VcpuId) -> bool {
        self.scheduler.running() == Some(vcpu)
            && !self.deadlines_changed
            && !self.backlog.due
            && hart::pending_interrupts() == 0
            && self.mailbox.leave()
    }

    /// The end of a trap that has changed nothing.
    #[inline(never)]
    fn go_on(&mut self, vcpu: VcpuId, exit: Exit) -> *mut Context {
        self.note_exit(vcpu, exit);
        self.note_stretch(exit, csr::time());
        self.context(vcpu)
    }

    /// Any trap but the timer's.
    #[inline(never)]
    fn take_trap(&mut self, vcpu: VcpuId) -> Exit {
        match Trap::current() {
            Trap::Interrupt(Interrupt::Timer) => self.take_alarm_late(),
            Trap::Interrupt(Interrupt::Software) => self.take_ring(),
            Trap::Interrupt(Interrupt::External) => self.take_external(),
            Trap::Exception(Exception::EnvironmentCall) => sbi::call(self, vcpu),
            Trap::Exception(Exception::VirtualInstruction) => self.virtual_instruction(vcpu),
            Trap::Exception(cause @ (Exception::LoadFault | Exception::StoreFault)) => {
                mmio::access(self, vcpu, cause)
            }
            Trap::Exception(cause @ Exception::FetchFault) => {
                fault::wild(self, vcpu, fault::What::Fetch, cause, &GuestPageFault::current())
            }
            Trap::Exception(Exception::IllegalInstruction) => self.illegal_instruction(vcpu),
            Trap::Confined(cause) => self.confined_trap(vcpu, cause),
            Trap::Unknown(cause) => fault::stop(self, vcpu, fault::What::Unknown, cause, trap::value()),
        }
    }

    /// WFI, WRS.NTO and, where it is watched, SRET, which the hypervisor lets trap; any other such instruction is one for hypervisors, of which the
    /// guest has none, so it gets an illegal-instruction exception.
    fn virtual_instruction(&mut self, vcpu: VcpuId) -> Exit {
        let in_kernel = world::is_in_kernel(self.context(vcpu));
        match self.trapped_instruction(vcpu) {
            WFI if in_kernel => {
                self.resident(vcpu).context.pc += 4;
                self.wait_for_interrupt(vcpu);
                Exit::Wfi
            }
            WRS_NTO => {
                self.resident(vcpu).context.pc += 4;
                self.note_spin(vcpu);
                Exit::Spin
            }
            SRET if in_kernel => {
                self.guest_return(vcpu);
                Exit::Return
            }
            bits => self.hand_over_illegal(vcpu, bits),
        }
    }

    /// The instruction that trapped. A hart may leave it out of `stval` (QEMU does so for WRS.NTO).
    fn trapped_instruction(&mut self, vcpu: VcpuId) -> u32 {
        match trap::value() as u32 {
            0 => fetch_instruction(self.context(vcpu).pc).unwrap_or(0),
            bits => bits,
        }
    }

    /// The use of a register file that was switched off, or the guest's own affair.
    fn illegal_instruction(&mut self, vcpu: VcpuId) -> Exit {
        let resident = self.resident(vcpu);
        if resident.world.needs_extensions(&resident.context) {
            self.reload_extensions(vcpu);
            return Exit::Extensions;
        }
        let bits = self.trapped_instruction(vcpu);
        self.hand_over_illegal(vcpu, bits)
    }

    fn hand_over_illegal(&mut self, vcpu: VcpuId, bits: u32) -> Exit {
        const ILLEGAL_INSTRUCTION: u64 = Exception::IllegalInstruction.code();
        if world::deliver(&mut self.resident(vcpu).context, ILLEGAL_INSTRUCTION, u64::from(bits)) {
            Exit::Illegal
        } else {
            fault::stop(self, vcpu, fault::What::IllegalInstruction, ILLEGAL_INSTRUCTION, u64::from(bits))
        }
    }

    /// The guest has nothing to do until an interrupt: the vCPU sleeps unless one is there already.
    pub fn wait_for_interrupt(&mut self, vcpu: VcpuId) {
        if world::loaded_wakeful_interrupts() == 0 {
            // Its deadline is read from memory while it sleeps.
            self.resident(vcpu).world.save();
            self.rest(vcpu);
        }
    }
}
