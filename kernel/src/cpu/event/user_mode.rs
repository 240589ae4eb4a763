//! What a core has for guests whose kernels run in user mode.
use ainori_sched::VcpuId;

use crate::arch::context::{begin_again, enter_guest};
use crate::arch::trap::{Exception, Shortcut};
use crate::arch::{clock, hart};
use crate::cpu::Cpu;
use crate::guest::{fault, translation};
use crate::stats::Exit;

use super::{conclude_event, handle_exception, handle_nothing};

impl Cpu {
    /// Something is to be decided behind a trap.
    #[cold]
    fn conclude_exception(&mut self, vcpu: VcpuId, exit: Exit) -> ! {
        // As in `handle_exception`.
        self.mailbox.enter();
        hart::clear_software_interrupt();
        self.note_exit(vcpu, exit);
        self.pause_if_long(exit);
        conclude_event(self, exit)
    }

    /// A trap of the guest's own, which comes here as all do.
    pub(super) fn hand_over_own(&mut self, vcpu: VcpuId, exception: Exception) -> Exit {
        if self.state(vcpu).deliver(exception) {
            Exit::GuestTrap
        } else {
            fault::stop(self, vcpu, fault::What::Unhandled, exception)
        }
    }
}

/// The running vCPU has trapped for what takes but a step: the short form of [`handle_exception`](super::handle_exception). Where it takes more, that is what comes; and shortly before a
/// deadline, as a step is longer than the rest until then may be.
pub fn handle_shortcut(cpu: &mut Cpu, shortcut: Shortcut) -> ! {
    cpu.entered = clock::now();
    cpu.busy_since = cpu.entered;
    if cpu.is_deadline_near(cpu.entered) {
        handle_exception(cpu)
    }
    let Some(vcpu) = cpu.scheduler.running() else { handle_nothing(cpu) };
    let exit = match shortcut {
        Shortcut::PageFence(fence) => translation::page_fence(cpu, vcpu, fence),
        Shortcut::AddressSpace(space) if cpu.state(vcpu).enter_known_address_space(space) => {
            Exit::AddressSpace
        }
        Shortcut::AddressSpace(_) => handle_exception(cpu),
    };
    if let Some(state) = cpu.return_at_once(vcpu, exit) {
        // SAFETY: the vCPU whose state this is was left in the hart.
        unsafe { enter_guest(state) }
    }
    cpu.conclude_exception(vcpu, exit)
}

/// The vCPU that was to be entered isn't ready for it yet: makes it so, as long as nothing more urgent comes up, and the core looks once more what there is to do.
///
/// # Safety
/// `cpu` is this core's, and nobody needs any more what is on the stack.
pub unsafe fn begin_later(cpu: *mut Cpu) -> ! {
    // SAFETY: as the caller says. The reference ends before the stack is left.
    let core = unsafe { &mut *cpu };
    core.mailbox.enter();
    hart::clear_software_interrupt();
    if let Some(vcpu) = core.scheduler.running() {
        let mut is_over = core.gives_way();
        // BOUND: what a view takes: a few tables, which may have to be taken from somebody and cleared. Before each step is a preemption point: what led here, a switch perhaps, isn't to be
        // added to it, nor is what follows.
        while !is_over {
            is_over = core.state(vcpu).make_ready() || core.stops_between_steps();
        }
    }
    // SAFETY: as the caller says.
    unsafe { begin_again(cpu.cast()) }
}

/// The vCPU that was to be entered takes an interrupt first, and its programs' traps come to the policy.
///
/// # Safety
/// `cpu` is this core's, and nobody else refers to it.
pub unsafe fn confine(cpu: *mut Cpu, interrupt: Exception) -> ! {
    // SAFETY: as the caller says.
    let cpu = unsafe { &mut *cpu };
    cpu.mailbox.enter();
    hart::clear_software_interrupt();
    let exit = match cpu.scheduler.running() {
        Some(vcpu) => cpu.confined_trap(vcpu, interrupt),
        None => Exit::Backlog,
    };
    // As if it had been entered, and had trapped: with many of them one after the other, interrupts are looked for between two.
    cpu.busy_since = clock::now();
    cpu.pause_if_long(exit);
    conclude_event(cpu, exit)
}
