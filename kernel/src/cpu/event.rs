//! The event loop of a core: a trap comes in, and its service ends with [`enter_guest`], given the vCPU to go on with.
use ainori_sched::VcpuId;

use super::Cpu;
use crate::arch::context::{begin_again, enter_guest};
use crate::arch::trap::{Exception, Trap};
use crate::arch::{VcpuState, clock, hart, world};
use crate::guest::{fault, interrupt_file, mmio, sbi, translation};
use crate::stats::Exit;

/// The end of every event that leaves something to decide: chooses the vCPU to go on with, and enters it. `event` is what the event was.
/// For [`Exit::Timer`] it is the beginning, too: the trap entry calls this for the core's timer, on the core's empty stack, with the
/// guest's registers saved.
///
/// The timer is how an RTOS is woken: its path comes first, and all others stay out of its way.
///
/// None of these functions returns, and none has a caller that needs its registers.
pub extern "C" fn conclude_event(cpu: &mut Cpu, event: Exit) -> ! {
    let exit = if event == Exit::Timer {
        cpu.entered = clock::now();
        cpu.busy_since = cpu.entered;
        cpu.mailbox.enter();
        let exit = cpu.take_alarm();
        if let Some(vcpu) = cpu.scheduler.picked() {
            cpu.note_exit(vcpu, exit);
        }
        if exit != Exit::Timer || cpu.is_crowded {
            cpu.pause_if_long(exit);
        }
        exit
    } else {
        event
    };
    let Some(state) = cpu.dispatch() else {
        // SAFETY: this is the core's stack, which is left for good here.
        unsafe { begin_again(core::ptr::from_mut(cpu).cast()) }
    };
    cpu.note_irqs_off(exit, clock::now());
    // SAFETY: the vCPU whose state this is has been loaded.
    unsafe { enter_guest(state) }
}

/// Called by the trap entry for all else: what the running vCPU did, IPIs and devices. The vCPU goes on at once if that has changed nothing for
/// the core.
pub extern "C" fn handle_exception(cpu: &mut Cpu) -> ! {
    cpu.entered = clock::now();
    cpu.busy_since = cpu.entered;
    let Some(vcpu) = cpu.scheduler.running() else { handle_nothing(cpu) };
    let exit = if cpu.replay_trap() { Exit::PutOff } else { cpu.take_trap(vcpu) };
    if let Some(state) = cpu.return_at_once(vcpu, exit) {
        // SAFETY: the vCPU whose state this is was left in the hart.
        unsafe { enter_guest(state) }
    }
    // Until here the core was away as others see it: who wanted something of it has sent an IPI. What they have sent is seen from here on.
    cpu.mailbox.enter();
    hart::clear_software_interrupt();
    cpu.note_exit(vcpu, exit);
    // These are on the RTOS's way, and take little themselves. (But where a guest's kernel runs in user mode, WFI may be an instruction like others that trap.)
    if !matches!(exit, Exit::Wfi | Exit::PutOff) || cfg!(feature = "no-h") {
        cpu.pause_if_long(exit);
    }
    conclude_event(cpu, exit)
}

/// The core begins, or nobody was entered at the end of the last event ([`begin_again`]): however often that is so, interrupts are seen to, and
/// what is due is done.
pub extern "C" fn handle_nothing(cpu: &mut Cpu) -> ! {
    cpu.note_delay();
    cpu.look_for_interrupts();
    conclude_event(cpu, Exit::Backlog)
}

impl Cpu {
    /// Nobody was entered: since when has somebody been ready here?
    fn note_delay(&mut self) {
        let now = clock::now();
        if self.scheduler.first().is_none() {
            self.busy_since = now;
        }
        // What was done before anybody was ready kept nobody waiting.
        let delay = now - self.busy_since.max(self.nobody_ready_at);
        self.counters.longest_delay = self.counters.longest_delay.max(delay);
    }

    #[inline(always)]
    #[expect(clippy::indexing_slicing, reason = "there is a place for each `Exit`")]
    pub(super) fn note_exit(&mut self, vcpu: VcpuId, exit: Exit) {
        // If it was found spinning, it may have been given to another core by what came behind.
        let Some(resident) = &mut self.residents[vcpu] else { return };
        resident.counters.exits[exit as usize] += 1;
        self.trace_trap(vcpu, exit);
    }

    /// Has the trap left everything as it was? Then there is nothing to decide, and the vCPU goes on with these registers.
    #[inline(always)]
    fn return_at_once(&mut self, vcpu: VcpuId, exit: Exit) -> Option<*mut VcpuState> {
        let is_free = self.pending.is_empty()
            && self.scheduler.running() == Some(vcpu)
            && !self.mailbox.has_mail()
            && hart::pending_own_interrupts().is_empty();
        if !is_free {
            return None;
        }
        match &self.residents[vcpu] {
            Some(resident) if resident.due == 0 => {}
            Some(_) if world::is_interrupted() => self.note_delivery(vcpu),
            _ => return None,
        }
        self.note_exit(vcpu, exit);
        self.note_irqs_off(exit, clock::now());
        Some(self.state(vcpu))
    }

    /// Was the alarm for nothing but a look at hidden housework, which has to wait? Then the vCPU goes on at once: it may have been interrupted between
    /// its own timer and what that is for, and the way through [`Cpu::dispatch`] would take as long again as the look.
    #[inline]
    pub(super) fn return_from_look(&mut self, now: u64) -> Option<*mut VcpuState> {
        let vcpu = self.scheduler.running()?;
        // As none of what is pending is about fences, nobody has been promised one of this vCPU's.
        let is_free = self.later.due() > now
            && self.pending.is_empty()
            && self.residents[vcpu].as_deref().is_some_and(|resident| resident.due == 0);
        if !is_free || !self.puts_off_look(now) {
            return None;
        }
        self.update_and_set_alarm(self.scheduler.turn_end());
        if !self.mailbox.leave() {
            return None;
        }
        self.note_exit(vcpu, Exit::Housekeeping);
        self.trace_taken(vcpu);
        self.note_irqs_off(Exit::Housekeeping, clock::now());
        Some(self.state(vcpu))
    }

    /// The vCPU goes on with an interrupt that was just raised.
    #[inline(never)]
    fn note_delivery(&mut self, vcpu: VcpuId) {
        self.resident(vcpu).note_delivery();
        self.trace_taken(vcpu);
    }

    /// Any trap but the timer's. None of these is counted as that, so that [`conclude_event`] tells them apart.
    #[inline(always)]
    fn take_trap(&mut self, vcpu: VcpuId) -> Exit {
        #[cfg(feature = "no-h")]
        if let Some(exit) = crate::guest::text::consider(self, vcpu) {
            return exit;
        }
        let trap = Trap::current(|| self.state(vcpu));
        #[cfg(feature = "no-h")]
        let trap = match trap {
            Trap::Breakpoint(exception) => match crate::guest::text::breakpoint(self, vcpu, exception) {
                Ok(trap) => trap,
                Err(exit) => return exit,
            },
            trap => trap,
        };
        match trap {
            Trap::Interrupt(which) => self.take_interrupt_beside(which, vcpu),
            Trap::Call => sbi::call(self, vcpu),
            Trap::Access(access) => mmio::access(self, vcpu, access),
            Trap::Fetch(access) => fault::wild(self, vcpu, fault::What::Fetch, access),
            Trap::Wait => {
                if self.may_doze(vcpu) {
                    self.doze(vcpu);
                }
                self.wait_for_interrupt(vcpu);
                Exit::Wfi
            }
            Trap::SpinHint => {
                self.note_spin(vcpu);
                Exit::Spin
            }
            Trap::KernelReturn { to_user } => {
                self.note_return(vcpu, to_user);
                Exit::Return
            }
            Trap::Extensions => {
                self.reload_extensions(vcpu);
                Exit::Extensions
            }
            Trap::Illegal(exception) => match interrupt_file::access(self, vcpu, exception) {
                Some(exit) => exit,
                None => self.hand_over_illegal(vcpu, exception),
            },
            Trap::Again => Exit::Illegal,
            Trap::Confined(exception) => self.confined_trap(vcpu, exception),
            Trap::PageFault(fault) => translation::page_fault(self, vcpu, fault),
            Trap::AddressSpace(access) => translation::address_space(self, vcpu, access),
            Trap::Fence(fence) => translation::fence(self, vcpu, fence),
            #[cfg(feature = "no-h")]
            Trap::Done(exit) => exit,
            #[cfg(feature = "no-h")]
            Trap::Own(exception) | Trap::Breakpoint(exception) => self.hand_over_own(vcpu, exception),
            #[cfg(feature = "no-h")]
            Trap::ReadsText => crate::guest::text::switch_off(self, vcpu),
            Trap::Unknown(exception) => fault::stop(self, vcpu, fault::What::Unknown, exception),
        }
    }

    /// An instruction that doesn't exist for the guest is the guest's own affair.
    fn hand_over_illegal(&mut self, vcpu: VcpuId, exception: Exception) -> Exit {
        if self.state(vcpu).deliver(exception) {
            Exit::Illegal
        } else {
            fault::stop(self, vcpu, fault::What::IllegalInstruction, exception)
        }
    }

    /// The guest has nothing to do until an interrupt: the vCPU sleeps unless one is there already.
    #[inline(always)]
    pub fn wait_for_interrupt(&mut self, vcpu: VcpuId) {
        if !self.state(vcpu).save_deadline() {
            self.rest(vcpu);
        }
    }
}

#[cfg(all(feature = "sbi-timer", not(feature = "no-h")))]
mod sbi_timer;
#[cfg(feature = "shadow")]
mod shadow;
#[cfg(feature = "no-h")]
mod user_mode;
#[cfg(feature = "no-h")]
pub use user_mode::{begin_later, confine, handle_shortcut};
