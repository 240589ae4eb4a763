//! The shadow of a vCPU's translations ([`ainori_shadow`]) as this hart has it: in `vsatp`, with `hgatp` Bare, and with an ASID of the hart for each address
//! space of the guest. The guest's own `satp` is in no hart: whatever it does to it traps (`hstatus.VTVM`), as do its fences, and its page faults come here.
//!
//! A guest without protection has neither: `hgatp` is Bare, and `vsatp` its own.
//!
//! In a kernel without the feature `shadow` there is [another file](../no_shadow.rs) with the same names, and nothing behind them.
use alloc::{boxed::Box, vec};
use core::sync::atomic::AtomicU64;

use ainori_devices::zicsr::{CsrInstruction, CsrRegister};
use ainori_handover::Progress;
use ainori_limits::cause::exception;
use ainori_shadow::{
    Access, Activation, Active, AddressSpace, Choices, Due, Fault, Format, Memory, Mode, Outcome, Satp,
    Scope, Shadow, TableState, Undivided, Virtual,
};
use ainori_space::GuestPhysical;

use super::VcpuState;
use super::fence;
use super::hart::DELEGATED;
use super::hgatp::MODE_SV39X4;
use super::trap::{Exception, Trap, fetch};
pub use crate::arch::page_fault::{Answer, PageFault};
use crate::arch::page_fault::{causes_of, is_block_operation};
use crate::arch::riscv::csr::{self, hstatus, status};
use crate::arch::shadow_tables::ShadowTables;

/// Can guests have shadow tables?
pub const BUILT: bool = true;

/// Rows of a table that are cleared at a time.
pub const ROWS_AT_ONCE: usize = 24;

/// Most address spaces of a vCPU: so many ASIDs of each hart are its own.
const TAGS: u16 = 16;
/// What a hart with a shadow sees to in its guest's place.
const PAGE_FAULTS: u64 =
    1 << exception::FETCH_PAGE_FAULT | 1 << exception::LOAD_PAGE_FAULT | 1 << exception::STORE_PAGE_FAULT;
/// SFENCE.VMA and SINVAL.VMA without their operands. A fence for what the second orders at last, SFENCE.INVAL.IR, is the hart's own affair: each of these is carried
/// out at once.
const FENCES: [u64; 2] = [0x1200_0073, 0x1600_0073];
const WITHOUT_OPERANDS: u64 = 0xfe00_7fff;
const FENCE_LENGTH: u8 = 4;

/// The shadow of a vCPU, if it has one; or that it has neither a shadow nor a second stage.
pub struct OwnShadow {
    own: Option<Box<Own>>,
    /// Its addresses are the board's.
    is_unconfined: bool,
    modes: Modes,
}

/// Which modes of translation the vCPUs of the system have.
#[derive(Debug, Clone, Copy)]
pub struct Modes {
    /// Not all have two stages: what the hart is told of a vCPU beside its registers changes from one to the other.
    pub switched: bool,
    /// Some choose their ASIDs themselves, under the VMID 0, which is also that of all vCPUs with a shadow.
    pub unconfined: bool,
}

struct Own {
    shadow: Shadow<'static, ShadowTables>,
    /// The ASID of the address space with the tag 0.
    first_asid: u16,
    /// Before it is entered, the shadow is reset, and what harts have cached under its ASIDs is forgotten: these were another life's.
    is_reset: bool,
    /// Whether others wait for the instruction that it is amid.
    progress: Progress,
}

/// An instruction that reaches the `satp` of a vCPU with a shadow.
#[derive(Debug, Clone, Copy)]
pub struct AddressSpaceAccess(CsrInstruction);

/// What this hart has cached of the loaded guest's own translations, as its active address space has them. With a shadow that is under an ASID of the hart: all others of its VMID are other vCPUs'.
#[derive(Debug, Clone, Copy)]
pub struct Cached {
    asid: Option<u64>,
}

impl Cached {
    /// That of the vCPU that is loaded.
    pub fn of(state: &VcpuState) -> Self {
        Self { asid: state.world.shadow.own.as_ref().map(|own| own.asid()) }
    }

    /// Forgets it.
    pub fn forget(self) {
        self.asid.map_or_else(fence::guest_all, fence::guest_asid);
    }
}

/// A second stage in which nothing is mapped.
#[repr(C, align(16384))]
struct Nothing([AtomicU64; 2048]);

static NOTHING: Nothing = Nothing([const { AtomicU64::new(0) }; 2048]);

/// No vCPU is loaded any more. If the last one had a shadow, this hart has no second stage: a stray access by way of guests' translations, which are none then, would reach all memory. So it gets
/// one in which nothing is mapped, with the last VMID, which no shadow's is.
pub fn forget_second_stage() {
    const LAST_VMID: u64 = 0x3fff << 44;
    if csr::read!(csr::HGATP) == 0 {
        // SAFETY: concerns only guests, none of which is loaded.
        unsafe { csr::write!(csr::HGATP, MODE_SV39X4 << 60 | LAST_VMID | NOTHING.0.as_ptr() as u64 >> 12) };
    }
}

/// An instruction of a guest's kernel that has a short way, as it is executed often.
#[derive(Debug, Clone, Copy)]
pub enum Shortcut {
    /// It goes to another address space, and that is all that it does.
    AddressSpace(AddressSpaceWrite),
    /// It fences an address.
    Fence(AddressFence),
}

/// The number of the register that is written to `satp`.
#[derive(Debug, Clone, Copy)]
pub struct AddressSpaceWrite(u8);

/// An SFENCE.VMA or SINVAL.VMA with an address.
#[derive(Debug, Clone, Copy)]
pub struct AddressFence(u64);

impl Shortcut {
    /// Has it just trapped?
    #[inline(always)]
    pub fn current() -> Option<Self> {
        const WRITE: u64 = 0x1800_1073; // csrw satp, REGISTER
        const WITHOUT_REGISTER: u64 = 0xfff0_7fff;
        const REGISTER: u32 = 15;
        const ADDRESS: u64 = 0b1_1111 << 15;
        if csr::read!(csr::SCAUSE) != exception::VIRTUAL_INSTRUCTION.into() {
            return None;
        }
        let bits = csr::read!(csr::STVAL);
        if bits & WITHOUT_REGISTER == WRITE {
            return Some(Self::AddressSpace(AddressSpaceWrite((bits >> REGISTER) as u8)));
        }
        // BOUND: the two of them.
        let is_fence = FENCES.contains(&(bits & WITHOUT_OPERANDS)) && bits & ADDRESS != 0;
        is_fence.then_some(Self::Fence(AddressFence(bits)))
    }
}

/// A fence that a vCPU with a shadow executes.
#[derive(Debug, Clone, Copy)]
pub struct GuestFence(Scope);

impl GuestFence {
    /// That of this instruction, one of [`FENCES`].
    #[inline(always)]
    fn of(bits: u64, state: &VcpuState) -> Self {
        let operand = |shift: u32| {
            let number = (bits >> shift) as u8 % 32;
            (number != 0).then(|| state.register(number))
        };
        Self(Scope { address: operand(15).map(Virtual), asid: operand(20).map(|asid| asid as u16) })
    }
}

impl PageFault {
    /// Has it just been found? If not by a vCPU with a shadow, it is none that is seen to here.
    #[inline(always)]
    pub fn current() -> Option<Self> {
        let cause = csr::read!(csr::SCAUSE);
        let is_one = cause < u64::BITS.into() && PAGE_FAULTS >> cause & 1 != 0;
        is_one.then(|| Self::new(cause, csr::read!(csr::STVAL)))
    }

    /// `None`: it isn't one, or not of a vCPU with a shadow.
    #[inline(always)]
    pub(super) fn of<'a>(cause: u64, state: impl FnOnce() -> &'a mut VcpuState) -> Option<Self> {
        if PAGE_FAULTS >> cause & 1 == 0 || !state().has_shadow() {
            return None;
        }
        Some(Self::new(cause, csr::read!(csr::STVAL)))
    }
}

impl Trap {
    /// What a vCPU with a shadow has trapped for by an instruction of its kernel that it executes itself elsewhere.
    #[inline(always)]
    pub(super) fn of_shadow(state: &VcpuState, bits: u64) -> Option<Self> {
        if !state.has_shadow() || !state.is_in_kernel() {
            return None;
        }
        // BOUND: the two of them.
        if FENCES.contains(&(bits & WITHOUT_OPERANDS)) {
            return Some(Self::Fence(GuestFence::of(bits, state)));
        }
        let instruction = CsrInstruction::decode(bits as u32)?;
        (instruction.register == CsrRegister::AddressSpace)
            .then_some(Self::AddressSpace(AddressSpaceAccess(instruction)))
    }
}

impl OwnShadow {
    /// None: there are two stages, or, if nothing is to confine the guest, its own alone.
    pub const fn none(is_confined: bool, modes: Modes) -> Self {
        Self { own: None, is_unconfined: !is_confined, modes }
    }

    /// With so many tables and address spaces, for the vCPU with this number. `None`: too few tables, or too many address spaces. Allocates: only at boot.
    pub fn new(vcpu: u8, choices: Choices, tables: u16, spaces: usize, modes: Modes) -> Option<Self> {
        let states = vec![TableState::NEW; tables.into()].leak();
        let spaces = vec![AddressSpace::UNUSED; spaces.min(TAGS.into())].leak();
        let shadow = Shadow::new(choices, ShadowTables::new(tables)?, states, spaces)?;
        let own =
            Own { shadow, first_asid: u16::from(vcpu) * TAGS, is_reset: true, progress: Progress::NONE };
        Some(Self { own: Some(Box::new(own)), is_unconfined: false, modes })
    }

    /// Has this hart ASIDs enough for so many vCPUs with shadows? Only at boot.
    pub fn has_asids_for(vcpus: usize) -> bool {
        // SAFETY: no guest runs yet, and the register is written again before one does.
        let asids = unsafe {
            csr::write!(csr::VSATP, Satp::new(Format::Sv39, u16::MAX, 0).0);
            let asids = Satp(csr::read!(csr::VSATP)).asid();
            csr::write!(csr::VSATP, 0);
            asids
        };
        vcpus * usize::from(TAGS) <= usize::from(asids) + 1
    }

    /// What traps of it.
    pub(super) const fn hstatus(&self) -> u64 {
        if self.own.is_some() { hstatus::VTVM } else { 0 }
    }

    /// No second stage, where there is a shadow of both, or where the guest isn't confined.
    pub(super) const fn hgatp(&self, two_stage: u64) -> u64 {
        if self.is_without_second_stage() { 0 } else { two_stage }
    }

    const fn is_without_second_stage(&self) -> bool {
        self.own.is_some() || self.is_unconfined
    }

    /// What the hart is to walk.
    pub(super) fn vsatp(&self) -> u64 {
        self.own.as_ref().map_or(0, |own| own.vsatp())
    }

    /// What its guest has in `satp`, where the hart has that.
    pub(super) fn satp(&self, hart: u64) -> u64 {
        self.own.as_ref().map_or(hart, |own| own.shadow.satp().0)
    }

    /// Begins anew, without translation, when it is loaded: to reset a vCPU is long enough for a section.
    pub(super) fn reset(&mut self) {
        if let Some(own) = &mut self.own {
            (own.is_reset, own.progress) = (true, Progress::NONE);
        }
    }

    #[inline(always)]
    pub(super) const fn modes_are_switched(&self) -> bool {
        self.modes.switched
    }

    /// The exceptions that go to its guest.
    #[inline(always)]
    pub(super) const fn delegated(&self) -> u64 {
        if self.own.is_some() { DELEGATED & !PAGE_FAULTS } else { DELEGATED }
    }

    /// The vCPU is loaded into this hart; its `vsatp` isn't yet.
    pub(super) fn enter(&mut self, vsatp: &mut u64) {
        // SAFETY: concerns only where guests' traps go; `Trap::current` knows them all.
        unsafe { csr::write!(csr::HEDELEG, self.delegated()) };
        // Of the VMID 0, which `hgatp` has already: what is cached there under an ASID may be of a guest that has chosen the same one.
        if self.modes.unconfined && self.is_without_second_stage() {
            fence::guest_all();
        }
        if let Some(own) = &mut self.own
            && own.is_reset
        {
            own.is_reset = false;
            own.begin_anew();
            *vsatp = own.vsatp();
            fence::guest_asid(own.asid());
        }
    }
}

impl Own {
    /// Without translation. What the hart has cached of the active address space is to be fenced then.
    fn begin_anew(&mut self) {
        self.shadow.reset();
        let _ = self.shadow.distrust();
    }

    fn asid(&self) -> u64 {
        self.tagged(self.shadow.active().tag).into()
    }

    const fn tagged(&self, tag: u8) -> u16 {
        self.first_asid + tag as u16
    }

    fn vsatp(&self) -> u64 {
        self.vsatp_of(self.shadow.active())
    }

    #[inline(always)]
    fn vsatp_of(&self, active: Active) -> u64 {
        Satp::new(active.format, self.tagged(active.tag), active.root.0).0
    }

    /// Has the hart walk the active address space.
    #[inline(always)]
    fn activate(&self) {
        self.walk(self.shadow.active());
    }

    /// The same, where that is known to be this one.
    #[inline(always)]
    fn walk(&self, active: Active) {
        // SAFETY: concerns only the guest that is loaded, whose shadow this is: it maps nothing but what is the guest's.
        unsafe { csr::write!(csr::VSATP, self.vsatp_of(active)) };
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
    fn own_shadow(&mut self) -> Option<&mut Own> {
        self.world.shadow.own.as_deref_mut()
    }

    /// Has it a shadow?
    #[inline(always)]
    pub fn has_shadow(&self) -> bool {
        self.world.shadow.own.is_some()
    }

    /// Of the loaded one: its translation is off.
    pub(super) fn leave_address_space(&mut self) {
        let Some(own) = self.own_shadow() else {
            // SAFETY: the register concerns only guests; without tables of its own this one reaches its memory, or what it is trusted with, and nothing else.
            unsafe { csr::write!(csr::VSATP, 0) };
            return;
        };
        own.begin_anew();
        own.carry_out(Due::Root);
    }

    /// Who waits for its fences, if it has a shadow.
    #[inline(always)]
    pub fn progress(&mut self) -> Option<&mut Progress> {
        self.own_shadow().map(|own| &mut own.progress)
    }

    /// Answers its page fault, or does a step of that.
    #[inline(never)]
    pub fn answer(&mut self, fault: PageFault, memory: &impl Memory) -> Answer {
        let PageFault { access, address } = fault;
        let mut outcome = self.fill(access, address, memory);
        // Its faults are those of stores, but it needs no more than a right to load.
        if outcome == Outcome::Fault(Fault::Page) && access == Access::Store && self.is_at_block_operation() {
            outcome = self.fill(Access::Load, address, memory);
        }
        let Some(own) = self.own_shadow() else { return Answer::Again };
        match outcome {
            Outcome::Again(due) => {
                own.carry_out(due);
                Answer::Again
            }
            Outcome::NotYet(due) => {
                own.carry_out(due);
                Answer::NotYet
            }
            Outcome::Fault(fault) => {
                Answer::Guest(Exception { cause: causes_of(access, fault).0.into(), value: address })
            }
            // It has none.
            Outcome::Window => Answer::Again,
            Outcome::Elsewhere(GuestPhysical(at)) => {
                // SAFETY: nobody returns from the present trap by these, and the next one writes them anew.
                unsafe {
                    csr::write!(csr::SCAUSE, causes_of(access, Fault::Page).1.into());
                    csr::write!(csr::HTVAL, at >> 2);
                }
                Answer::Elsewhere
            }
        }
    }

    #[inline(never)]
    fn fill(&mut self, access: Access, address: u64, memory: &impl Memory) -> Outcome {
        let guest = csr::read!(csr::VSSTATUS);
        let mode =
            Mode { user: !self.is_in_kernel(), sum: guest & status::SUM != 0, mxr: guest & status::MXR != 0 };
        let nothing = Outcome::Again(Due::Nothing);
        self.own_shadow().map_or(nothing, |own| own.shadow.fault(memory, Virtual(address), access, mode))
    }

    /// Is the instruction one that cleans, flushes or invalidates a cache block (Zicbom)?
    #[inline(never)]
    fn is_at_block_operation(&self) -> bool {
        fetch(self, exception::STORE_PAGE_FAULT.into()).is_some_and(is_block_operation)
    }

    /// It has just trapped by a fence for an address, if it has a shadow and its kernel executes that: carries it out, which is one step. False: nothing has been done.
    #[inline(always)]
    pub fn fences_address(&mut self, AddressFence(bits): AddressFence) -> bool {
        if !self.has_shadow() || !self.is_in_kernel() {
            return false;
        }
        let fence = GuestFence::of(bits, self);
        self.carry_out_fence(fence)
    }

    /// It has just trapped by an instruction that [writes](AddressSpaceWrite) its `satp`: if its shadow knows the address space, it is there, and goes on behind that. If not, nothing
    /// has been done.
    #[inline(always)]
    pub fn changes_address_space(&mut self, write: AddressSpaceWrite) -> bool {
        if !self.is_in_kernel() {
            return false;
        }
        let satp = Satp(self.register(write.0));
        let Some(own) = self.own_shadow() else { return false };
        // All else takes the usual way: without a call this one saves no registers.
        let Some(active) = own.shadow.activate_at_once(satp, Undivided) else { return false };
        own.walk(active);
        self.skip(CsrInstruction::LENGTH);
        true
    }

    /// Carries out the instruction that reaches its `satp`. False if that was only a step of it.
    #[inline(never)]
    pub fn access_address_space(&mut self, AddressSpaceAccess(instruction): AddressSpaceAccess) -> bool {
        let access = instruction.access(|number| self.register(number));
        let Some(own) = self.own_shadow() else { return true };
        let old = own.shadow.satp().0;
        if access.writes() {
            match own.shadow.activate(Satp(access.applied_to(old)), Undivided) {
                Activation::Done(due) => {
                    own.activate();
                    own.carry_out(due);
                }
                Activation::NoMode => {}
                Activation::NotYet(due) => {
                    own.carry_out(due);
                    return false;
                }
            }
        }
        self.set_register(instruction.rd, old);
        self.skip(CsrInstruction::LENGTH);
        true
    }

    /// Carries out its fence. False if that was only a step of it.
    #[inline(never)]
    pub fn carry_out_fence(&mut self, GuestFence(scope): GuestFence) -> bool {
        let Some(own) = self.own_shadow() else { return true };
        let Some(due) = own.shadow.fence(scope) else { return false };
        own.carry_out(due);
        self.skip(FENCE_LENGTH);
        true
    }

    /// A call of its own, or another vCPU, has it fence a page, of one of its address spaces or of all. False if that was only a step of it.
    pub fn forget_page(&mut self, address: u64, asid: Option<u16>) -> bool {
        let Some(own) = self.own_shadow() else { return true };
        let Some(due) = own.shadow.fence(Scope { address: Some(Virtual(address)), asid }) else {
            return false;
        };
        own.carry_out(due);
        true
    }

    /// The same with one of its address spaces, or with all. True if all has been forgotten.
    pub fn forget_translations(&mut self, asid: Option<u16>) -> bool {
        let Some(own) = self.own_shadow() else { return true };
        let due = own.shadow.fence_at_once(Scope { address: None, asid });
        own.carry_out(due);
        asid.is_none()
    }

    /// Whatever the hart has cached of it isn't to be used any more.
    pub fn distrust_hart(&mut self) {
        let Some(own) = self.own_shadow() else { return };
        let due = own.shadow.distrust();
        own.carry_out(due);
    }
}
