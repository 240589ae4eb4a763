//! What a hypervisor wants to know of the registers, beside what the guest does with them.
use crate::status;
use crate::supervisor::{Line, Privilege, Supervisor};

impl Supervisor {
    /// `sstatus`, as the guest reads it.
    #[inline]
    #[must_use]
    pub const fn sstatus(&self) -> u64 {
        self.sstatus
    }

    /// `stvec`.
    #[inline]
    #[must_use]
    pub const fn stvec(&self) -> u64 {
        self.stvec
    }

    /// [`Self::hart_counters`] while the guest is in that privilege.
    #[must_use]
    pub const fn counters_in(&self, privilege: Privilege) -> u32 {
        Self { privilege, ..*self }.hart_counters()
    }

    /// [`Self::hart_environment`] while the guest is in that privilege.
    #[must_use]
    pub const fn environment_in(&self, privilege: Privilege) -> u64 {
        Self { privilege, ..*self }.hart_environment()
    }

    /// `sepc`, `scause` and `stval`: what the last trap left there.
    #[inline]
    #[must_use]
    pub const fn last_trap(&self) -> [u64; 3] {
        [self.sepc, self.scause, self.stval]
    }

    /// `sie`.
    #[inline]
    #[must_use]
    pub const fn enabled(&self) -> u64 {
        self.sie
    }

    /// Would it take an interrupt that it has enabled before its next instruction?
    #[inline]
    #[must_use]
    pub const fn takes_interrupts(&self) -> bool {
        matches!(self.privilege, Privilege::User) || self.sstatus & status::SIE != 0
    }

    /// Interrupts that are pending, as of the last look at the time, and enabled: as bits of `sip`.
    #[inline]
    #[must_use]
    pub const fn wakeful(&self) -> u64 {
        self.lines & self.sie
    }

    /// Is a line up, that of the timer as of the last look at the time?
    #[inline]
    #[must_use]
    pub const fn is_up(&self, line: Line) -> bool {
        self.lines & line.bit() != 0
    }
}
