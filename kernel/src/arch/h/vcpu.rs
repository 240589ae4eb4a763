//! The state of a vCPU, as the rest of the kernel sees it: by what it is for.
use core::ffi::c_void;

use super::context::Context;
use super::hart::Features;
use super::world::{Lines, Translation, World};
use crate::arch::riscv::csr::{self, hstatus, status};
use crate::arch::vcpu::{A0, A1};

/// All that a hart holds of a vCPU. What of it is up to date in memory is said at each function: *saved* is a vCPU whose world is in no hart,
/// *loaded* is the one whose world is in this hart. Registers that every trap saves can always be asked for.
pub struct VcpuState {
    pub(in crate::arch) context: Context,
    pub(super) world: World,
    /// No other vCPU can ever want its core.
    alone: bool,
    /// Its guest interrupt file, by its number; 0 if it has none.
    file: u8,
}

// SAFETY: `context.cpu` is all that could not be sent. Nobody follows it but the trap entry, while the vCPU runs, and the core that runs it has
// put itself there (`load` and `load_over`, whose callers promise what the trap entry needs of it).
unsafe impl Send for VcpuState {}

impl VcpuState {
    /// A vCPU after reset: translation off, interrupts off, timer never. `alone`: no other vCPU can ever want its core, so it may wait there
    /// by itself. `file`: the number of the guest interrupt file that its hart has for it, for good; 0 if none. Allocates: only at boot.
    pub fn new(translation: Translation, alone: bool, file: u8, features: &Features) -> Self {
        Self {
            context: Context::new(alone, file, translation.shadow.hstatus()),
            world: World::new(translation, file, features),
            alone,
            file,
        }
    }

    /// Puts it, saved, to the state in which SBI HSM starts a hart.
    pub fn start(&mut self, hart: u64, address: u64, opaque: u64) {
        self.context = Context::new(self.alone, self.file, self.world.shadow.hstatus());
        self.context.pc = address;
        (self.context.x[A0], self.context.x[A1]) = (hart, opaque);
        self.world.reset();
    }

    /// Puts it, loaded, to where SBI HSM resumes a hart from a suspension that has kept nothing. Which interrupts wake it, and when its timer is due, stays.
    ///
    /// # Safety
    /// As of [`Self::load`], but that it is this vCPU's world that is in the hart.
    pub unsafe fn resume_at(&mut self, hart: u64, address: u64, opaque: u64, _: *mut c_void) {
        self.context.pc = address;
        (self.context.x[A0], self.context.x[A1]) = (hart, opaque);
        // SAFETY: the register concerns only guests, and this one is to have its interrupts off.
        unsafe { csr::clear!(csr::VSSTATUS, status::SIE) };
        self.leave_address_space();
    }

    /// Was it in its guest's kernel when it trapped last?
    #[inline(always)]
    pub fn is_in_kernel(&self) -> bool {
        self.context.sstatus & status::SPP != 0
    }

    /// Where it was when it trapped last, as a report has it.
    pub fn mode(&self) -> &'static str {
        if self.is_in_kernel() { "VS" } else { "VU" }
    }

    /// Supervisor registers of the loaded vCPU for a report, by name.
    pub fn system_registers(&self) -> [(&'static str, u64); 6] {
        [
            ("vsstatus", csr::read!(csr::VSSTATUS)),
            ("vstvec", csr::read!(csr::VSTVEC)),
            ("vsepc", csr::read!(csr::VSEPC)),
            ("vscause", csr::read!(csr::VSCAUSE)),
            ("vstval", csr::read!(csr::VSTVAL)),
            ("vsatp", self.world.shadow.satp(csr::read!(csr::VSATP))),
        ]
    }

    /// The same of one that is saved.
    #[cfg(feature = "watchdog")]
    pub fn saved_system_registers(&self) -> [(&'static str, u64); 6] {
        self.world.system_registers()
    }

    /// From its next entry on, returns from its kernel trap ([`Trap::KernelReturn`](super::trap::Trap)), or don't.
    #[inline(always)]
    pub fn watch_returns(&mut self, watch: bool) {
        self.context.hstatus = self.context.hstatus & !hstatus::VTSR | if watch { hstatus::VTSR } else { 0 };
    }

    /// The exceptions that its guest takes itself, as [`delegate_to_guests`](super::hart::delegate_to_guests) wants them. And whether the world switch sets
    /// them: not if they are the same for all vCPUs of the system.
    #[inline(always)]
    pub fn delegation(&self) -> (u64, bool) {
        (self.world.shadow.delegated(), self.world.shadow.modes_are_switched())
    }

    /// Raises or lowers interrupt lines of the saved vCPU. For the loaded one, there is [`raise`](super::world::raise).
    #[inline]
    pub fn set_lines(&mut self, lines: Lines, raised: bool) {
        self.world.set_lines(lines, raised);
    }

    /// Which guest interrupt files of its hart are watched while it runs, a bit each. The vCPU is saved.
    pub fn watch_files(&mut self, files: u64) {
        self.world.watch_files(files);
    }

    /// The guest interrupt file of the vCPU, which is saved, interrupts nobody from now on, until it is loaded.
    ///
    /// # Safety
    /// It has the file of this number of this hart.
    pub unsafe fn mute_file(&mut self, number: u8) {
        // SAFETY: as the caller says.
        unsafe { self.world.mute_file(number) };
    }

    /// Its file has been put back to reset.
    pub fn forget_mute(&mut self) {
        self.world.forget_mute();
    }

    /// The files that are watched while it runs, as [set](Self::watch_files).
    #[inline]
    pub fn watched_files(&self) -> u64 {
        self.world.watched_files()
    }

    /// Has the vCPU, which is saved or sleeps, its external interrupt enabled?
    pub fn listens_to_file(&self) -> bool {
        self.world.listens_to_file()
    }

    /// The external interrupt line of the loaded vCPU is set to that, and its guest may ask which interrupt goes first.
    #[inline(always)]
    pub fn show_external(&self, pending: bool) {
        self.world.show_external(pending);
    }

    /// When the saved vCPU's timer is due, if it may interrupt it.
    #[inline(always)]
    pub fn deadline(&self) -> Option<u64> {
        self.world.deadline()
    }

    /// Writes to memory what this hart holds of the loaded vCPU. The extension registers stay in the hart.
    #[inline(always)]
    pub fn save(&mut self) {
        self.world.save();
    }

    /// The loaded vCPU is going to sleep: brings its [`Self::deadline`] up to date, as that of a saved one. True if there is an interrupt already for
    /// which it had better stay awake.
    #[inline(always)]
    pub fn save_deadline(&mut self) -> bool {
        self.world.save_deadline()
    }

    /// Loads the saved vCPU into this hart, which is the one of `cpu`. The extension registers are for [`Self::load_extensions`].
    ///
    /// # Safety
    /// No other vCPU's world is in the hart unsaved. `cpu` is this core's [`Cpu`](crate::cpu::Cpu), which lives for ever; whenever a guest
    /// traps on this hart, nobody has a reference to it: the trap entry makes one, exclusive, from this pointer, and takes the stack from
    /// there.
    #[inline(always)]
    pub unsafe fn load(&mut self, cpu: *mut c_void) {
        self.context.cpu = cpu;
        // SAFETY: as the caller says.
        unsafe { self.world.load(self.context.hstatus) }
    }

    /// [Saves](Self::save) the vCPU that is loaded in this hart, and [loads](Self::load) this one.
    ///
    /// # Safety
    /// The world in the hart is that of `old`. `cpu` is as for [`Self::load`].
    #[inline(always)]
    pub unsafe fn load_over(&mut self, old: &mut Self, cpu: *mut c_void) {
        self.context.cpu = cpu;
        // SAFETY: as the caller says.
        unsafe { self.world.load_over(&mut old.world, self.context.hstatus) }
    }

    /// The extension registers in the hart are another vCPU's: the units are switched off for this one.
    #[inline(always)]
    pub fn switch_extensions_off(&mut self) {
        self.context.sstatus &= !(status::FS | status::VS);
    }

    /// True if the vCPU, which has just been loaded, is likely to use its extension registers soon.
    #[inline(always)]
    pub fn wants_extensions(&self) -> bool {
        self.world.wants_extensions()
    }

    /// Writes the extension registers to memory, as far as they may have changed in the hart since [`Self::load_extensions`].
    ///
    /// # Safety
    /// The extension registers in the hart are this vCPU's.
    #[inline(always)]
    pub unsafe fn save_extensions(&mut self) {
        // SAFETY: as the caller says.
        unsafe { self.world.save_extensions(&mut self.context) }
    }

    /// Loads the extension registers into the hart, those that the vCPU has ever used, and switches their units on.
    ///
    /// # Safety
    /// What the hart held of another vCPU has been saved.
    #[inline(always)]
    pub unsafe fn load_extensions(&mut self) {
        // SAFETY: as the caller says.
        unsafe { self.world.load_extensions(&mut self.context) }
    }
}
