//! The short ways of what a guest with a shadow does most.
use crate::arch::context::enter_guest;
use crate::arch::shadow::{AddressFence, AddressSpaceWrite, PageFault, Shortcut};
use crate::cpu::Cpu;
use crate::cpu::event::handle_exception;

/// Called by the trap entry for all but the core's timer.
pub extern "C" fn trapped(cpu: &mut Cpu) -> ! {
    match Shortcut::current() {
        Some(Shortcut::AddressSpace(write)) => try_shortcut(cpu, write),
        Some(Shortcut::Fence(fence)) => try_fence(cpu, fence),
        None => match PageFault::current() {
            Some(fault) => try_answer(cpu, fault),
            None => handle_exception(cpu),
        },
    }
}

/// Out of line, so that all others are asked for no more than that.
#[inline(never)]
fn try_shortcut(cpu: &mut Cpu, write: AddressSpaceWrite) -> ! {
    if let Some(state) = cpu.take_shortcut(write) {
        // SAFETY: the vCPU whose state this is was left in the hart.
        unsafe { enter_guest(state) }
    }
    handle_exception(cpu)
}

/// Likewise.
#[inline(never)]
fn try_answer(cpu: &mut Cpu, fault: PageFault) -> ! {
    if let Some(state) = cpu.answer_at_once(fault) {
        // SAFETY: as above.
        unsafe { enter_guest(state) }
    }
    handle_exception(cpu)
}

/// Likewise.
#[inline(never)]
fn try_fence(cpu: &mut Cpu, fence: AddressFence) -> ! {
    if let Some(state) = cpu.fence_at_once(fence) {
        // SAFETY: as above.
        unsafe { enter_guest(state) }
    }
    handle_exception(cpu)
}
