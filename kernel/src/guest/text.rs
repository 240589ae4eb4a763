//! Privileged instructions in a guest's text that breakpoints stand for ([`ainori_text`]), where its kernel runs in user mode.
use core::sync::atomic::{AtomicU16, Ordering};

use ainori_guest::Host;
use ainori_sbi::{Range, RemoteFence};
use ainori_sched::VcpuId;
use ainori_space::GuestPhysical;
use ainori_text::{Advice, Code, Look, Progress, is_own_breakpoint};

use super::caller::Caller;
use super::space::Space;
use super::translation::GuestMemory;
use crate::arch::fence as hart_fence;
use crate::arch::trap::{Access, Exception, Trap, privileged_instruction};
use crate::cpu::Cpu;
use crate::stats::Exit;

impl GuestMemory<'_> {
    fn half(&self, at: GuestPhysical) -> Option<&AtomicU16> {
        let host = self.main(at).filter(|host| host.is_multiple_of(2))?;
        // SAFETY: as of a word (`Memory`): it lies in the guest's memory, which no Rust object shares, and is read and changed by atomic accesses alone.
        Some(unsafe { AtomicU16::from_ptr(host as *mut u16) })
    }
}

impl Code for GuestMemory<'_> {
    fn load(&self, at: GuestPhysical) -> Option<u16> {
        Some(self.half(at)?.load(Ordering::Relaxed))
    }

    fn store(&self, at: GuestPhysical, half: u16) {
        if let Some(place) = self.half(at) {
            place.store(half, Ordering::Release);
        }
    }
}

/// The running vCPU has trapped: if it was for a privileged instruction, it may be for the last time. `Some`: the vCPU is to trap again when all have forgotten what they could
/// load and store there.
pub fn consider(cpu: &mut Cpu, vcpu: VcpuId) -> Option<Exit> {
    let bits = privileged_instruction(cpu.state(vcpu))?;
    let guest = cpu.machine.guest_of(vcpu);
    let text = &guest.space.text;
    if !text.is_on() {
        return None;
    }
    let memory = GuestMemory(&guest.space);
    let (at, _) = cpu.state(vcpu).locate(&memory)?;
    // Pages that become text, and a fence for all of the guest's vCPUs, take all of a section. The instruction traps again.
    if cpu.gives_way() {
        return Some(Exit::Privileged);
    }
    match text.note(at, bits, cpu.machine.vcpu(vcpu).index as u8, &memory) {
        Advice::Nothing => None,
        Advice::Forget => {
            forget_everywhere(cpu, vcpu);
            Some(Exit::Privileged)
        }
    }
}

/// The running vCPU is at a breakpoint: what it stands for, if it isn't the guest's own.
pub fn breakpoint(cpu: &mut Cpu, vcpu: VcpuId, exception: Exception) -> Result<Trap, Exit> {
    let guest = cpu.machine.guest_of(vcpu);
    let memory = GuestMemory(&guest.space);
    let state = cpu.state(vcpu);
    // If the guest has taken the page away meanwhile, it gets its own fault when it comes back.
    let Some((at, is_global)) = state.locate(&memory) else { return Err(Exit::Privileged) };
    match guest.space.text.look(at) {
        Look::Instruction(bits) => return Ok(state.break_at(bits, is_global)),
        // It traps again.
        Look::Busy => return Err(Exit::Privileged),
        Look::Nothing => {}
    }
    if is_own_breakpoint(at, &memory) {
        return Ok(Trap::own(cpu.state(vcpu), exception));
    }
    // It was put back, and this hart has fetched it before that.
    hart_fence::instructions();
    Err(Exit::Privileged)
}

/// The present trap is an access that the guest's tables allow, to its main memory: so that is text, or was it a moment ago.
pub fn is_memory(cpu: &Cpu, vcpu: VcpuId) -> bool {
    GuestMemory(&cpu.machine.guest_of(vcpu).space).main(GuestPhysical(Access::again().address)).is_some()
}

/// So that it can be made, the instructions there are put back. The vCPU makes it again.
pub fn give_up(cpu: &mut Cpu, vcpu: VcpuId) -> Exit {
    // What has been done to find that out isn't to be added to the first step.
    if cpu.gives_way() {
        return Exit::Shadow;
    }
    let space = &cpu.machine.guest_of(vcpu).space;
    let at = GuestPhysical(Access::again().address);
    step_by_step(cpu, vcpu, |hart| space.text.give_up(at, hart, &GuestMemory(space)));
    Exit::Shadow
}

/// The running vCPU is about to be able to load what it may only fetch: no instruction of its guest is replaced any more. It makes its own once more.
pub fn switch_off(cpu: &mut Cpu, vcpu: VcpuId) -> Exit {
    let space = &cpu.machine.guest_of(vcpu).space;
    step_by_step(cpu, vcpu, |hart| space.text.switch_off(hart, &GuestMemory(space)));
    Exit::Privileged
}

/// Does steps until there are no more, or something else is to be done first. The vCPU comes back for the rest, also where that is long: else nobody would be entered for as long.
fn step_by_step(cpu: &mut Cpu, vcpu: VcpuId, step: impl Fn(u8) -> Progress) {
    /// Half of what it takes to give up a page: each looks at a few places, of all that there are.
    const MOST_STEPS: u32 = 16;
    let hart = cpu.machine.vcpu(vcpu).index as u8;
    // BOUND: `MOST_STEPS`. Between two steps is a preemption point, where an interrupt ends it.
    for _ in 0..MOST_STEPS {
        match step(hart) {
            Progress::Done => return,
            Progress::Step if cpu.stops_between_steps() => return,
            Progress::Step => {}
            Progress::Forget => return forget_everywhere(cpu, vcpu),
        }
    }
}

/// A call of the running vCPU is about to have a byte stored in its guest's memory. True: there was an instruction, of which all vCPUs are to forget what they know when the call is over ([`forget_everywhere`]).
pub fn make_way(space: &Space, at: GuestPhysical) -> bool {
    space.text.make_way(at, &GuestMemory(space))
}

/// All of the guest's vCPUs forget what they have, and know, of its memory. The running one goes on, and traps again, when they have.
pub fn forget_everywhere(cpu: &mut Cpu, vcpu: VcpuId) {
    let all = Range { start: 0, size: u64::MAX };
    Caller::new(cpu, vcpu).remote_fence(u64::MAX, RemoteFence::Translations(all, None));
}
