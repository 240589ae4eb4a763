//! What a trap was: `scause` (privileged specification, table "Supervisor cause register values") and, where that says too little, the
//! instruction, in the guest's terms.
use super::VcpuState;
use super::guest_access::{FailedLoad, fetch_instruction};
use super::hart::DELEGATED;
use super::shadow::{AddressSpaceAccess, Cached, GuestFence, PageFault};
use crate::arch::riscv::csr;
use ainori_devices::mmio;
use ainori_limits::cause::{exception, interrupt};
use ainori_trace::Cause;

/// The bit of a cause that says that it is an interrupt.
pub(super) const INTERRUPT: u64 = 1 << 63;
const SOFTWARE_INTERRUPT: u64 = INTERRUPT | interrupt::SUPERVISOR_SOFTWARE as u64;
const EXTERNAL_INTERRUPT: u64 = INTERRUPT | interrupt::SUPERVISOR_EXTERNAL as u64;
const FILE_INTERRUPT: u64 = INTERRUPT | interrupt::SUPERVISOR_GUEST_EXTERNAL as u64;
const GUEST_SOFTWARE_INTERRUPT: u64 = INTERRUPT | interrupt::GUEST_SOFTWARE as u64;
const GUEST_TIMER_INTERRUPT: u64 = INTERRUPT | interrupt::GUEST_TIMER as u64;
const GUEST_EXTERNAL_INTERRUPT: u64 = INTERRUPT | interrupt::GUEST_EXTERNAL as u64;
const ILLEGAL_INSTRUCTION: u64 = exception::ILLEGAL_INSTRUCTION as u64;
const CALL_FROM_KERNEL: u64 = exception::CALL_FROM_GUEST as u64;
const FETCH_FAULT: u64 = exception::FETCH_GUEST_PAGE_FAULT as u64;
const LOAD_FAULT: u64 = exception::LOAD_GUEST_PAGE_FAULT as u64;
const VIRTUAL_INSTRUCTION: u64 = exception::VIRTUAL_INSTRUCTION as u64;
const STORE_FAULT: u64 = exception::STORE_GUEST_PAGE_FAULT as u64;

const WFI: u64 = 0x1050_0073;
const WRS_NTO: u64 = 0x00d0_0073;
const SRET: u64 = 0x1020_0073;
/// What stands for an instruction that could not be fetched: none of theirs has so many bits.
const GONE: u64 = u64::MAX;
/// Bytes of each of them.
const LENGTH: u8 = 4;

/// Why the hypervisor was entered.
#[derive(Debug, Clone, Copy)]
pub enum Trap {
    /// Something for the core, whichever vCPU was running.
    Interrupt(Interrupt),
    /// A call to the SBI.
    Call,
    /// The guest's kernel has nothing to do until an interrupt. It goes on behind that.
    Wait,
    /// It spins until another of its vCPUs has done something. It goes on behind that.
    SpinHint,
    /// Its kernel has returned, where that is [watched](VcpuState::watch_returns).
    KernelReturn {
        /// To user mode, rather than to itself.
        to_user: bool,
    },
    /// It has used registers of an extension that the hart doesn't hold for it: it tries again when they are loaded.
    Extensions,
    /// Load or store where the guest has no memory: a virtual device, or a mistake.
    Access(Access),
    /// Fetch where the guest has no memory.
    Fetch(Access),
    /// An instruction that doesn't exist for the hart as it stands.
    Illegal(Exception),
    /// An instruction that the guest has taken away meanwhile: it gets its own fault when it comes back to it.
    Again,
    /// Something that guests handle themselves, from one that must not do so here.
    Confined(Exception),
    /// A cause that is not delegated to a guest and that the hypervisor has not enabled.
    Unknown(Exception),
    /// The hart's walk ended at a page fault, of a vCPU with a [shadow](super::shadow).
    PageFault(PageFault),
    /// Its kernel reaches the register that says in which address space it is, where that has a shadow.
    #[cfg_attr(not(feature = "shadow"), expect(dead_code, reason = "there is none"))]
    AddressSpace(AddressSpaceAccess),
    /// It fences translations, where these have a shadow: those of an address or all, of an address space or
    /// of all.
    #[cfg_attr(not(feature = "shadow"), expect(dead_code, reason = "there is none"))]
    Fence(GuestFence),
}

/// Interrupts that the hypervisor enables for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interrupt {
    /// Another core sent an IPI.
    Software,
    /// A device.
    External,
    /// A guest interrupt file of a vCPU that doesn't run.
    GuestFile,
}

/// A trap that a guest can be given, or be stopped for: its number and what belongs to it, as the hart reports them.
#[derive(Debug, Clone, Copy)]
pub struct Exception {
    /// As in `scause`.
    pub cause: u64,
    /// As in `stval`, or a guest-physical address.
    pub value: u64,
}

/// An access to a guest-physical address where the guest has no memory (a guest-page fault).
#[derive(Debug, Clone, Copy)]
pub struct Access {
    /// Guest-physical address.
    pub address: u64,
    /// As in `scause`.
    cause: u64,
    /// The guest's own (virtual) address, as its `stval` would have it.
    pub(in crate::arch) value: u64,
    /// The hart's description of the load or store (`htinst`), or 0.
    instruction: u64,
}

/// What was to be done at the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessKind {
    /// An instruction was to be fetched.
    Fetch,
    /// A load.
    Load,
    /// A store.
    Store,
}

/// An instruction of a guest that has just trapped. A compressed one has zeros in its upper half.
#[derive(Debug, Clone, Copy)]
pub struct Instruction(u32);

/// Where a transformed instruction says how far the address lies behind the first byte of a misaligned access.
const ADDRESS_OFFSET: u32 = 15;

impl Access {
    /// The one that has just trapped. It must be read before the guest's instruction is: a fetch that fails is a trap of its own, which
    /// overwrites all of this.
    #[inline(always)]
    fn current(cause: u64) -> Self {
        let value = csr::read!(csr::STVAL);
        // htval holds the address without its lowest two bits, which stval gives (virtual, but within the same page).
        let address = csr::read!(csr::HTVAL) << 2 | value & 0b11;
        Self { address, cause, value, instruction: csr::read!(csr::HTINST) }
    }

    /// The same once more, out of the hart's registers. Nothing has been loaded for the guest since it trapped.
    pub fn again() -> Self {
        Self::current(cause())
    }

    /// What was to be done at the address.
    #[inline(always)]
    pub fn kind(&self) -> AccessKind {
        match self.cause {
            FETCH_FAULT => AccessKind::Fetch,
            LOAD_FAULT => AccessKind::Load,
            _ => AccessKind::Store,
        }
    }

    /// The load or store. `state` is that of the vCPU that has just trapped. None if the guest has just taken the page of the instruction away:
    /// it gets its own fault when it comes back to it.
    #[inline(always)]
    pub fn instruction<'a>(&self, state: impl FnOnce() -> &'a mut VcpuState) -> Option<Instruction> {
        // The hart describes simple loads and stores itself; where it doesn't, the instruction is fetched.
        match self.instruction as u32 {
            0 => fetch(state(), self.cause).map(Instruction),
            bits => Some(Instruction(bits)),
        }
    }

    /// Does a load or store of `width` bytes (a power of two) lie across this address's natural boundaries, or begin before this address (the
    /// privileged specification's "Addr. Offset" in `htinst`, which is less than `width`, and 0 otherwise)? Then only a part of it is here.
    #[inline(always)]
    pub fn is_misaligned(&self, width: u8) -> bool {
        (self.address | self.instruction >> ADDRESS_OFFSET) & (u64::from(width) - 1) != 0
    }

    /// As the hart reports it, with the guest-physical address.
    pub fn exception(&self) -> Exception {
        Exception { cause: self.cause, value: self.address }
    }
}

impl Instruction {
    /// What it does, if it is a load or store such as devices take.
    #[inline(always)]
    pub fn operation(self) -> Option<mmio::Access> {
        mmio::decode(self.0)
    }
}

impl FailedLoad {
    /// The one that has just failed.
    pub(super) fn current() -> Self {
        match cause() {
            cause @ LOAD_FAULT => Self::NoMemory(Access::current(cause)),
            cause => Self::Refused(Exception { cause, value: value() }),
        }
    }
}

impl Trap {
    /// The trap that has just entered the hypervisor; the timer's goes [another way](crate::cpu::event::conclude_event). `state` is that of
    /// the running vCPU, which is asked for only where it is needed.
    #[inline(always)]
    pub fn current<'a>(state: impl FnOnce() -> &'a mut VcpuState) -> Self {
        let cause = cause();
        match cause {
            SOFTWARE_INTERRUPT => Self::Interrupt(Interrupt::Software),
            EXTERNAL_INTERRUPT => Self::Interrupt(Interrupt::External),
            FILE_INTERRUPT => Self::Interrupt(Interrupt::GuestFile),
            ILLEGAL_INSTRUCTION => Self::illegal_instruction(state()),
            CALL_FROM_KERNEL => Self::Call,
            FETCH_FAULT => Self::Fetch(Access::current(cause)),
            LOAD_FAULT | STORE_FAULT => Self::Access(Access::current(cause)),
            VIRTUAL_INSTRUCTION => Self::virtual_instruction(state()),
            // Guests' interrupts have one number as the hypervisor sees them and the one below for the guest.
            GUEST_SOFTWARE_INTERRUPT | GUEST_TIMER_INTERRUPT | GUEST_EXTERNAL_INTERRUPT => {
                Self::Confined(Exception { cause: cause - 1, value: value() })
            }
            _ if cause < u64::BITS.into() && DELEGATED >> cause & 1 != 0 => PageFault::of(cause, state)
                .map_or_else(|| Self::Confined(Exception { cause, value: value() }), Self::PageFault),
            _ => Self::Unknown(Exception { cause, value: value() }),
        }
    }

    /// WFI, WRS.NTO and, where it is watched, SRET, which the hypervisor lets trap; any other such instruction or register is illegal in a guest, if it
    /// isn't one of its interrupt file's: one for hypervisors, or what `hcounteren`, `hstateen0` and `henvcfg` hide.
    #[inline(always)]
    fn virtual_instruction(state: &mut VcpuState) -> Self {
        let in_kernel = state.is_in_kernel();
        match trapped_instruction(state, VIRTUAL_INSTRUCTION) {
            WFI if in_kernel => {
                state.skip(LENGTH);
                Self::Wait
            }
            WRS_NTO => {
                state.skip(LENGTH);
                Self::SpinHint
            }
            SRET if in_kernel => Self::KernelReturn { to_user: state.carry_out_return() },
            bits => Self::of_shadow(state, bits).unwrap_or_else(|| Self::illegal(bits)),
        }
    }

    /// The use of a register file that was switched off, or the guest's own affair.
    #[inline(always)]
    fn illegal_instruction(state: &mut VcpuState) -> Self {
        if state.world.needs_extensions(&state.context) {
            return Self::Extensions;
        }
        Self::illegal(trapped_instruction(state, ILLEGAL_INSTRUCTION))
    }

    fn illegal(bits: u64) -> Self {
        match bits {
            GONE => Self::Again,
            bits => Self::Illegal(Exception { cause: ILLEGAL_INSTRUCTION, value: bits }),
        }
    }
}

/// The instruction that trapped, or [`GONE`] (an Option would be an instruction more on the way of each WFI). A hart may leave it out of `stval` (QEMU
/// does so for WRS.NTO).
#[inline(always)]
fn trapped_instruction(state: &VcpuState, cause: u64) -> u64 {
    match value() as u32 {
        0 => fetch(state, cause).map_or(GONE, u64::from),
        bits => bits.into(),
    }
}

/// The instruction that the vCPU is at, whose trap has this cause. None if the guest has taken its page away: it gets its own fault when it comes back
/// to it.
#[inline(always)]
pub fn fetch(state: &VcpuState, cause: u64) -> Option<u32> {
    let bits = fetch_instruction(state.pc());
    if bits.is_none() {
        fetch_failed(Origin { cause, pc: state.pc() }, Cached::of(state));
    }
    bits
}

/// Where the hart went on with a translation that it has cached, the vCPU would come back with the same trap until the guest fences, so that is
/// forgotten.
/// That is the vCPU's own, of the address space that it is in.
#[cold]
#[inline(never)]
fn fetch_failed(origin: Origin, cached: Cached) {
    origin.put_back();
    cached.forget();
}

/// The present trap as a trace has it: its cause, and where the guest was.
#[inline]
pub fn traced() -> (Cause, u64) {
    let Origin { cause, pc } = Origin::current();
    (Cause::from_scause(cause), pc)
}

/// What the present trap is, and where it came from. A look at a guest's memory that fails is a trap of its own, and overwrites both.
pub(super) struct Origin {
    cause: u64,
    pc: u64,
}

impl Origin {
    pub(super) fn current() -> Self {
        Self { cause: cause(), pc: csr::read!(csr::SEPC) }
    }

    /// The look has failed: what is traced is still the guest's own trap.
    pub(super) fn put_back(self) {
        // SAFETY: nobody returns from the look's trap any more, and the way back to the guest sets `sepc` anew.
        unsafe {
            csr::write!(csr::SCAUSE, self.cause);
            csr::write!(csr::SEPC, self.pc);
        }
    }
}

/// `scause` of the present trap.
fn cause() -> u64 {
    csr::read!(csr::SCAUSE)
}

/// `stval` of the present trap.
fn value() -> u64 {
    csr::read!(csr::STVAL)
}

/// A trap of the hypervisor itself.
#[expect(clippy::panic, reason = "a bug, and nothing can go on")]
pub(super) extern "C" fn unexpected_trap() -> ! {
    panic!(
        "unexpected trap in the hypervisor: scause {:#x}, sepc {:#x}, stval {:#x}",
        cause(),
        csr::read!(csr::SEPC),
        value()
    )
}
