//! The guard before a more urgent deadline: for a few microseconds the core begins nothing that could outlast it.
//!
//! The hypervisor runs to completion with interrupts off, so a trap of Linux just before the RTOS's timer would delay
//! the RTOS by the length of its handling, and a switch to Linux by the length of the switch. But that timer is no surprise: its
//! deadline stands in the sleeping vCPU's `vstimecmp`. So a trap that comes within the guard is not handled. The core waits for
//! the deadline and runs the more urgent vCPU; the interrupted guest goes on later at the instruction that trapped, which
//! then traps again. A switch to somebody less urgent is not begun within the guard either.
use super::{Cpu, SLOTS};
use crate::arch::{csr, trap};
use crate::guest::vcpu::Hold;

/// Length of the guard, in microseconds: what the hypervisor does between two guests seldom takes longer, and of a period of a
/// millisecond it is half a percent of one core, if a trap falls into it at all.
pub const GUARD_US: u64 = 5;

impl Cpu {
    /// Puts the present trap off if a deadline is too near, and waits for that. A message from another core is read nevertheless:
    /// its interrupt would be there again at once.
    #[inline]
    pub(super) fn put_off_trap(&mut self) -> bool {
        self.next_deadline <= self.entered + self.guard && !trap::is_software() && self.meet_deadline()
    }

    /// The next deadline is over or within the guard. If it is over, or a vCPU waits for it that is more urgent than all that could run
    /// now: waits until it is over, and wakes who is due. Otherwise there is nothing to be done yet.
    #[inline(never)]
    pub(super) fn meet_deadline(&mut self) -> bool {
        let now = csr::time();
        let met = self.next_deadline <= now || self.await_urgent(now + self.guard);
        if met {
            self.wake_expired(csr::time());
        }
        met
    }

    /// If a vCPU that is more urgent than all that could run now is due by `horizon`, waits until it is.
    fn await_urgent(&self, horizon: u64) -> bool {
        let urgent = self.scheduler.asleep().into_iter().filter_map(|id| {
            let resident = self.residents[usize::from(id.0) % SLOTS].as_ref()?;
            let due = resident.world.deadline().filter(|at| *at <= horizon)?;
            (resident.hold == Hold::None && self.scheduler.would_preempt(id)).then_some(due)
        });
        let Some(due) = urgent.min() else { return false };
        while csr::time() < due {
            core::hint::spin_loop();
        }
        true
    }
}
