//! Where vCPUs have no timer of the hart's own: the hart's was for the one that runs.
use crate::arch::clock;
use crate::arch::context::enter_guest;
use crate::cpu::Cpu;
use crate::stats::{Exit, interrupt};

use super::handle_nothing;

impl Cpu {
    /// The hart's timer was for the running vCPU, which is told as it is entered; or for nobody, as what it was set for has been put off since. For the core
    /// that is nothing new.
    pub fn go_on_from_timer(&mut self) -> ! {
        self.entered = clock::now();
        self.busy_since = self.entered;
        self.counters.interrupts[interrupt::TIMER] += 1;
        let Some(vcpu) = self.scheduler.running() else { handle_nothing(self) };
        self.note_exit(vcpu, Exit::Timer);
        self.trace_taken(vcpu);
        self.note_irqs_off(Exit::Timer, clock::now());
        // SAFETY: the vCPU whose state this is was left in the hart.
        unsafe { enter_guest(self.state(vcpu)) }
    }
}
