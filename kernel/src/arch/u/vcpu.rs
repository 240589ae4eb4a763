//! The state of a vCPU, as the rest of the kernel sees it: by what it is for.
use core::ffi::c_void;

use ainori_limits::cause::interrupt;
use ainori_supervisor::{Cause, Privilege, Units};

use super::breakpoints::Breakpoints;
use super::context::Context;
use super::hart::Features;
use super::page::{Registers, watches};
use super::per_hart::per_hart;
use super::senvcfg;
use super::timer::{self, program_alarm};
use super::trap::Exception;
use super::world::{Lines, Translation, World};
use crate::arch::riscv::csr::{self, status};
use crate::arch::vcpu::{A0, A1};

/// The timer's interrupt.
const TIMER: Cause = Cause::interrupt(interrupt::SUPERVISOR_TIMER);

/// Can a vCPU be entered?
pub(super) enum Ready {
    Yes,
    /// What that needs has to be [made](VcpuState::make_ready).
    NotYet,
    /// It has an interrupt, and its programs' traps come to the policy.
    Confined(Exception),
}

/// All that there is of a vCPU. *Loaded* is the one whose registers are the hart's, *saved* any other.
#[repr(C)]
pub struct VcpuState {
    /// First, so that who has this has all.
    pub(in crate::arch) context: Context,
    pub(super) world: World,
    /// Returns of its kernel are told.
    pub(super) watches_returns: bool,
    /// What the hart has of it is as its registers say: nothing of these has changed since it was entered last that the hart has to be told of.
    pub(super) is_settled: bool,
    /// The view that it needs has been made since it was entered last: should it be gone again, as others fence all the time, it is made at the entry, so that it gets on.
    was_ready: bool,
    /// The [page](super::page::Page) says what programs and the kernel may do, as the registers do.
    pub(super) are_rights_told: bool,
    /// Breakpoints in its kernel that stand for other instructions.
    pub(super) breakpoints: Breakpoints,
}

// SAFETY: what could not be sent is `context.cpu`, and the references to its page (`page.rs`), whose cells are for one core at a time, and to the registers in that: of `context`, `world`, its shadow and `breakpoints`.
// The first nobody follows but the trap entry, while the vCPU runs, and the core that runs it has put itself there (`load`, whose caller promises what the trap entry needs of it). By the others
// only the core that has this reaches the page, and in the window the hart that runs the vCPU; and a core's reference to it (`PerHart::loaded`) is gone before another one has the vCPU (`forget`).
unsafe impl Send for VcpuState {}

impl VcpuState {
    /// A vCPU after reset: translation off, interrupts off, timer never. Allocates: only at boot.
    pub fn new(translation: Translation, _: bool, _: u8, features: &Features) -> Self {
        let text = translation.text;
        let world = World::new(translation, features);
        let breakpoints = Breakpoints::new(world.page, text, world.shadow.largest_leaf());
        Self {
            context: Context::new(&world.page.registers),
            world,
            watches_returns: false,
            is_settled: false,
            was_ready: false,
            are_rights_told: false,
            breakpoints,
        }
    }

    /// Puts it, saved, to the state in which SBI HSM starts a hart.
    pub fn start(&mut self, hart: u64, address: u64, opaque: u64) {
        self.context = Context::new(&self.world.page.registers);
        self.context.pc = address;
        (self.context.x[A0], self.context.x[A1]) = (hart, opaque);
        (self.is_settled, self.are_rights_told) = (false, false);
        self.breakpoints.forget();
        self.world.reset();
    }

    /// Puts it, loaded, to where SBI HSM resumes a hart from a suspension that has kept nothing. Which interrupts wake it, and when its timer is due, stays.
    ///
    /// # Safety
    /// As of [`Self::load`], but that it is this vCPU's world that is in the hart.
    pub unsafe fn resume_at(&mut self, hart: u64, address: u64, opaque: u64, cpu: *mut c_void) {
        self.context.pc = address;
        (self.context.x[A0], self.context.x[A1]) = (hart, opaque);
        self.breakpoints.forget();
        self.world.forget_translation();
        // SAFETY: as the caller says; all that the hart has of it is in memory.
        unsafe { self.load(cpu) }
    }

    /// Its supervisor's registers.
    #[inline(always)]
    pub(super) fn registers_of_kernel(&self) -> &'static Registers {
        &self.world.page.registers
    }

    /// Was it in its guest's kernel when it trapped last, or is since?
    #[inline(always)]
    pub fn is_in_kernel(&self) -> bool {
        self.registers_of_kernel().with(|registers| registers.privilege() == Privilege::Supervisor)
    }

    /// Where it was when it trapped last, as a report has it.
    pub fn mode(&self) -> &'static str {
        if self.is_in_kernel() { "VS" } else { "VU" }
    }

    /// Supervisor registers of the vCPU for a report, by name.
    pub fn system_registers(&self) -> [(&'static str, u64); 6] {
        let satp = self.world.shadow.satp();
        self.registers_of_kernel().with(|registers| {
            let [pc, cause, value] = registers.last_trap();
            [
                ("vsstatus", registers.sstatus()),
                ("vstvec", registers.stvec()),
                ("vsepc", pc),
                ("vscause", cause),
                ("vstval", value),
                ("vsatp", satp),
            ]
        })
    }

    /// The same of one that is in no hart: they are in memory in any case.
    #[cfg(feature = "watchdog")]
    pub fn saved_system_registers(&self) -> [(&'static str, u64); 6] {
        self.system_registers()
    }

    /// Calls of its programs, returns of its kernel and interrupts of its own that the fast path has carried out, in all of its guest's lives.
    pub fn fast_path_count(&self) -> u64 {
        self.world.page.fast.count.get()
    }

    /// From its next entry on, returns from its kernel are told ([`Trap::KernelReturn`](super::trap::Trap)), or not.
    #[inline(always)]
    pub fn watch_returns(&mut self, watch: bool) {
        self.is_settled &= self.watches_returns == watch;
        self.watches_returns = watch;
    }

    /// The exceptions that its guest takes itself: none. And whether the world switch sets them: no.
    #[expect(clippy::unused_self, reason = "as there is one to ask elsewhere")]
    #[inline(always)]
    pub const fn delegation(&self) -> (u64, bool) {
        (0, false)
    }

    /// Raises or lowers interrupt lines of the saved vCPU. For the loaded one, there is [`raise`](super::world::raise).
    #[inline]
    pub fn set_lines(&mut self, lines: Lines, raised: bool) {
        self.world.set_lines(lines, raised);
    }

    /// Which guest interrupt files of its hart are watched while it runs: there are none.
    #[expect(clippy::unused_self, reason = "as there is one to ask elsewhere")]
    pub const fn watch_files(&mut self, _: u64) {}

    /// # Safety
    /// Its hart has none.
    #[expect(clippy::unused_self, reason = "as there is one to ask elsewhere")]
    pub const unsafe fn mute_file(&mut self, _: u8) {}

    /// Its file has been put back to reset.
    #[expect(clippy::unused_self, reason = "as there is one to ask elsewhere")]
    pub const fn forget_mute(&mut self) {}

    /// The files that are watched while it runs.
    #[expect(clippy::unused_self, reason = "as there is one to ask elsewhere")]
    #[inline]
    pub const fn watched_files(&self) -> u64 {
        0
    }

    /// Has the vCPU its external interrupt enabled?
    pub fn listens_to_file(&self) -> bool {
        self.registers_of_kernel().with(|registers| registers.enabled() & Lines::EXTERNAL.bits() != 0)
    }

    /// The external interrupt line is set: a guest here can't ask which interrupt goes first.
    #[expect(clippy::unused_self, reason = "as there is one to ask elsewhere")]
    #[inline(always)]
    pub const fn show_external(&self, _: bool) {}

    /// When the vCPU's timer is due, if it may interrupt it.
    #[inline(always)]
    pub fn deadline(&self) -> Option<u64> {
        self.world.deadline()
    }

    /// Writes to memory what this hart holds of the loaded vCPU. The extension registers stay in the hart.
    #[inline(always)]
    #[expect(clippy::unused_self, reason = "as there is one to ask elsewhere")]
    pub const fn save(&mut self) {}

    /// The loaded vCPU is going to sleep. True if there is an interrupt already for
    /// which it had better stay awake.
    #[inline(always)]
    pub fn save_deadline(&mut self) -> bool {
        self.world.is_interrupted()
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
        self.is_settled = false;
        self.world.page.fast.kernel.set(per_hart().kernel.get());
        self.world.load();
        // If the hart can be told all without a step, it is told now: who waits for the vCPU's timer behind this goes on sooner then.
        if self.world.shadow.is_known(self.registers_of_kernel().with(|registers| registers.view())) {
            self.settle(false);
        }
    }

    /// [Saves](Self::save) the vCPU that is loaded in this hart, and [loads](Self::load) this one.
    ///
    /// # Safety
    /// The world in the hart is that of `old`. `cpu` is as for [`Self::load`].
    #[inline(always)]
    pub unsafe fn load_over(&mut self, _: &mut Self, cpu: *mut c_void) {
        // SAFETY: as the caller says.
        unsafe { self.load(cpu) }
    }

    /// The extension registers in the hart are another vCPU's: the units are switched off for this one.
    #[inline(always)]
    pub fn switch_extensions_off(&mut self) {
        self.is_settled &= self.context.loaded.is_none();
        (self.context.loaded, self.context.dirty) = (Units::NONE, Units::NONE);
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
        self.is_settled = false;
        // SAFETY: as the caller says.
        unsafe { self.world.load_extensions(&mut self.context) }
    }

    /// Before the loaded vCPU is entered: it takes an interrupt that it has, and the hart is told what has changed.
    #[inline(always)]
    pub(super) fn prepare(&mut self) -> Ready {
        let interrupt = self.registers_of_kernel().with(|registers| {
            timer::settle(registers);
            registers.pending_interrupt()
        });
        if interrupt.is_none() && self.is_settled {
            self.was_ready = false;
            return Ready::Yes;
        }
        if let Some(cause) = interrupt {
            if per_hart().confines.get() && !self.is_in_kernel() {
                return Ready::Confined(Exception { cause: cause.bits(), value: 0 });
            }
            let is_in_kernel = self.is_in_kernel();
            let pc = self.context.pc;
            self.context.pc = self.registers_of_kernel().with(|registers| registers.trap(cause, 0, pc));
            if cause == TIMER {
                // The hart's isn't to come for that a second time.
                program_alarm();
            }
            // Of a trap within the kernel nothing follows for the hart.
            if is_in_kernel && self.is_settled {
                return Ready::Yes;
            }
        }
        // What has led here has taken its time: to make a view is another section.
        let makes = core::mem::take(&mut self.was_ready);
        if self.settle(makes) { Ready::Yes } else { Ready::NotYet }
    }

    /// Does a step of what the loaded vCPU needs before it can be entered, the view that it is to see. True if that was the last.
    pub fn make_ready(&mut self) -> bool {
        self.was_ready = self.settle(true);
        self.was_ready
    }

    /// The vCPU has just trapped: what the hart knows of it, and what the fast path has done.
    #[inline(always)]
    pub(super) fn come_back(&mut self) {
        self.context.note_units();
        let written = self.world.page.fast.written.get();
        if written != 0 {
            self.world.page.fast.written.set(0);
            self.context.dirty = self.context.dirty.and(Units::dirty(written));
        }
        self.world.shadow.come_back(self.registers_of_kernel().with(|registers| registers.view()));
    }

    /// Tells the hart all that its registers say. False if the view that they ask for isn't there yet; a step of it has been made if `makes`.
    #[inline(never)]
    fn settle(&mut self, makes: bool) -> bool {
        if !self.are_rights_told {
            self.tell_rights();
        }
        let loaded = self.context.loaded;
        let fast = &self.world.page.fast;
        let (view, in_hart, privilege) = self
            .registers_of_kernel()
            .with(|registers| (registers.view(), registers.hart_status(loaded), registers.privilege()));
        self.context.sstatus = status::UXL_64 | in_hart;
        fast.watches.set(watches(self.watches_returns, per_hart().confines.get()));
        fast.loaded.set(loaded.fields());
        let is_user = privilege == Privilege::User;
        fast.stamp.set(if is_user { 0 } else { fast.stamp_of_kernel.get() });
        let [counters, environment] = [&fast.counters, &fast.environment]
            .map(|[of_user, of_kernel]| if is_user { of_user.get() } else { of_kernel.get() });
        // SAFETY: it concerns user mode only, in which the hypervisor never is.
        unsafe { csr::write!(csr::SCOUNTEREN, counters) }
        senvcfg::set(environment);
        self.is_settled = self.world.shadow.enter_view(view, in_hart & status::MXR != 0, makes);
        self.is_settled
    }

    /// What the hart is told of programs and of the kernel, whichever of the two it executes.
    #[cold]
    fn tell_rights(&mut self) {
        self.are_rights_told = true;
        let fast = &self.world.page.fast;
        self.registers_of_kernel().with(|registers| {
            let privileges = [Privilege::User, Privilege::Supervisor];
            // BOUND: two.
            for ((privilege, counters), environment) in
                privileges.into_iter().zip(&fast.counters).zip(&fast.environment)
            {
                counters.set(registers.counters_in(privilege).into());
                environment.set(registers.environment_in(privilege));
            }
        });
    }
}
