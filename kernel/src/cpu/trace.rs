//! What the kernel tells the trace ring of its core. A record costs at most 30 instructions, and 3 where the mask has
//! not its kind.
use ainori_sched::VcpuId;
use ainori_trace::{Cause, Event, Kind, Line};

use super::Cpu;
use crate::arch::clock;
use crate::arch::csr::{self, virtual_interrupt};
use crate::arch::world;
use crate::stats::Exit;

impl Cpu {
    /// Writes a record, if its kind is chosen.
    #[inline]
    pub fn trace(&mut self, event: Event) {
        let (kind, a, b) = event.fields();
        if self.trace.wants(kind) {
            self.trace.record(clock::now(), kind, a, b);
        }
    }

    /// A vCPU trapped, as of the time when it did.
    #[inline]
    pub(super) fn trace_trap(&mut self, vcpu: VcpuId, exit: Exit) {
        if self.trace.wants(Kind::Trap) {
            let cause = Cause::from_scause(csr::read!(csr::SCAUSE));
            let pc = csr::read!(csr::SEPC);
            self.trace.event(self.entered, Event::Trap { vcpu: Some(vcpu.0), cause, class: exit as u8, pc });
        }
    }

    /// The vCPU is about to be entered: interrupts that are pending and enabled, it takes at once.
    #[inline(always)]
    pub(super) fn trace_taken(&mut self, vcpu: VcpuId) {
        if self.trace.wants(Kind::Taken) {
            self.trace_taken_lines(vcpu);
        }
    }

    #[inline(never)]
    fn trace_taken_lines(&mut self, vcpu: VcpuId) {
        if world::takes_interrupts(&self.resident(vcpu).context) {
            let lines = world::loaded_wakeful_interrupts();
            // BOUND: 3.
            for (bit, line) in [
                (virtual_interrupt::EXTERNAL, Line::External(0)),
                (virtual_interrupt::SOFTWARE, Line::Software),
                (virtual_interrupt::TIMER, Line::Timer),
            ] {
                if lines & bit != 0 {
                    self.trace(Event::Taken { vcpu: vcpu.0, line });
                }
            }
        }
    }
}
