//! The shadow of a vCPU's translations ([`ainori_shadow`]) as this hart has it: in `satp`, with an ASID of the hart for each view of an address
//! space of the guest. The guest's own `satp` is in no hart: whatever it does to it traps, as do its fences and its page faults.
use alloc::{boxed::Box, vec};

use ainori_devices::zicsr::CsrAccess;
use ainori_handover::Progress;
use ainori_limits::cause::exception;
use ainori_manifest::config::{FEWEST_SHADOW_TABLES_WITHOUT_H, MOST_SHADOW_SPACES, SHADOW_TABLES};
use ainori_shadow::{
    Access, Activation, Active, AddressSpace, Choices, Divided, Due, Fault, Format, Memory, Mode, Outcome,
    Satp, Scope, Shadow, TableState, UpToDate, Virtual, Window,
};
use ainori_space::{GuestPhysical, HostPhysical};
use ainori_supervisor::{Privileged, View};

use super::VcpuState;
use super::fence;
use super::page::{ALL_VIEWS, Page, VIEWS, number_of};
use super::per_hart::per_hart;
use super::trap::{Exception, fetch};
use super::window::{self, FORMATS};
pub use crate::arch::page_fault::{Answer, PageFault};
use crate::arch::page_fault::{causes_of, is_block_operation};
use crate::arch::riscv::csr;
use crate::arch::shadow_tables::ShadowTables;
use crate::panic::refuse;

/// Can guests have shadow tables?
pub const BUILT: bool = true;

/// Rows of a table that are cleared at a time. Fewer than with H: an exit takes longer, and what is cleared is often behind one that the firmware has handed on.
pub const ROWS_AT_ONCE: usize = 20;

/// Most views of address spaces of a vCPU: so many ASIDs of each hart are its own. The first ones are the hypervisor's.
const TAGS: u16 = 64;
const FENCE_LENGTH: u8 = Privileged::LENGTH;

/// Where the window is at first, with the tables that its entry leads to.
pub(super) fn first_window(tables: [u64; FORMATS]) -> Window {
    Window { slot: 256, tables: tables.map(HostPhysical) }
}

/// The shadow of a vCPU.
pub struct OwnShadow(Box<Own>);

struct Own {
    shadow: Shadow<'static, ShadowTables, Divided>,
    /// The ASID of the address space with the tag 0.
    first_asid: u16,
    /// Before it is entered, the shadow is reset, and what harts have cached under its ASIDs is forgotten: these were another life's.
    is_reset: bool,
    /// Whether others wait for the instruction that it is amid.
    progress: Progress,
    /// Its view is to be that of its mode.
    mode: Mode,
    page: &'static Page,
}

/// An instruction that reaches the `satp` of a vCPU.
#[derive(Debug, Clone, Copy)]
pub struct AddressSpaceAccess {
    access: CsrAccess,
    rd: u8,
}

impl AddressSpaceAccess {
    pub(super) const fn new(access: CsrAccess, rd: u8) -> Self {
        Self { access, rd }
    }
}

/// A fence that a vCPU executes.
#[derive(Debug, Clone, Copy)]
pub struct GuestFence(Scope);

impl GuestFence {
    pub(super) fn new(address: Option<u64>, asid: Option<u64>) -> Self {
        Self(Scope { address: address.map(Virtual), asid: asid.map(|asid| asid as u16) })
    }
}

/// Which modes of translation the vCPUs of the system have: all of them shadows.
#[derive(Debug, Clone, Copy)]
#[expect(dead_code, reason = "as there is one to tell elsewhere")]
pub struct Modes {
    /// None has another.
    pub switched: bool,
    /// None is without.
    pub unconfined: bool,
}

/// Address spaces of a vCPU's shadow, for so many of its guest.
const fn views(spaces: usize) -> usize {
    let views = VIEWS * spaces;
    if views < TAGS as usize { views } else { TAGS as usize }
}

// What a manifest may say is enough.
const _: () = {
    const fn needed(spaces: usize) -> usize {
        Shadow::<ShadowTables, Divided>::tables_needed(views(spaces))
    }
    assert!(needed(1) <= *SHADOW_TABLES.start() as usize);
    assert!(needed(MOST_SHADOW_SPACES) <= FEWEST_SHADOW_TABLES_WITHOUT_H as usize);
};

impl OwnShadow {
    /// There is no other way to translate here.
    pub fn none(_: bool, _: Modes) -> Self {
        refuse(format_args!("the harts of this board lack the H extension: each guest needs shadow tables"))
    }

    /// With so many tables and address spaces, for the vCPU with this number. `None`: too few tables, or too many address spaces. Allocates: only at boot.
    pub fn new(vcpu: u8, choices: Choices, tables: u16, spaces: usize, _: Modes) -> Option<Self> {
        let states = vec![TableState::NEW; tables.into()].leak();
        let spaces = vec![AddressSpace::UNUSED; views(spaces)].leak();
        let page: &'static Page = Box::leak(Page::new());
        let choices = Choices { window: Some(first_window(window::of_page(page))), ..choices };
        let shadow = Shadow::new(choices, ShadowTables::new(tables)?, states, spaces)?;
        let first_asid = (u16::from(vcpu) + 1).wrapping_mul(TAGS);
        let mode = Mode { user: false, sum: false, mxr: false };
        Some(Self(Box::new(Own { shadow, first_asid, is_reset: true, progress: Progress::NONE, mode, page })))
    }

    /// The greatest format that there can be, as far as the hart that boots is asked.
    pub fn greatest_format() -> Format {
        super::map::greatest_format()
    }

    /// Does this hart, which has its map, translate in this format?
    pub fn translates_in(format: Format) -> bool {
        matches!(Satp(per_hart().kernel.get()).format(), Ok(Some(own)) if own >= format)
    }

    /// Has this hart, which has its map, ASIDs enough for any number of vCPUs, or is the window, which all harts share, one in which they forget all at each change? Only at boot.
    pub fn has_asids_for(_: usize) -> bool {
        !window::relies_on_asids() || super::map::has_all_asids()
    }

    /// What there is of its vCPU in the window.
    pub(super) fn page(&self) -> &'static Page {
        self.0.page
    }

    /// Bits of an address within the largest leaf that its guest's tables can have.
    pub(super) const fn largest_leaf(&self) -> u32 {
        self.0.shadow.largest_leaf()
    }

    /// What its guest has in `satp`.
    pub(super) fn satp(&self) -> u64 {
        self.0.shadow.satp().0
    }

    /// Begins anew, without translation, when it is loaded: to reset a vCPU is long enough for a section.
    pub(super) fn reset(&mut self) {
        (self.0.is_reset, self.0.progress) = (true, Progress::NONE);
        // What the fast path was told is another life's as well.
        self.0.change();
    }

    /// The vCPU is this hart's.
    pub(super) fn enter(&mut self) {
        let own = &mut *self.0;
        own.activate();
    }

    /// The vCPU comes from its guest, in this view: by the fast path it may be another one than it went with, or of another address space.
    #[inline]
    pub(super) fn come_back(&mut self, view: View) {
        let own = &mut *self.0;
        if view != own.view() || own.page.fast.satp.get() != own.shadow.satp().0 {
            own.follow(view);
        }
    }

    /// Where an instruction is that it has fetched, and whether it is there in all address spaces.
    pub(super) fn locate(&self, memory: &impl Memory, pc: u64) -> Option<(GuestPhysical, bool)> {
        self.0.shadow.locate(memory, Virtual(pc), self.0.mode)
    }

    /// Would [`Self::enter_view`] be done at once with this view?
    #[inline]
    pub(super) fn is_known(&self, view: View) -> bool {
        self.0.is_told(number_of(view))
    }

    /// Its hart is to walk what is to be seen in this view. False if that has to be made: a step of it has been done if `makes`, or nothing.
    ///
    /// Since nothing of the shadow has changed that the fast path was told of, there is nothing to do but to go to another view, at most.
    #[inline]
    pub(super) fn enter_view(&mut self, view: View, mxr: bool, makes: bool) -> bool {
        let own = &mut *self.0;
        let number = number_of(view);
        if mxr || !own.is_told(number) {
            return self.make_view(view, mxr, makes);
        }
        if view != own.view() {
            own.follow(view);
        }
        true
    }

    /// (Of what is to be made, the first step of a life is to begin anew.)
    #[inline(never)]
    fn make_view(&mut self, view: View, mxr: bool, makes: bool) -> bool {
        let own = &mut *self.0;
        if own.is_reset {
            if makes {
                own.begin_anew();
            }
            return false;
        }
        own.mode = Mode { user: view == View::User, sum: view == View::KernelSum, mxr };
        let view = <Divided as ainori_shadow::View>::of(own.mode);
        let due = match own.shadow.enter_view(view) {
            Some(due) => due,
            None if !makes => return false,
            None => {
                // That may be the end of others.
                own.page.fast.forget_spaces();
                match own.shadow.activate(own.shadow.satp(), view) {
                    Activation::Done(due) => due,
                    Activation::NoMode => Due::Nothing,
                    Activation::NotYet(due) => {
                        // What the fast path was told may be none any more. It is told anew with the last step.
                        own.change();
                        own.carry_out(due);
                        return false;
                    }
                }
            }
        };
        own.activate();
        own.carry_out(due);
        own.publish();
        true
    }
}

impl Own {
    /// Resets the shadow, as it is another life's, or there was none. That is a step of what makes a vCPU ready.
    #[cold]
    fn begin_anew(&mut self) {
        self.is_reset = false;
        self.shadow.reset();
        let _ = self.shadow.distrust();
        fence::guest_asid(self.asid());
        self.change();
    }

    /// The view of its mode.
    const fn view(&self) -> View {
        match self.mode {
            Mode { user: true, .. } => View::User,
            Mode { sum: true, .. } => View::KernelSum,
            _ => View::Kernel,
        }
    }

    /// The fast path has changed the view, or the address space: to one that it was told of.
    #[inline(never)]
    fn follow(&mut self, view: View) {
        (self.mode.user, self.mode.sum) = (view == View::User, view == View::KernelSum);
        let view = <Divided as ainori_shadow::View>::of(self.mode);
        let satp = Satp(self.page.fast.satp.get());
        let is_same = satp == self.shadow.satp();
        // There is no fence due for it, or it hadn't been told.
        let due = if is_same { self.shadow.enter_view(view) } else { self.shadow.activate_known(satp, view) };
        self.activate();
        self.carry_out(due.unwrap_or(Due::Space));
    }

    /// The shadow has changed: what the fast path was told of views doesn't hold any more.
    #[inline]
    fn change(&self) {
        // BOUND: three.
        for walked in &self.page.fast.walked {
            walked.set(0);
        }
        self.page.fast.forget_spaces();
    }

    /// Does the fast path know this view? With MXR it knows none.
    #[inline]
    fn is_told(&self, number: usize) -> bool {
        self.page.fast.walked.get(number).is_some_and(|walked| walked.get() != 0)
    }

    /// The same, if it has behind a call that was made when this was up to date, and asks for this.
    #[inline(always)]
    fn has_changed(&self, before: UpToDate, due: Due) -> bool {
        let has_changed = due == Due::Root || self.shadow.up_to_date() != before;
        if has_changed {
            self.change();
        }
        has_changed
    }

    /// Tells the fast path in which address space it is, and which views there are beside the active one. (With MXR there is one more, to which it doesn't go.)
    fn publish(&self) {
        let fast = &self.page.fast;
        fast.satp.set(self.shadow.satp().0);
        // BOUND: three.
        for (view, walked) in ALL_VIEWS.into_iter().zip(&self.page.fast.walked) {
            let mode = Mode { user: view == View::User, sum: view == View::KernelSum, mxr: false };
            let active = self.shadow.sibling(<Divided as ainori_shadow::View>::of(mode));
            let active = active.filter(|_| !self.mode.mxr);
            walked.set(active.map_or(0, |active| self.walked(active)));
        }
        if self.mode.mxr {
            fast.forget_spaces();
        } else if !fast.is_local.get() && matches!(self.shadow.satp().format(), Ok(Some(_))) {
            // Others may be gone to and come back from as long as nothing that is known of breakpoints is for one of them alone.
            fast.remember_space();
        }
    }

    fn walked(&self, active: Active) -> u64 {
        Satp::new(active.format, self.first_asid + u16::from(active.tag), active.root.0).0
    }

    fn asid(&self) -> u64 {
        (self.first_asid + u16::from(self.shadow.active().tag)).into()
    }

    /// Has the hart walk the active address space.
    #[inline(always)]
    fn activate(&self) {
        let active = self.shadow.active();
        let hart = per_hart();
        hart.walked.set(self.walked(active));
        let window = self.shadow.window().map_or(0, |window| window.start(active.format).0);
        if window != hart.window.get() {
            hart.window.set(window);
            // SAFETY: the window is there in the hypervisor's own map, as in the vCPU's: it is in each place where one can be.
            unsafe { csr::write!(csr::STVEC, window) }
        }
    }

    /// Carries out a fence of the vCPU that is loaded.
    fn carry_out(&self, due: Due) {
        match due {
            Due::Nothing => {}
            Due::Page(address) => fence::guest_page_asid(address.0, self.asid()),
            Due::Space => fence::guest_asid(self.asid()),
            Due::Root => {
                self.activate();
                fence::guest_asid(self.asid());
            }
        }
    }
}

/// What is done for the loaded vCPU.
impl VcpuState {
    #[inline(always)]
    fn own_shadow(&mut self) -> &mut Own {
        &mut self.world.shadow.0
    }

    /// Has it a shadow? Always.
    #[expect(clippy::unused_self, reason = "as there is one to ask elsewhere")]
    #[inline(always)]
    pub const fn has_shadow(&self) -> bool {
        true
    }

    /// Answers its page fault, or does a step of that.
    #[inline(never)]
    pub fn answer(&mut self, fault: PageFault, memory: &impl Memory) -> Answer {
        let PageFault { access, address } = fault;
        let mut needed = access;
        let before = self.own_shadow().shadow.up_to_date();
        // BOUND: twice.
        let outcome = loop {
            let own = self.own_shadow();
            match own.shadow.fault(memory, Virtual(address), needed, own.mode) {
                // Its faults are those of stores, but it needs no more than a right to load.
                Outcome::Fault(Fault::Page) if needed == Access::Store && self.is_at_block_operation() => {
                    needed = Access::Load;
                }
                outcome => break outcome,
            }
        };
        match outcome {
            Outcome::Again(due) => {
                self.conclude(before, due);
                Answer::Again
            }
            Outcome::NotYet(due) => {
                self.conclude(before, due);
                Answer::NotYet
            }
            Outcome::Window => {
                let due = self.own_shadow().shadow.move_window();
                self.conclude(before, due);
                Answer::NotYet
            }
            Outcome::Fault(fault) => {
                Answer::Guest(Exception { cause: causes_of(access, fault).0.into(), value: address })
            }
            Outcome::Elsewhere(GuestPhysical(at)) => {
                per_hart().elsewhere.set(at);
                // SAFETY: nobody returns from the present trap by these, and the next one writes them anew.
                unsafe {
                    csr::write!(csr::SCAUSE, causes_of(access, Fault::Page).1.into());
                    csr::write!(csr::STVAL, address);
                }
                Answer::Elsewhere
            }
        }
    }

    /// Right behind a page fault that was [answered](Self::answer), another step: pages beside that one.
    #[inline(never)]
    pub fn fill_neighbours(&mut self, memory: &impl Memory) {
        self.own_shadow().shadow.fill_neighbours(memory);
    }

    /// The shadow asks for this behind a call that was made when this was up to date.
    #[inline(always)]
    fn conclude(&mut self, before: UpToDate, due: Due) {
        let own = self.own_shadow();
        let has_changed = own.has_changed(before, due);
        own.carry_out(due);
        self.is_settled &= !has_changed;
    }

    /// Is the instruction one that cleans, flushes or invalidates a cache block (Zicbom)?
    #[inline(never)]
    fn is_at_block_operation(&self) -> bool {
        fetch(self, exception::STORE_PAGE_FAULT.into()).is_some_and(is_block_operation)
    }

    /// Carries out the instruction that reaches its `satp`. False if that was only a step of it.
    #[inline(never)]
    pub fn access_address_space(&mut self, access: AddressSpaceAccess) -> bool {
        let AddressSpaceAccess { access, rd } = access;
        self.is_settled = false;
        let own = self.own_shadow();
        let old = own.shadow.satp().0;
        if access.writes() {
            let view = <Divided as ainori_shadow::View>::of(own.mode);
            own.change();
            let new = Satp(access.applied_to(old));
            match own.shadow.activate(new, view) {
                Activation::Done(due) => {
                    own.activate();
                    own.carry_out(due);
                    self.breakpoints.leave(Satp(old), new);
                }
                Activation::NoMode => {}
                Activation::NotYet(due) => {
                    own.carry_out(due);
                    return false;
                }
            }
        }
        self.set_register(rd, old);
        self.skip(Privileged::LENGTH);
        true
    }

    /// Carries out its write of `satp`, which it has nothing of, if that leads to an address space that is found at once. False: nothing has been done.
    #[inline(never)]
    pub fn enter_known_address_space(&mut self, satp: u64) -> bool {
        let own = self.own_shadow();
        let view = <Divided as ainori_shadow::View>::of(own.mode);
        let (old, new) = (own.shadow.satp(), Satp(satp));
        let Some(due) = own.shadow.activate_known(new, view) else { return false };
        if !old.has_mode_of(new) {
            own.page.fast.forget_spaces();
        }
        own.activate();
        own.carry_out(due);
        // The fast path goes on in the same view.
        own.publish();
        self.breakpoints.leave(old, new);
        self.skip(Privileged::LENGTH);
        true
    }

    /// Carries out its fence. False if that was only a step of it.
    #[inline(never)]
    pub fn carry_out_fence(&mut self, GuestFence(scope): GuestFence) -> bool {
        if self.fence(scope).is_none() {
            return false;
        }
        self.skip(FENCE_LENGTH);
        true
    }

    /// The same of one of an address, which takes but a step. Where that finds nothing, it may be that something is there from now on.
    #[inline(never)]
    pub fn carry_out_page_fence(&mut self, GuestFence(scope): GuestFence, memory: &impl Memory) {
        if let Some(due) = self.fence(scope) {
            if due == Due::Nothing
                && let Scope { address: Some(address), asid: None } = scope
            {
                self.own_shadow().shadow.prefetch(memory, address);
            }
            self.skip(FENCE_LENGTH);
        }
    }

    /// Who waits for its fences.
    #[inline(always)]
    pub fn progress(&mut self) -> Option<&mut Progress> {
        Some(&mut self.own_shadow().progress)
    }

    /// A call of its own, or another vCPU, has it fence a page, of one of its address spaces or of all. False if that was only a step of it.
    pub fn forget_page(&mut self, address: u64, asid: Option<u16>) -> bool {
        self.fence(Scope { address: Some(Virtual(address)), asid }).is_some()
    }

    /// Forgets what a fence covers: what the hart had to. `None` if that was only a step of it.
    #[inline]
    fn fence(&mut self, scope: Scope) -> Option<Due> {
        self.forget_breakpoints(scope);
        let own = self.own_shadow();
        let before = own.shadow.up_to_date();
        let due = own.shadow.fence(scope);
        self.conclude(before, due.unwrap_or(Due::Nothing));
        due
    }

    /// The same with one of its address spaces, or with all. True if all has been forgotten.
    pub fn forget_translations(&mut self, asid: Option<u16>) -> bool {
        let scope = Scope { address: None, asid };
        self.forget_breakpoints(scope);
        let own = self.own_shadow();
        let before = own.shadow.up_to_date();
        let due = own.shadow.fence_at_once(scope);
        self.conclude(before, due);
        asid.is_none()
    }

    fn forget_breakpoints(&mut self, scope: Scope) {
        match scope {
            Scope { address: Some(Virtual(address)), .. } => self.breakpoints.forget_at(address),
            Scope { asid: Some(_), .. } => self.breakpoints.forget_local(),
            _ => self.breakpoints.forget(),
        }
    }

    /// Whatever the hart has cached of it isn't to be used any more.
    pub fn distrust_hart(&mut self) {
        self.is_settled = false;
        let own = self.own_shadow();
        own.change();
        let due = own.shadow.distrust();
        own.carry_out(due);
    }
}
