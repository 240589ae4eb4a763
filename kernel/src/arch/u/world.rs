//! What a vCPU has besides its general registers: its supervisor's registers in memory, its shadow tables, and the floating-point and vector registers, which stay in the hart until
//! another vCPU uses these.
use super::context::Context;
use super::hart::Features;
use super::page::Page;
use super::per_hart::{loaded, per_hart};
use super::shadow::OwnShadow;
use super::timer::program_timer;
use crate::arch::clock;
use crate::arch::gstage::GuestTables;
use crate::arch::riscv::csr::{self, status};
use crate::arch::riscv::float::FloatRegisters;
use crate::arch::riscv::vector::VectorRegisters;
use crate::cpu::Machine;
use ainori_limits::cause::interrupt;
use ainori_sched::VcpuId;
use ainori_supervisor::{self as supervisor, Line, Supervisor, Unit, Units};
use ainori_text::Text;
use bitflags::bitflags;
use core::arch::asm;

/// How the hart translates the addresses of a vCPU.
pub struct Translation {
    pub(super) shadow: OwnShadow,
    pub(super) text: &'static Text,
    page: &'static Page,
}

impl Translation {
    /// By its shadow.
    pub fn new(_: &GuestTables, shadow: OwnShadow, vcpu: VcpuId, machine: &'static Machine) -> Self {
        let page = shadow.page();
        Self { shadow, text: &machine.guest_of(vcpu).space.text, page }
    }
}

bitflags! {
    /// Interrupt lines of a vCPU, as bits of `sip`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Lines: u64 {
        /// Interrupts between the guest's harts.
        const SOFTWARE = 1 << interrupt::SUPERVISOR_SOFTWARE;
        /// Its timer.
        const TIMER = 1 << interrupt::SUPERVISOR_TIMER;
        /// Its interrupt controller.
        const EXTERNAL = 1 << interrupt::SUPERVISOR_EXTERNAL;
    }

    /// The register files that a vCPU has used since its start.
    #[derive(Debug, Clone, Copy)]
    struct Uses: u8 {
        /// Floating point.
        const FLOAT = 1 << 0;
        /// Vectors.
        const VECTOR = 1 << 1;
    }
}

impl Lines {
    fn put(self, registers: &mut Supervisor, raised: bool) {
        if self.contains(Self::SOFTWARE) {
            registers.set_line(Line::Software, raised);
        }
        if self.contains(Self::EXTERNAL) {
            registers.set_line(Line::External, raised);
        }
    }

    /// Those that are pending and enabled.
    fn wakeful(registers: &mut Supervisor) -> Self {
        registers.check_timer(clock::now());
        Self::from_bits_truncate(registers.wakeful())
    }
}

/// All of a vCPU that isn't in its [`Context`].
pub(super) struct World {
    /// For as long as the system runs: so the hart can refer to it while it is loaded.
    pub(super) page: &'static Page,
    features: supervisor::Features,
    pub(super) shadow: OwnShadow,
    /// See [`give_up_reservation`].
    nowhere: u64,
    float: FloatRegisters,
    vector: Option<VectorRegisters>,
    uses: Uses,
}

impl World {
    /// A vCPU after reset. Allocates: only at boot.
    pub(super) fn new(translation: Translation, features: &Features) -> Self {
        let of_guest = features.supervisor;
        let Translation { shadow, page, .. } = translation;
        page.registers.with(|registers| *registers = Supervisor::new(of_guest));
        let units =
            if of_guest.float { status::FS } else { 0 } | if of_guest.vector { status::VS } else { 0 };
        page.fast.changes.set(status::SUM | status::MXR | status::SIE | status::SPIE | status::SPP | units);
        Self {
            page,
            features: of_guest,
            shadow,
            nowhere: 0,
            float: FloatRegisters::new(features.double),
            vector: features.vlenb.map(VectorRegisters::new),
            uses: Uses::empty(),
        }
    }

    /// Resets all but what it was made with, for a start through HSM.
    pub(super) fn reset(&mut self) {
        // Without `..`, so that who adds a field has to say here whether it is reset.
        let Self { page, features, shadow, float, vector, uses, nowhere: _ } = self;
        page.registers.with(|registers| *registers = Supervisor::new(*features));
        shadow.reset();
        if uses.contains(Uses::FLOAT) {
            float.reset();
        }
        if let Some(vector) = vector {
            vector.reset();
        }
        *uses = Uses::empty();
    }

    /// Its translation is off, and its interrupts are. It is saved.
    pub(super) fn forget_translation(&mut self) {
        self.page.registers.with(|registers| registers.resume());
        self.shadow.reset();
    }

    /// Makes it the hart's. What the hart holds of another one is nothing but the extension registers.
    #[inline]
    pub(super) fn load(&mut self) {
        give_up_reservation(&mut self.nowhere);
        per_hart().loaded.set(Some(self.page));
        self.shadow.enter();
        program_timer();
    }

    /// True if the vCPU, which has just been loaded, is likely to use its extension registers soon: it has used
    /// them before, and the guest has something in them at this moment.
    #[inline]
    pub(super) fn wants_extensions(&self) -> bool {
        !self.uses.is_empty() && {
            let now = self.page.registers.with(|registers| registers.sstatus());
            self.uses.contains(Uses::FLOAT) && now & status::FS >= status::FS_CLEAN
                || self.uses.contains(Uses::VECTOR) && now & status::VS >= status::VS_CLEAN
        }
    }

    /// Writes the extension registers to memory, as far as they may have changed in the hart since [`Self::load_extensions`].
    /// `context` is this vCPU's.
    ///
    /// # Safety
    /// The extension registers in the hart are this vCPU's.
    pub(super) unsafe fn save_extensions(&mut self, context: &mut Context) {
        let (loaded, dirty) = (context.loaded, context.dirty);
        if loaded.contains(Unit::Float) {
            // SAFETY: the unit is switched on for the copy.
            unsafe {
                csr::set!(csr::SSTATUS, status::FS);
                if dirty.contains(Unit::Float) { self.float.save() } else { self.float.save_control() }
            }
        }
        if let Some(registers) = &mut self.vector
            && loaded.contains(Unit::Vector)
        {
            // SAFETY: as above; the registers' length is the hart's, as no core begins on one of another length (`boot::cores::secondary`).
            unsafe {
                csr::set!(csr::SSTATUS, status::VS);
                if dirty.contains(Unit::Vector) { registers.save() } else { registers.save_control() }
            }
        }
        context.dirty = Units::NONE;
    }

    /// Loads the extension registers into the hart, those that the vCPU has ever used.
    ///
    /// # Safety
    /// What the hart held of another vCPU has been saved.
    pub(super) unsafe fn load_extensions(&self, context: &mut Context) {
        (context.loaded, context.dirty) = (Units::NONE, Units::NONE);
        // SAFETY: the units are switched on for the copy; guests see them as their own `sstatus` says. The vector registers' length is the
        // hart's, as in `save_extensions`.
        unsafe {
            if self.uses.contains(Uses::FLOAT) {
                csr::set!(csr::SSTATUS, status::FS);
                self.float.load();
                context.loaded = context.loaded.and(Units::of(Unit::Float));
            }
            if let Some(vector) = &self.vector
                && self.uses.contains(Uses::VECTOR)
            {
                csr::set!(csr::SSTATUS, status::VS);
                vector.load();
                context.loaded = context.loaded.and(Units::of(Unit::Vector));
            }
        }
    }

    /// An instruction of the loaded vCPU was illegal for the hart: was it only that a unit isn't loaded that the
    /// guest has on? Then notes that the vCPU uses it and says true; its registers have to be loaded before it goes on.
    pub(super) fn needs_extensions(&mut self, context: &Context) -> bool {
        let is_missing = |unit| {
            !context.loaded.contains(unit) && self.page.registers.with(|registers| registers.is_on(unit))
        };
        let (float, vector) = (is_missing(Unit::Float), is_missing(Unit::Vector));
        self.uses |= if float { Uses::FLOAT } else { Uses::empty() };
        self.uses |= if vector { Uses::VECTOR } else { Uses::empty() };
        float | vector
    }

    /// Raises or lowers interrupt lines of the vCPU while it isn't loaded.
    #[inline]
    pub(super) fn set_lines(&mut self, lines: Lines, raised: bool) {
        self.page.registers.with(|registers| lines.put(registers, raised));
    }

    /// When the vCPU's timer is due, if it may interrupt it.
    #[inline]
    pub(super) fn deadline(&self) -> Option<u64> {
        self.page.registers.with(|registers| registers.deadline())
    }

    /// Is there a pending and enabled interrupt already?
    #[inline]
    pub(super) fn is_interrupted(&self) -> bool {
        self.page.registers.with(|registers| !Lines::wakeful(registers).is_empty())
    }
}

/// A store-conditional gives up the hart's reservation, whether or not it stores: else one guest's LR could let another's SC succeed.
#[inline(always)]
fn give_up_reservation(nowhere: &mut u64) {
    // SAFETY: stores a zero to `nowhere`, if at all.
    unsafe { asm!("sc.d zero, zero, ({})", in(reg) nowhere, options(nostack)) };
}

/// When the timer of the loaded vCPU is due, if it may interrupt it.
#[inline]
pub fn loaded_deadline() -> Option<u64> {
    loaded(|registers| registers.deadline()).flatten()
}

/// No vCPU is the hart's any more.
#[inline]
pub fn forget() {
    per_hart().loaded.set(None);
    program_timer();
}

/// Raises interrupt lines of the loaded vCPU.
#[inline]
pub fn raise(lines: Lines) {
    loaded(|registers| lines.put(registers, true));
}

/// Lowers interrupt lines of the loaded vCPU.
#[inline]
pub fn lower(lines: Lines) {
    loaded(|registers| lines.put(registers, false));
}

/// Takes the loaded vCPU's software interrupt back. True if there was one.
pub fn take_software_interrupt() -> bool {
    let pending = loaded(|registers| registers.is_up(Line::Software));
    lower(Lines::SOFTWARE);
    pending == Some(true)
}

/// Sets the timer of the loaded vCPU.
#[inline]
pub fn set_timer(at: u64) {
    loaded(|registers| registers.set_deadline(at, clock::now()));
    program_timer();
}

/// Which register `sireg` is for the loaded vCPU: guests have no interrupt files here.
pub const fn indirect_register() -> u64 {
    0
}

/// Pending and enabled interrupts of the loaded vCPU.
#[inline]
pub fn loaded_wakeful_lines() -> Lines {
    loaded(Lines::wakeful).unwrap_or(Lines::empty())
}

/// The loaded vCPU would be interrupted if it was entered, or woken.
#[inline]
pub fn is_interrupted() -> bool {
    !loaded_wakeful_lines().is_empty()
}
