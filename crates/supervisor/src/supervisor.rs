//! The registers, and what happens to them at traps.
use core::mem::offset_of;

use ainori_limits::cause::interrupt;

use crate::cause::Cause;
use crate::features::Features;
use crate::instruction::Privileged;
use crate::status::{self, Unit, Units};

/// What the guest's hart is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Privilege {
    /// User mode: a program of the guest.
    User = 0,
    /// Supervisor mode: its kernel.
    Supervisor = 1,
}

/// Whose pages can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// Pages of programs (U is 1): the guest is in user mode.
    User,
    /// Pages of the kernel (U is 0): the guest is in supervisor mode.
    Kernel,
    /// Pages of the kernel, and loads and stores may go to those of programs as well: `sstatus.SUM` is on. No instruction can be fetched from the latter.
    KernelSum,
}

/// An interrupt of the guest's hart, by its bit in `sip`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
    /// Software interrupt: another hart of the guest, or its own.
    Software,
    /// Timer interrupt.
    Timer,
    /// External interrupt: its interrupt controller.
    External,
}

impl Line {
    /// Its code in `scause`.
    #[must_use]
    pub const fn code(self) -> u32 {
        match self {
            Self::Software => interrupt::SUPERVISOR_SOFTWARE,
            Self::Timer => interrupt::SUPERVISOR_TIMER,
            Self::External => interrupt::SUPERVISOR_EXTERNAL,
        }
    }

    /// Its bit in `sip` and `sie`.
    #[must_use]
    pub const fn bit(self) -> u64 {
        1 << self.code()
    }

    /// All bits of `sip` and `sie`.
    pub const ALL: u64 = Self::Software.bit() | Self::Timer.bit() | Self::External.bit();
}

/// Where registers are in a [`Supervisor`], in bytes: for code that carries out the most frequent instructions in assembly. What it has to keep to is said there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offsets {
    /// `sstatus`, 8 bytes: as the guest reads it. Of a change of SIE alone nothing else depends but whether an interrupt is pending; SD has to follow FS and VS.
    pub sstatus: usize,
    /// `sscratch`, 8 bytes.
    pub sscratch: usize,
    /// `sepc`, 8 bytes: only addresses of instructions, so its lowest bit (without C its lowest two) is 0.
    pub sepc: usize,
    /// `scause`, 8 bytes.
    pub scause: usize,
    /// `stval`, 8 bytes.
    pub stval: usize,
    /// `stvec`, 8 bytes: bit 1 is 0.
    pub stvec: usize,
    /// `sie`, 8 bytes.
    pub sie: usize,
    /// Lines that are up, as bits of `sip`, 8 bytes. An interrupt is pending if there is one in `sie` as well, and `sstatus.SIE` is on or the guest in user mode.
    pub lines: usize,
    /// `stimecmp`, 8 bytes: who writes it lowers the timer's line, or looks at the time, as [`Supervisor::set_deadline`] does.
    pub deadline: usize,
    /// The [`Privilege`], 1 byte: 0 or 1.
    pub privilege: usize,
}

/// The supervisor-level state of a guest's hart.
///
/// In this order, as those that are read and written most are near each other then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Supervisor {
    /// As the guest reads it, SD and UXL included.
    pub(crate) sstatus: u64,
    /// Bits of `sstatus` that the guest's kernel can write.
    pub(crate) writable_status: u64,
    pub(crate) sscratch: u64,
    /// Aligned as instructions are.
    pub(crate) sepc: u64,
    pub(crate) scause: u64,
    pub(crate) stval: u64,
    /// Lines that are up, as bits of `sip`: SSIP, SEIP, and STIP as it was when the time was last looked at.
    pub(crate) lines: u64,
    pub(crate) sie: u64,
    pub(crate) stvec: u64,
    /// `stimecmp`, or what the SBI was asked for: when STIP is due.
    pub(crate) deadline: u64,
    pub(crate) senvcfg: u64,
    pub(crate) scounteren: u32,
    pub(crate) privilege: Privilege,
    pub(crate) features: Features,
}

impl Supervisor {
    /// Where its registers are.
    pub const OFFSETS: Offsets = Offsets {
        sstatus: offset_of!(Self, sstatus),
        sscratch: offset_of!(Self, sscratch),
        sepc: offset_of!(Self, sepc),
        scause: offset_of!(Self, scause),
        stval: offset_of!(Self, stval),
        stvec: offset_of!(Self, stvec),
        sie: offset_of!(Self, sie),
        lines: offset_of!(Self, lines),
        deadline: offset_of!(Self, deadline),
        privilege: offset_of!(Self, privilege),
    };

    /// Bits of `sstatus` that any guest's kernel can write.
    const STATUS: u64 = status::SIE | status::SPIE | status::SPP | status::SUM | status::MXR;

    /// After reset, as its firmware starts a kernel: in supervisor mode, interrupts off, no timer.
    ///
    /// The units that there are are on, and user mode can read the base counters, as kernels rely on a firmware that does that (OpenSBI does).
    #[must_use]
    pub const fn new(features: Features) -> Self {
        let float = if features.float { status::FS } else { 0 };
        let vector = if features.vector { status::VS } else { 0 };
        let units = float | vector;
        Self {
            sstatus: status::UXL_64 | units & (status::FS_INITIAL | status::VS_INITIAL),
            writable_status: Self::STATUS | units,
            sscratch: 0,
            sepc: 0,
            scause: 0,
            stval: 0,
            lines: 0,
            sie: 0,
            stvec: 0,
            deadline: u64::MAX,
            senvcfg: 0,
            scounteren: features.counter_enables & Features::BASE_COUNTERS,
            privilege: Privilege::Supervisor,
            features,
        }
    }

    /// The bits of `sepc` that there are: its lowest one, or its lowest two, are always 0.
    #[inline]
    pub(crate) const fn instruction_addresses(&self) -> u64 {
        if self.features.compressed { !0b1 } else { !0b11 }
    }

    /// What the guest's hart is in.
    #[inline]
    #[must_use]
    pub const fn privilege(&self) -> Privilege {
        self.privilege
    }

    /// Whose pages it reaches.
    #[inline]
    #[must_use]
    pub const fn view(&self) -> View {
        match self.privilege {
            Privilege::User => View::User,
            Privilege::Supervisor if self.sstatus & status::SUM != 0 => View::KernelSum,
            Privilege::Supervisor => View::Kernel,
        }
    }

    /// Can it load from pages that may only be executed (`sstatus.MXR`)?
    #[inline]
    #[must_use]
    pub const fn reads_executable(&self) -> bool {
        self.sstatus & status::MXR != 0
    }

    /// Takes a trap at the instruction at `pc`, with this cause and what is to be in `stval`. The address at which the guest goes on, which is in supervisor mode then.
    ///
    /// A guest that has no handler yet (`stvec` is 0 after reset) goes on at 0, as its hart would.
    #[inline]
    #[must_use = "it is where the guest goes on"]
    pub const fn trap(&mut self, cause: Cause, value: u64, pc: u64) -> u64 {
        let mut status = self.sstatus & !(status::SIE | status::SPIE | status::SPP);
        if self.sstatus & status::SIE != 0 {
            status |= status::SPIE;
        }
        if matches!(self.privilege, Privilege::Supervisor) {
            status |= status::SPP;
        }
        self.sstatus = status;
        self.sepc = pc & self.instruction_addresses();
        self.scause = cause.bits();
        self.stval = value;
        self.privilege = Privilege::Supervisor;
        let base = self.stvec & !0b11;
        let is_vectored = self.stvec & 0b11 == 0b01;
        if is_vectored && cause.is_interrupt() {
            base.wrapping_add(cause.code().wrapping_mul(4))
        } else {
            base
        }
    }

    /// The hart resumes from a suspension that has kept none of its registers but those that say which interrupts wake it (SBI 2.0, table 20): in supervisor
    /// mode, interrupts off. `satp`, which isn't here, is the caller's affair.
    #[inline]
    pub const fn resume(&mut self) {
        self.sstatus &= !status::SIE;
        self.privilege = Privilege::Supervisor;
    }

    /// SRET. The address at which the guest goes on, whose privilege may be another then, and who may be [interrupted](Self::pending_interrupt) at once.
    /// `None` in user mode: the instruction is illegal.
    #[inline]
    #[must_use = "it is where the guest goes on"]
    pub const fn sret(&mut self) -> Option<u64> {
        if matches!(self.privilege, Privilege::User) {
            return None;
        }
        let old = self.sstatus;
        self.sstatus = old & !(status::SIE | status::SPP) | status::SPIE;
        if old & status::SPIE != 0 {
            self.sstatus |= status::SIE;
        }
        if old & status::SPP == 0 {
            self.privilege = Privilege::User;
        }
        Some(self.sepc)
    }

    /// May the guest execute it now? Otherwise it is illegal.
    ///
    /// Of [`Privileged::Csr`] each [access](Self::access) tells. [`Privileged::Other`] may be anything; it isn't what this state allows.
    #[inline]
    #[must_use]
    pub const fn allows(&self, instruction: Privileged) -> bool {
        let is_kernel = matches!(self.privilege, Privilege::Supervisor);
        match instruction {
            Privileged::Return | Privileged::WaitForInterrupt | Privileged::Fence { .. } => is_kernel,
            Privileged::Invalidate { .. }
            | Privileged::FenceBeforeInvalidations
            | Privileged::FenceAfterInvalidations => is_kernel && self.features.invalidation,
            Privileged::WaitOnReservation | Privileged::WaitOnReservationShortly => {
                self.features.reservation_waits
            }
            Privileged::Csr(_) => true,
            Privileged::Other => false,
        }
    }

    /// Raises or lowers an interrupt line. That of the timer follows its [deadline](Self::set_deadline), with Sstc or without: [`Self::check_timer`] is for it.
    ///
    /// The software interrupt's is lowered by the guest. The external interrupt's follows what the guest's interrupt controller says.
    #[inline]
    pub const fn set_line(&mut self, line: Line, raised: bool) {
        self.lines = self.lines & !line.bit() | if raised { line.bit() } else { 0 };
    }

    /// Looks whether the timer is due at this time (that of the guest): so is its line then.
    #[inline]
    pub const fn check_timer(&mut self, now: u64) {
        self.set_line(Line::Timer, now >= self.deadline);
    }

    /// When the timer is due, in the guest's time, from now on: a write of `stimecmp`, or a call of the SBI.
    #[inline]
    pub const fn set_deadline(&mut self, deadline: u64, now: u64) {
        self.deadline = deadline;
        self.check_timer(now);
    }

    /// When the timer is due, in the guest's time, if it may interrupt the guest or wake it.
    #[inline]
    #[must_use]
    pub const fn deadline(&self) -> Option<u64> {
        if self.sie & Line::Timer.bit() != 0 && self.deadline != u64::MAX {
            Some(self.deadline)
        } else {
            None
        }
    }

    /// The interrupt that the guest takes now, before its next instruction (as far as the timer was [looked at](Self::check_timer)): in supervisor mode if `sstatus.SIE` is on, in user mode always. "Multiple simultaneous
    /// interrupts destined for supervisor mode are handled in the following decreasing priority order: SEI, SSI, STI."
    #[inline]
    #[must_use]
    pub const fn pending_interrupt(&self) -> Option<Cause> {
        let waiting = self.lines & self.sie;
        if waiting == 0 || matches!(self.privilege, Privilege::Supervisor) && self.sstatus & status::SIE == 0
        {
            return None;
        }
        let first = if waiting & Line::External.bit() != 0 {
            Line::External
        } else if waiting & Line::Software.bit() != 0 {
            Line::Software
        } else {
            Line::Timer
        };
        Some(Cause::interrupt(first.code()))
    }

    /// Does a WFI end (as far as the timer was [looked at](Self::check_timer))? An interrupt is pending that is enabled in `sie`, whatever `sstatus.SIE` says.
    #[inline]
    #[must_use]
    pub const fn wakes(&self) -> bool {
        self.lines & self.sie != 0
    }

    /// The guest's part of the hart's `sstatus` while it runs: FS, VS and MXR. Units that aren't `loaded` are off, so that their first use traps.
    ///
    /// All of the hart's other fields are the hypervisor's.
    #[inline]
    #[must_use]
    pub const fn hart_status(&self, loaded: Units) -> u64 {
        self.sstatus & (status::MXR | loaded.fields())
    }

    /// The fields that [`Self::hart_status`] can set.
    pub const HART_STATUS: u64 = status::MXR | status::FS | status::VS;

    /// After the guest has run with [`Self::hart_status`] of the same units: what the hart made of their states. A unit is dirty when the guest has written to it.
    ///
    /// That is part of what the guest reads as `sstatus`: so this comes before any [access](Self::access) to it, and before the next `hart_status`. Registers of a unit that the guest
    /// itself calls dirty count as written, which costs a copy at most.
    #[inline]
    pub const fn take_units(&mut self, hart_status: u64, loaded: Units) {
        let changed = (self.sstatus ^ hart_status) & loaded.fields();
        if changed != 0 {
            self.sstatus = status::with_summary(self.sstatus ^ changed);
        }
    }

    /// Has the guest switched this unit on? An instruction that trapped as the hart's own unit was off is to be executed again then, with the unit loaded.
    /// Otherwise it is illegal.
    #[inline]
    #[must_use]
    pub const fn is_on(&self, unit: Unit) -> bool {
        self.sstatus & Units::of(unit).fields() != 0
    }

    /// `scounteren` of the hart while the guest runs, so that it reads what it may and no other counter: its kernel all of its [`Features::counters`], its programs those that the
    /// kernel allows.
    #[inline]
    #[must_use]
    pub const fn hart_counters(&self) -> u32 {
        match self.privilege {
            Privilege::User => self.scounteren & self.features.counters,
            Privilege::Supervisor => self.features.counters,
        }
    }

    /// `senvcfg` of the hart while the guest runs: its kernel may execute all cache-block instructions, its programs those that the kernel allows.
    ///
    /// CBO.INVAL always flushes, as a hypervisor's `henvcfg.CBIE` would have it: else a guest could see what was in memory before its pages were cleared.
    #[inline]
    #[must_use]
    pub const fn hart_environment(&self) -> u64 {
        let Some(there) = self.features.environment else { return 0 };
        let guest = match self.privilege {
            Privilege::User => self.senvcfg,
            Privilege::Supervisor => Features::ENVIRONMENT & !Features::FIOM,
        };
        let flush = if guest & Features::CBIE != 0 { Features::CBIE_FLUSH } else { 0 };
        (guest & !Features::CBIE | flush) & there
    }

    /// Has the guest's kernel set a trap handler? `stvec` is 0 after reset.
    #[inline]
    #[must_use]
    pub const fn has_handler(&self) -> bool {
        self.stvec != 0
    }

    /// The registers with their names, for reports: as they are, without a look at the time.
    #[must_use]
    pub const fn registers(&self) -> [(&'static str, u64); 11] {
        [
            ("sstatus", self.sstatus),
            ("sie", self.sie),
            ("sip", self.lines),
            ("stvec", self.stvec),
            ("sscratch", self.sscratch),
            ("sepc", self.sepc),
            ("scause", self.scause),
            ("stval", self.stval),
            ("stimecmp", self.deadline),
            ("scounteren", self.scounteren as u64),
            ("senvcfg", self.senvcfg),
        ]
    }

    /// What the guest's hart has.
    #[must_use]
    pub const fn features(&self) -> &Features {
        &self.features
    }
}
