//! The guard before a more urgent deadline: for a few microseconds the core begins nothing that could outlast it.
//!
//! The hypervisor runs to completion with interrupts off, so a trap of Linux just before the RTOS's timer would delay
//! the RTOS by the length of its handling, and a switch to Linux by the length of the switch. But that timer is no surprise: its
//! deadline stands in the sleeping vCPU's `vstimecmp`. So a trap that comes within the guard is not handled. The core waits for
//! the deadline and runs the more urgent vCPU; the interrupted guest goes on later at the instruction that trapped, which
//! then traps again. A switch to somebody less urgent is not begun within the guard either.
use super::Cpu;
use crate::arch::csr::{self, interrupt};
use crate::arch::{hart, world};

/// Length of the guard, in microseconds: what the hypervisor does between two guests seldom takes longer, and of a period of a
/// millisecond it is half a percent of one core, if a trap falls into it at all.
pub const GUARD_US: u64 = 5;
/// How long after its deadline a hart's timer may need to be seen in `hip`, in microseconds. On a chip next to nothing; on the emulator
/// in lockstep time, a slice.
pub const SETTLING_US: u64 = 1;

impl Cpu {
    /// Puts the present trap off if a deadline is too near, and waits for that.
    #[inline]
    pub(super) fn put_off_trap(&mut self) -> bool {
        self.next_deadline <= self.entered + self.guard && self.meet_deadline()
    }

    /// For a piece of work that could as well be done later, or is one of many: if a deadline is too near to begin it, waits for that.
    #[inline]
    pub(super) fn gives_way(&mut self) -> bool {
        self.next_deadline <= csr::time() + self.guard && self.meet_deadline()
    }

    /// The next deadline is over or within the guard: wakes who is to be woken. Is anybody?
    #[inline(never)]
    pub(super) fn meet_deadline(&mut self) -> bool {
        self.wake_expired(csr::time())
    }

    /// The core could enter the loaded vCPU, which has been woken for an interrupt that isn't there yet, as its timer is due only then: waits
    /// for it. False if this core has something else to do first.
    #[inline(never)]
    pub(super) fn await_interrupt(&mut self, due: u64) -> bool {
        let (me, mail) = (self.id as usize, &self.machine.mail);
        mail.enter(me);
        let began = csr::time();
        let end = due + self.settling;
        let mut now = began;
        let mut is_free = true;
        // A device of the board interrupts the guest, if it may.
        while is_free
            && now < end
            && !world::is_interrupted()
            && hart::pending_interrupts() & interrupt::EXTERNAL == 0
        {
            now = csr::time();
            is_free = !mail.has_mail(me) && now < self.next_deadline;
        }
        // Nothing that came in meanwhile was kept waiting.
        self.entered += now - began;
        is_free && mail.leave(me)
    }
}
