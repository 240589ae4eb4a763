//! The world switch: what the hart holds of a vCPU besides its general registers.
use super::context::Context;
use super::fence;
use super::files;
use super::hart::Features;
use super::hgatp;
use super::shadow::{BUILT, OwnShadow, forget_second_stage};
use super::timer;
use crate::arch::gstage::GuestTables;
use crate::arch::riscv::csr::{self, hie, hvictl, status, virtual_interrupt};
use crate::arch::riscv::float::FloatRegisters;
use crate::arch::riscv::vector::VectorRegisters;
use crate::cpu::Machine;
use ainori_sched::VcpuId;
use bitflags::bitflags;
use core::arch::asm;

/// How the hart translates the addresses of a vCPU.
pub struct Translation {
    hgatp: u64,
    /// Others have the VMID in `hgatp` too.
    shares_vmid: bool,
    pub(super) shadow: OwnShadow,
}

impl Translation {
    /// Guest-physical addresses through the tables of its guest, for the vCPU with this number; unless it has a shadow, and no second stage. VMIDs start at 1: 0 is for nobody else, so that a stray access
    /// finds nothing. Where the hart doesn't tell so many apart (it may have none at all), all share VMID 0, and translations are forgotten
    /// at each switch.
    pub fn new(tables: &GuestTables, shadow: OwnShadow, vcpu: VcpuId, machine: &Machine) -> Self {
        let shares_vmid = machine.vcpu_count > usize::from(machine.features.vmid_mask);
        let vmid = if shares_vmid { 0 } else { u16::from(vcpu.0) + 1 };
        Self { hgatp: hgatp::of_vcpu(tables, vmid), shares_vmid, shadow }
    }
}

/// Defines [`Registers`] from one list. What is in it is reset, saved and loaded, so that none can be forgotten in one place of several, which would be a
/// leak between guests, or between the lives of one.
macro_rules! registers {
    ($(#[$doc:meta])* struct $Registers:ident($hart:ident: $Hart:ty) { $($(#[$note:meta])* $field:ident: $CSR:ident = $reset:expr,)* }) => {
        $(#[$doc])*
        #[derive(Debug)]
        struct $Registers { $($(#[$note])* $field: u64,)* }

        impl $Registers {
            /// Those of a vCPU after reset, on such a hart.
            #[inline(always)]
            fn after_reset($hart: &$Hart) -> Self {
                Self { $($field: $reset,)* }
            }

            /// Writes the hart's registers to memory.
            #[inline(always)]
            fn save(&mut self) {
                $(self.$field = timer::read!($CSR);)*
            }

            /// Loads them into the hart.
            ///
            /// # Safety
            /// No other vCPU's registers are in the hart unsaved.
            #[inline(always)]
            unsafe fn load(&self) {
                // SAFETY: the registers of the list concern only guests, as it says, and none runs now.
                unsafe { $(timer::write!($CSR, self.$field);)* }
            }

            /// [Saves](Self::save) those of another vCPU, and [loads](Self::load) these: a register in three instructions rather than four.
            ///
            /// # Safety
            /// The registers in the hart are those of `old`.
            #[inline(always)]
            unsafe fn load_over(&self, old: &mut Self) {
                // SAFETY: as in `load`.
                unsafe { $(old.$field = timer::swap!($CSR, self.$field);)* }
            }
        }
    };
}

registers! {
    /// What each world switch exchanges: for each register its CSR, and its value after reset, which may depend on the hart. All harts with
    /// H and Sstc have these registers, they may be loaded in any order, and they concern only guests. (`scounteren` and `senvcfg` count for U-mode,
    /// which the hypervisor has none of.)
    ///
    /// Three registers of a [`World`] are not here: `hgatp` is never saved, as no guest can change it; `vsatp` leaves the hart first and comes last; and
    /// not every hart has `vsiselect`. Of all others that `csr.rs` names, a test (`tests/tests/arch.rs`) says why they are not.
    struct Registers(hart: Hart) {
        vsstatus: VSSTATUS = initial_vsstatus(hart.units),
        /// Never.
        vstimecmp: VSTIMECMP = u64::MAX,
        // The next two have no VS copy: the hart has one that counts for U-mode and VU-mode alike.
        /// Guests rely on a firmware that lets U-mode read cycle, time and instret (OpenSBI does).
        scounteren: SCOUNTEREN = 0b111,
        // From here on all are 0 after reset. They stand together, as the compiler then clears them at once.
        senvcfg: SENVCFG = 0,
        vstvec: VSTVEC = 0,
        vsscratch: VSSCRATCH = 0,
        vsepc: VSEPC = 0,
        vscause: VSCAUSE = 0,
        vstval: VSTVAL = 0,
        /// The guest's interrupt enables, as bits of `hvip`; and the hypervisor's own, which is always on where it watches files. No others can be set.
        hie: HIE = hart.own_enables,
        /// Interrupts that the hypervisor holds up for it.
        hvip: HVIP = 0,
    }
}

/// What registers are after reset depends on that of a hart.
#[derive(Debug, Clone, Copy)]
struct Hart {
    /// As in [`Features`].
    units: u64,
    /// What of `hie` is on for the hypervisor itself.
    own_enables: u64,
}

impl Hart {
    fn of(features: &Features) -> Self {
        Self { units: features.units, own_enables: if features.guest_files() > 0 { hie::SGEI } else { 0 } }
    }
}

/// `vsstatus` after reset. The units that there are are on, as programs rely on a firmware that switches them on (OpenSBI does); the first use
/// traps here all the same.
const fn initial_vsstatus(units: u64) -> u64 {
    status::UXL_64 | units & (status::FS_INITIAL | status::VS_INITIAL)
}

/// The registers of a vCPU that stay in the hart while it is the loaded one, whoever runs.
///
/// The extension registers (floating point, vector) are lazier still: they stay in the hart when other vCPUs run, which
/// find the units switched off; they are written to memory only if they are dirty, and only when another vCPU uses
/// the units or this one leaves the core.
pub(super) struct World {
    hgatp: u64,
    registers: Registers,
    /// Leaves the hart first, and comes last: see [`Self::save`] and [`Self::load`].
    vsatp: u64,
    pub(super) shadow: OwnShadow,
    /// What is seldom needed of a switch.
    extra: Extra,
    /// Only if [`Extra::INDIRECT`].
    vsiselect: u64,
    /// Of the hart that it is for.
    hart: Hart,
    /// The files that are watched while it runs, a bit each.
    watched: u64,
    /// See [`give_up_reservation`].
    nowhere: u64,
    float: FloatRegisters,
    vector: Option<VectorRegisters>,
    uses: Uses,
}

bitflags! {
    /// Interrupt lines of a vCPU, as bits of `hvip`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Lines: u64 {
        /// Interrupts between the guest's harts.
        const SOFTWARE = virtual_interrupt::SOFTWARE;
        /// Its timer.
        const TIMER = virtual_interrupt::TIMER;
        /// Its interrupt controller.
        const EXTERNAL = virtual_interrupt::EXTERNAL;
    }

    /// The register files that a vCPU has used since its start.
    #[derive(Debug, Clone, Copy)]
    struct Uses: u8 {
        /// Floating point.
        const FLOAT = 1 << 0;
        /// Vectors.
        const VECTOR = 1 << 1;
    }

    /// What some harts want of a world switch beside the usual.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    struct Extra: u8 {
        /// `siselect` is switched.
        const INDIRECT = 1 << 0;
        /// There is no VMID that is this vCPU's alone: what the hart remembers of other guests' translations is forgotten.
        const FLUSH = 1 << 1;
        /// Its guest may read from `stopi` which interrupt is to be served first, and has no guest interrupt file of the hart that says so.
        const TOP = 1 << 2;
        /// Guest interrupt files are watched while it runs.
        const WATCH = 1 << 3;
        /// Its file interrupts nobody until it is loaded: what has come in there would not have woken it.
        const MUTED = 1 << 4;
        /// Some vCPU of the system has a shadow: which exceptions are delegated is switched.
        const DELEGATION = 1 << 5;

        /// What of that comes with guest interrupt files.
        const OF_FILES = Self::INDIRECT.bits() | Self::WATCH.bits();
    }
}

impl World {
    /// A vCPU after reset: translation off, interrupts off, timer never. `file`: the number of its guest interrupt file; 0 if it has none.
    pub(super) fn new(translation: Translation, file: u8, features: &Features) -> Self {
        let Translation { hgatp, shares_vmid, shadow } = translation;
        let hart = Hart::of(features);
        let mut extra = Extra::empty();
        extra.set(Extra::INDIRECT, features.indirect);
        extra.set(Extra::FLUSH, shares_vmid);
        extra.set(Extra::TOP, file == 0 && features.has_interrupt_files());
        extra.set(Extra::WATCH, features.guest_files() > 0);
        extra.set(Extra::DELEGATION, shadow.modes_are_switched());
        Self {
            hgatp: shadow.hgatp(hgatp),
            registers: Registers::after_reset(&hart),
            vsatp: shadow.vsatp(),
            shadow,
            extra,
            vsiselect: 0,
            hart,
            watched: 0,
            nowhere: 0,
            float: FloatRegisters::new(features.double),
            vector: features.vlenb.map(VectorRegisters::new),
            uses: Uses::empty(),
        }
    }

    /// Resets all but what it was made with, for a start through HSM.
    pub(super) fn reset(&mut self) {
        // Without `..`, so that who adds a field has to say here whether it is reset.
        let Self {
            registers,
            vsatp,
            shadow,
            vsiselect,
            float,
            vector,
            uses,
            hart,
            hgatp: _,
            extra: _,
            watched: _,
            nowhere: _,
        } = self;
        *registers = Registers::after_reset(hart);
        shadow.reset();
        *vsatp = shadow.vsatp();
        *vsiselect = 0;
        // What it hasn't used is as it was made: nobody but a save writes it.
        if uses.contains(Uses::FLOAT) {
            float.reset();
        }
        if let Some(vector) = vector {
            vector.reset();
        }
        *uses = Uses::empty();
    }

    /// Supervisor registers of the vCPU, which is saved, for a report, by name.
    #[cfg(feature = "watchdog")]
    pub(super) fn system_registers(&self) -> [(&'static str, u64); 6] {
        let Registers { vsstatus, vstvec, vsepc, vscause, vstval, .. } = &self.registers;
        [
            ("vsstatus", *vsstatus),
            ("vstvec", *vstvec),
            ("vsepc", *vsepc),
            ("vscause", *vscause),
            ("vstval", *vstval),
            ("vsatp", self.shadow.satp(self.vsatp)),
        ]
    }

    /// Writes to memory what [`Self::deadline`] is made of. Is there a pending and enabled interrupt already?
    #[inline(always)]
    pub(super) fn save_deadline(&mut self) -> bool {
        let Registers { hie, vstimecmp, .. } = &mut self.registers;
        *hie = csr::read!(csr::HIE);
        *vstimecmp = timer::read!(VSTIMECMP);
        timer::refresh();
        csr::read!(csr::HIP) & *hie & virtual_interrupt::ALL != 0
    }

    /// Writes the hart's registers to memory. The extension registers stay in the hart.
    #[inline(never)]
    pub(super) fn save(&mut self) {
        // Until the next one's is loaded, so that not even a speculative walk puts this guest's tables and the next one's second stage together.
        // SAFETY: only guests use it, and each is entered behind its own `load`: who saves a world has none loaded, or loads another one.
        self.vsatp = unsafe { csr::take!(csr::VSATP) };
        self.registers.save();
        if self.extra.contains(Extra::INDIRECT) {
            self.vsiselect = csr::read!(csr::VSISELECT);
        }
    }

    /// Loads the registers into the hart. The extension registers are for [`Self::load_extensions`]. `hstatus`: as an entry into the guest sets it.
    ///
    /// # Safety
    /// No other vCPU's world is in the hart unsaved.
    #[inline(never)]
    pub(super) unsafe fn load(&mut self, hstatus: u64) {
        // SAFETY: these registers concern only guests, none of which runs now; nothing of another vCPU is lost, as the caller says.
        unsafe {
            csr::write!(csr::HGATP, self.hgatp);
            self.registers.load();
            give_up_reservation(&mut self.nowhere);
            self.load_extra(None, hstatus);
            // Last: a walk may begin as soon as there are tables, and must not find what the hart remembers of another guest.
            csr::write!(csr::VSATP, self.vsatp);
        }
    }

    /// [Saves](Self::save) what the hart holds of another vCPU, and [loads](Self::load) this one.
    ///
    /// # Safety
    /// The world in the hart is that of `old`.
    #[inline(always)]
    pub(super) unsafe fn load_over(&mut self, old: &mut Self, hstatus: u64) {
        // SAFETY: as in `save` and `load`; what is in the hart is that of `old`, as the caller says.
        unsafe {
            old.vsatp = csr::take!(csr::VSATP);
            csr::write!(csr::HGATP, self.hgatp);
            self.registers.load_over(&mut old.registers);
            give_up_reservation(&mut self.nowhere);
            self.load_extra(Some(old), hstatus);
            // Last, as in `load`.
            csr::write!(csr::VSATP, self.vsatp);
        }
    }

    /// The rest of [`Self::load`] and [`Self::load_over`] on harts that want more.
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    unsafe fn load_extra(&mut self, old: Option<&mut Self>, hstatus: u64) {
        // SAFETY: as the caller says; who has one of these on a hart isn't alone in it.
        unsafe {
            if self.extra == Extra::OF_FILES {
                // What an RTOS that is to be fast has: its hart has a file for it, which wakes it, and VMIDs enough.
                self.load_files(hstatus);
                self.load_select(old);
            } else if !self.extra.is_empty() {
                self.load_for_few(old, hstatus);
            }
        }
    }

    /// Which file is the vCPU's, whose interrupts are looked for before it is entered: those of the one before aren't its own. And which others are watched.
    ///
    /// # Safety
    /// As of [`Self::load`]; the hart has such files.
    #[inline(always)]
    unsafe fn load_files(&self, hstatus: u64) {
        // SAFETY: what an entry into the guest writes anyhow.
        unsafe { csr::write!(csr::HSTATUS, hstatus) };
        files::watch(self.watched);
    }

    /// Loads `vsiselect`.
    ///
    /// # Safety
    /// As of [`Self::load`]; the hart has this register.
    #[inline(always)]
    unsafe fn load_select(&self, old: Option<&mut Self>) {
        // SAFETY: as the caller says.
        unsafe {
            match old {
                Some(old) => old.vsiselect = csr::swap!(csr::VSISELECT, self.vsiselect),
                None => csr::write!(csr::VSISELECT, self.vsiselect),
            }
        }
    }

    /// The same as [`Self::load_extra`] for all others.
    ///
    /// # Safety
    /// As there.
    #[inline(never)]
    unsafe fn load_for_few(&mut self, old: Option<&mut Self>, hstatus: u64) {
        // SAFETY: as the caller says.
        unsafe {
            if self.extra.contains(Extra::WATCH) {
                self.load_files(hstatus);
            }
            if self.extra.contains(Extra::INDIRECT) {
                self.load_select(old);
            }
            if self.extra.contains(Extra::MUTED) {
                // Whoever has a file has both of the above.
                self.extra.remove(Extra::MUTED);
                files::interrupt_again();
                csr::write!(csr::VSISELECT, self.vsiselect);
            }
        }
        self.show_external(self.registers.hvip & Lines::EXTERNAL.bits() != 0);
        if BUILT && self.extra.contains(Extra::DELEGATION) {
            self.shadow.enter(&mut self.vsatp);
        }
        if self.extra.contains(Extra::FLUSH) {
            fence::guest_physical_all();
            fence::guest_all();
        }
    }

    /// Which guest interrupt files of its hart are watched while it runs. The vCPU is saved.
    pub(super) fn watch_files(&mut self, files: u64) {
        self.watched = files;
    }

    /// The file of the vCPU, which is saved, interrupts nobody from now on, until it is loaded.
    ///
    /// # Safety
    /// It has the file of this number of this hart.
    pub(super) unsafe fn mute_file(&mut self, number: u8) {
        self.extra.insert(Extra::MUTED);
        // SAFETY: as the caller says; it isn't in the hart, being saved.
        unsafe { files::mute(number) };
    }

    /// Its file has been put back to reset.
    pub(super) fn forget_mute(&mut self) {
        self.extra.remove(Extra::MUTED);
    }

    /// The files that are watched while it runs, as [set](Self::watch_files).
    #[inline]
    pub(super) fn watched_files(&self) -> u64 {
        self.watched
    }

    /// Has the vCPU, which is saved or sleeps ([`Self::save_deadline`]), its external interrupt enabled?
    pub(super) fn listens_to_file(&self) -> bool {
        self.registers.hie & Lines::EXTERNAL.bits() != 0
    }

    /// The external interrupt of the loaded vCPU is pending, or no longer: what its guest reads from `stopi`. The hart finds that one interrupt there only
    /// in a guest interrupt file, or where the hypervisor puts it (AIA, section 6.3.3).
    #[inline(always)]
    pub(super) fn show_external(&self, pending: bool) {
        if self.extra.contains(Extra::TOP) {
            let hvictl = hvictl::IID_EXTERNAL | if pending { hvictl::HIGHEST_PRIORITY } else { 0 };
            // SAFETY: concerns only guests, and each finds its own value there when it is loaded; the hart has this register.
            unsafe { csr::write!(csr::HVICTL, hvictl) };
        }
    }

    /// True if the vCPU, which has just been loaded, is likely to use its extension registers soon: it has used
    /// them before, and the guest has something in them at this moment. (Linux switches them off in its kernel; in the
    /// state "initial" there is nothing in them.)
    #[inline]
    pub(super) fn wants_extensions(&self) -> bool {
        !self.uses.is_empty()
            && (self.uses.contains(Uses::FLOAT) && self.registers.vsstatus & status::FS >= status::FS_CLEAN
                || self.uses.contains(Uses::VECTOR)
                    && self.registers.vsstatus & status::VS >= status::VS_CLEAN)
    }

    /// Writes the extension registers to memory, as far as they may have changed in the hart since [`Self::load_extensions`].
    /// `context` is this vCPU's.
    ///
    /// # Safety
    /// The extension registers in the hart are this vCPU's.
    pub(super) unsafe fn save_extensions(&mut self, context: &mut Context) {
        let (float, vector) = (context.sstatus & status::FS, context.sstatus & status::VS);
        if float != 0 {
            // SAFETY: the unit is switched on for the copy.
            unsafe {
                csr::set!(csr::SSTATUS, status::FS);
                if float == status::FS_DIRTY { self.float.save() } else { self.float.save_control() }
            }
            context.sstatus = context.sstatus & !status::FS | status::FS_CLEAN;
        }
        if let Some(registers) = &mut self.vector
            && vector != 0
        {
            // SAFETY: as above; the registers' length is the hart's, as no core begins on one of another length (`boot::cores::secondary`).
            unsafe {
                csr::set!(csr::SSTATUS, status::VS);
                if vector == status::VS_DIRTY { registers.save() } else { registers.save_control() }
            }
            context.sstatus = context.sstatus & !status::VS | status::VS_CLEAN;
        }
    }

    /// Loads the extension registers into the hart, those that the vCPU has ever used, and switches their units on in
    /// `context`, which is this vCPU's.
    ///
    /// # Safety
    /// What the hart held of another vCPU has been saved.
    pub(super) unsafe fn load_extensions(&self, context: &mut Context) {
        // SAFETY: the units are switched on for the copy; guests see them as their own `sstatus` says. The vector registers' length is the
        // hart's, as in `save_extensions`.
        unsafe {
            if self.uses.contains(Uses::FLOAT) {
                csr::set!(csr::SSTATUS, status::FS);
                self.float.load();
                context.sstatus = context.sstatus & !status::FS | status::FS_CLEAN;
            }
            if let Some(vector) = &self.vector
                && self.uses.contains(Uses::VECTOR)
            {
                csr::set!(csr::SSTATUS, status::VS);
                vector.load();
                context.sstatus = context.sstatus & !status::VS | status::VS_CLEAN;
            }
        }
    }

    /// Answers an illegal instruction of the loaded vCPU: was it only that the hypervisor had switched off a unit that the
    /// guest has on? Then notes that the vCPU uses it and says true; its registers have to be loaded before it goes on.
    pub(super) fn needs_extensions(&mut self, context: &Context) -> bool {
        // The fields may be writable where there is no unit ("Extension Context Status in mstatus Register": for firmware that emulates one).
        let guest = csr::read!(csr::VSSTATUS) & self.hart.units;
        let float = context.sstatus & status::FS == 0 && guest & status::FS != 0;
        let vector = context.sstatus & status::VS == 0 && guest & status::VS != 0;
        self.uses |= if float { Uses::FLOAT } else { Uses::empty() };
        self.uses |= if vector { Uses::VECTOR } else { Uses::empty() };
        float | vector
    }

    /// Raises or lowers interrupt lines of the vCPU while it isn't loaded.
    #[inline]
    pub(super) fn set_lines(&mut self, lines: Lines, raised: bool) {
        let hvip = &mut self.registers.hvip;
        *hvip = *hvip & !lines.bits() | if raised { lines.bits() } else { 0 };
    }

    /// When the saved vCPU's timer is due, if it may interrupt it.
    #[inline]
    pub(super) fn deadline(&self) -> Option<u64> {
        let registers = &self.registers;
        (registers.hie & Lines::TIMER.bits() != 0 && registers.vstimecmp != u64::MAX)
            .then_some(registers.vstimecmp)
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
    (csr::read!(csr::HIE) & Lines::TIMER.bits() != 0).then(|| timer::read!(VSTIMECMP))
}

/// No vCPU's world is in the hart any more. What interrupts the one that was would wake the hart again and again, although nobody waits for it: an
/// interrupt that is enabled ends [`wait`](crate::arch::hart::wait), delegated or not (privileged specification, Wait for Interrupt). Nor are its tables
/// there for speculative walks ([`World::save`]).
#[inline]
pub fn forget() {
    // SAFETY: concerns only guests, none of which is loaded.
    unsafe {
        // Where there are such files, they still do.
        csr::write!(csr::HIE, hie::SGEI);
        csr::write!(csr::VSATP, 0);
    }
    timer::forget();
    forget_second_stage();
}

/// Raises interrupt lines of the loaded vCPU.
#[inline]
pub fn raise(lines: Lines) {
    // SAFETY: concerns only the guest.
    unsafe { csr::set!(csr::HVIP, lines.bits()) }
}

/// Lowers interrupt lines of the loaded vCPU.
#[inline]
pub fn lower(lines: Lines) {
    // SAFETY: concerns only the guest.
    unsafe { csr::clear!(csr::HVIP, lines.bits()) }
}

/// Takes the loaded vCPU's software interrupt back. True if there was one.
pub fn take_software_interrupt() -> bool {
    let pending = csr::read!(csr::HVIP) & Lines::SOFTWARE.bits() != 0;
    lower(Lines::SOFTWARE);
    pending
}

/// Sets the timer of the loaded vCPU.
#[inline]
pub fn set_timer(at: u64) {
    timer::set_deadline(at);
}

/// Which register `sireg` is for the loaded vCPU. Only where guests [can have](super::hart::Features::has_interrupt_files) interrupt files.
pub fn indirect_register() -> u64 {
    csr::read!(csr::VSISELECT)
}

/// Pending and enabled interrupts of the loaded vCPU: of the lines that are held up for it, its timer, and the guest interrupt file of the hart that it
/// has, if it has one.
#[inline]
pub fn loaded_wakeful_lines() -> Lines {
    timer::refresh();
    Lines::from_bits_truncate(csr::read!(csr::HIP) & csr::read!(csr::HIE))
}

/// The hart would interrupt the loaded vCPU if it was entered, or wake it.
#[inline]
pub fn is_interrupted() -> bool {
    !loaded_wakeful_lines().is_empty()
}
