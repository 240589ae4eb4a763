//! What an instruction does that reads and writes a register.
use ainori_devices::zicsr::{AnyCsrInstruction, CsrAccess, CsrChange};

use crate::csr;
use crate::features::Features;
use crate::status::{self, Unit};
use crate::supervisor::{Line, Supervisor};

/// The instruction is illegal: the guest is to be told so by an exception, with the instruction in `stval`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Illegal;

/// What became of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is carried out.
    Done {
        /// What the register held before: for `rd`.
        old: u64,
        /// What else is to be done.
        effects: Effects,
    },
    /// The caller carries it out: it is about `satp`, which the tables that the hart walks depend on.
    AddressSpace(CsrAccess),
    /// The caller carries it out: it reads the counter of this number (0 is `cycle`, 1 `time`, 2 `instret`, 3 to 31 `hpmcounter3` to `hpmcounter31`), and may.
    Counter(u8),
    /// It is about a register of this unit, which the guest has switched on: the hart executes it itself, with the unit loaded. If it was loaded, the instruction is
    /// illegal.
    Unit(Unit),
}

/// What is to be done after an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effects(u8);

impl Effects {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// The guest is to be [interrupted](Supervisor::pending_interrupt) before its next instruction.
    pub const INTERRUPT: Self = Self(1 << 0);
    /// The [view](Supervisor::view) is another.
    pub const VIEW: Self = Self(1 << 1);
    /// [`Supervisor::reads_executable`] is another, and so is [`Supervisor::hart_status`].
    pub const EXECUTABLE: Self = Self(1 << 2);
    /// Units have another state, so that [`Supervisor::hart_status`] may be another.
    pub const UNITS: Self = Self(1 << 3);
    /// The [deadline](Supervisor::deadline) is another.
    pub const TIMER: Self = Self(1 << 4);
    /// What programs may do is another: [`Supervisor::hart_counters`] or [`Supervisor::hart_environment`] in user mode.
    pub const PROGRAMS: Self = Self(1 << 5);

    /// Nothing?
    #[inline]
    #[must_use]
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Are all of these among them?
    #[inline]
    #[must_use]
    pub const fn contains(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }

    /// These and those.
    #[inline]
    #[must_use]
    pub const fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// These, if so.
    #[inline]
    const fn when(self, condition: bool) -> Self {
        if condition { self } else { Self::NONE }
    }
}

impl Outcome {
    /// Nothing but this is to be done.
    #[inline]
    const fn read(old: u64) -> Self {
        Self::Done { old, effects: Effects::NONE }
    }
}

impl Supervisor {
    /// Carries out an instruction on a register. `source` is the value of its [source](AnyCsrInstruction::source), if it has one (of register 0: 0); `now` tells the guest's time, and
    /// is asked only where that matters: some harts have a firmware that reads it for them, which takes long.
    ///
    /// A write of `sstatus` doesn't ask. Who runs the guest has an alarm for its [deadline](Self::deadline), whatever `sstatus.SIE` says, and [looks](Self::check_timer) when that comes.
    ///
    /// # Errors
    /// The instruction is illegal: there is no such register, the guest isn't privileged enough, it writes what can only be read, the counter isn't enabled, or the
    /// unit is off. Nothing has changed then.
    #[inline]
    pub fn access(
        &mut self,
        instruction: AnyCsrInstruction,
        source: u64,
        now: impl FnOnce() -> u64,
    ) -> Result<Outcome, Illegal> {
        let number = instruction.number();
        let change = instruction.change(source);
        if csr::lowest_privilege(number) > self.privilege as u16 {
            return Err(Illegal);
        }
        // Kernels switch interrupts off and on all the time: so that comes first, and next what they read and write at each trap.
        if number == csr::SSTATUS {
            return Ok(self.access_status(change));
        }
        if (csr::SSCRATCH..=csr::STVAL).contains(&number) {
            let addresses = self.instruction_addresses();
            let (register, bits) = match number {
                csr::SSCRATCH => (&mut self.sscratch, !0),
                csr::SEPC => (&mut self.sepc, addresses),
                csr::SCAUSE => (&mut self.scause, !0),
                _ => (&mut self.stval, !0),
            };
            let old = *register;
            *register = change.applied_to(old) & bits;
            return Ok(Outcome::read(old));
        }
        self.access_other(instruction, source, now)
    }

    /// The others: out of line, so that the frequent ones stay short.
    #[inline(never)]
    fn access_other(
        &mut self,
        instruction: AnyCsrInstruction,
        source: u64,
        now: impl FnOnce() -> u64,
    ) -> Result<Outcome, Illegal> {
        let number = instruction.number();
        let change = instruction.change(source);
        if csr::is_read_only(number) && instruction.writes() {
            return Err(Illegal);
        }
        Ok(match number {
            csr::SIE => self.access_enables(change, now),
            csr::SIP => self.access_pending(instruction, change, now()),
            csr::STIMECMP if self.features.timer => self.access_timer(instruction, change, now),
            csr::STVEC => self.access_vector(change),
            csr::SCOUNTEREN => self.access_counter_enables(change),
            csr::SENVCFG => self.access_environment(change)?,
            csr::SATP => Outcome::AddressSpace(instruction.access(source)),
            csr::CYCLE..=csr::HPMCOUNTER31 => {
                let counter = (number - csr::CYCLE) as u8;
                if self.hart_counters() >> counter & 1 == 0 {
                    return Err(Illegal);
                }
                Outcome::Counter(counter)
            }
            csr::FFLAGS..=csr::FCSR if self.is_on(Unit::Float) => Outcome::Unit(Unit::Float),
            csr::VSTART | csr::VXSAT | csr::VXRM | csr::VCSR | csr::VL..=csr::VLENB
                if self.is_on(Unit::Vector) =>
            {
                Outcome::Unit(Unit::Vector)
            }
            _ => return Err(Illegal),
        })
    }

    #[inline]
    fn access_status(&mut self, change: CsrChange) -> Outcome {
        let old = self.sstatus;
        let changed = (change.applied_to(old) ^ old) & self.writable_status;
        self.sstatus = old ^ changed;
        let mut effects = Effects::NONE;
        if changed & !status::SIE != 0 {
            self.sstatus = status::with_summary(self.sstatus);
            effects = Effects::VIEW
                .when(changed & status::SUM != 0)
                .and(Effects::EXECUTABLE.when(changed & status::MXR != 0))
                .and(Effects::UNITS.when(changed & (status::FS | status::VS) != 0));
        }
        if changed & self.sstatus & status::SIE != 0 {
            effects = effects.and(self.interrupt());
        }
        Outcome::Done { old, effects }
    }

    /// A timer that is switched on may be due already: it had no alarm before.
    #[inline]
    fn access_enables(&mut self, change: CsrChange, now: impl FnOnce() -> u64) -> Outcome {
        let old = self.sie;
        self.sie = change.applied_to(old) & Line::ALL;
        let changed = old ^ self.sie;
        if changed == 0 {
            return Outcome::read(old);
        }
        let mut effects = Effects::NONE;
        if changed & Line::Timer.bit() != 0 {
            self.check_timer(now());
            effects = Effects::TIMER;
        }
        Outcome::Done { old, effects: effects.and(self.interrupt()) }
    }

    /// Of `sip` the guest can write SSIP. The others are "set and cleared by the execution environment".
    #[inline]
    fn access_pending(&mut self, instruction: AnyCsrInstruction, change: CsrChange, now: u64) -> Outcome {
        self.check_timer(now);
        let old = self.lines;
        if !instruction.writes() {
            return Outcome::read(old);
        }
        self.set_line(Line::Software, change.applied_to(old) & Line::Software.bit() != 0);
        Outcome::Done { old, effects: self.interrupt() }
    }

    /// A mode that is reserved isn't taken, and nothing of what is written with it.
    fn access_vector(&mut self, change: CsrChange) -> Outcome {
        let old = self.stvec;
        let new = change.applied_to(old);
        if new & 0b10 == 0 {
            self.stvec = new;
        }
        Outcome::read(old)
    }

    fn access_counter_enables(&mut self, change: CsrChange) -> Outcome {
        let old = self.scounteren;
        self.scounteren = change.applied_to(old.into()) as u32 & self.features.counter_enables;
        Outcome::Done { old: old.into(), effects: Effects::PROGRAMS.when(old != self.scounteren) }
    }

    fn access_environment(&mut self, change: CsrChange) -> Result<Outcome, Illegal> {
        let writable = self.features.environment.ok_or(Illegal)? & Features::ENVIRONMENT;
        let old = self.senvcfg;
        self.senvcfg = change.applied_to(old) & writable;
        Ok(Outcome::Done { old, effects: Effects::PROGRAMS.when(old != self.senvcfg) })
    }

    #[inline]
    fn access_timer(
        &mut self,
        instruction: AnyCsrInstruction,
        change: CsrChange,
        now: impl FnOnce() -> u64,
    ) -> Outcome {
        let old = self.deadline;
        if !instruction.writes() {
            return Outcome::read(old);
        }
        self.set_deadline(change.applied_to(old), now());
        Outcome::Done { old, effects: Effects::TIMER.and(self.interrupt()) }
    }

    /// Conditions for an interrupt "must be evaluated immediately following ... an explicit write to a CSR on which these interrupt trap conditions expressly depend".
    #[inline]
    const fn interrupt(&self) -> Effects {
        Effects::INTERRUPT.when(self.pending_interrupt().is_some())
    }
}
