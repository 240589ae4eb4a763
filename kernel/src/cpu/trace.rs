//! What the kernel tells the trace ring of its core. A record costs at most 30 instructions, and 3 where the mask has
//! not its kind.
use ainori_sched::{VcpuId, VcpuSet};
use ainori_trace::{Event, Kind, Line};

use super::Cpu;
use crate::arch::clock;
use crate::arch::trap;
use crate::arch::world::{self, Lines};
use crate::stats::Exit;

impl Cpu {
    /// Writes a record, if its kind is chosen.
    #[inline(always)]
    pub fn trace(&mut self, event: Event) {
        let (kind, a, b) = event.fields();
        if self.trace.wants(kind) {
            self.write_record(kind, a, b);
        }
    }

    #[inline(never)]
    fn write_record(&mut self, kind: Kind, a: u8, b: u64) {
        self.trace.write(clock::now(), kind, a, b);
    }

    /// A vCPU trapped, as of the time when it did.
    #[inline(always)]
    pub(super) fn trace_trap(&mut self, vcpu: VcpuId, exit: Exit) {
        if self.trace.wants(Kind::Trap) {
            let (cause, pc) = trap::traced();
            let (kind, a, b) = Event::Trap { vcpu: Some(vcpu.0), cause, class: exit as u8, pc }.fields();
            self.trace.write(self.entered, kind, a, b);
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
    pub(super) fn trace_received(&mut self, from: usize, items: VcpuSet) {
        // BOUND: one item mostly, and only if it is traced.
        for VcpuId(item) in items {
            self.trace(Event::Received { from: from as u8, item: u32::from(item) });
        }
    }

    #[inline(never)]
    fn trace_taken_lines(&mut self, vcpu: VcpuId) {
        if self.state(vcpu).takes_interrupts() {
            let wakeful = world::loaded_wakeful_lines();
            // BOUND: 3.
            for (lines, line) in [
                (Lines::EXTERNAL, Line::External(0)),
                (Lines::SOFTWARE, Line::Software),
                (Lines::TIMER, Line::Timer),
            ] {
                if wakeful.intersects(lines) {
                    self.trace(Event::Taken { vcpu: vcpu.0, line });
                }
            }
        }
    }
}
