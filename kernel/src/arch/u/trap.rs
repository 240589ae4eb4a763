//! What a trap was, in the guest's terms.
use super::VcpuState;
use super::guest_access::{FailedLoad, fetch_instruction};
use super::per_hart::per_hart;
pub use super::privileged::{Shortcut, privileged_instruction};
use super::shadow::{AddressSpaceAccess, GuestFence, PageFault};
use super::timer::{self, is_alarm_due};
use crate::arch::riscv::csr;
use crate::cpu::Cpu;
use crate::cpu::event::{conclude_event, handle_exception, handle_shortcut};
use crate::stats::Exit;
use ainori_devices::mmio;
use ainori_limits::cause::{exception, interrupt};
use ainori_trace::Cause;

/// The bit of a cause that says that it is an interrupt.
const INTERRUPT: u64 = 1 << 63;
const SOFTWARE_INTERRUPT: u64 = INTERRUPT | interrupt::SUPERVISOR_SOFTWARE as u64;
const TIMER_INTERRUPT: u64 = INTERRUPT | interrupt::SUPERVISOR_TIMER as u64;
const EXTERNAL_INTERRUPT: u64 = INTERRUPT | interrupt::SUPERVISOR_EXTERNAL as u64;
const ILLEGAL_INSTRUCTION: u64 = exception::ILLEGAL_INSTRUCTION as u64;
const BREAKPOINT: u64 = exception::BREAKPOINT as u64;
const CALL: u64 = exception::CALL_FROM_USER as u64;
const FETCH_PAGE: u64 = exception::FETCH_PAGE_FAULT as u64;
const LOAD_PAGE: u64 = exception::LOAD_PAGE_FAULT as u64;
const STORE_PAGE: u64 = exception::STORE_PAGE_FAULT as u64;
// What an access to where no memory is would have been with two stages: a page fault becomes that.
const FETCH_FAULT: u64 = exception::FETCH_GUEST_PAGE_FAULT as u64;
const LOAD_FAULT: u64 = exception::LOAD_GUEST_PAGE_FAULT as u64;
const STORE_FAULT: u64 = exception::STORE_GUEST_PAGE_FAULT as u64;
/// Exceptions that an OS handles itself, as they come.
const GUESTS_OWN: u64 = 1 << exception::MISALIGNED_FETCH
    | 1 << exception::FETCH_ACCESS
    | 1 << exception::MISALIGNED_LOAD
    | 1 << exception::LOAD_ACCESS
    | 1 << exception::MISALIGNED_STORE
    | 1 << exception::STORE_ACCESS;

/// Why the hypervisor was entered.
#[derive(Debug, Clone, Copy)]
pub enum Trap {
    /// Something for the core, whichever vCPU was running.
    Interrupt(Interrupt),
    /// A call to the SBI.
    Call,
    /// The guest's kernel has nothing to do until an interrupt. It goes on behind that.
    Wait,
    /// It spins until another of its vCPUs has done something.
    #[expect(dead_code, reason = "in user mode that doesn't trap")]
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
    /// An instruction that doesn't exist for the guest as it stands.
    Illegal(Exception),
    /// An instruction that the guest has taken away meanwhile: it gets its own fault when it comes back to it.
    Again,
    /// Something that guests handle themselves.
    Confined(Exception),
    /// A cause that the hypervisor has not enabled.
    Unknown(Exception),
    /// The hart's walk ended at a page fault.
    PageFault(PageFault),
    /// Its kernel reaches the register that says in which address space it is.
    AddressSpace(AddressSpaceAccess),
    /// It fences translations.
    Fence(GuestFence),
    /// An instruction or a timer of its own that has been seen to.
    Done(Exit),
    /// What is the guest's own affair.
    Own(Exception),
    /// A breakpoint: its own, or one that stands for another instruction.
    Breakpoint(Exception),
    /// Its kernel is about to be able to load what it may only fetch.
    ReadsText,
}

/// Interrupts that the hypervisor enables for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interrupt {
    /// Another core sent an IPI.
    Software,
    /// A device.
    External,
    /// A guest interrupt file of a vCPU that doesn't run.
    #[expect(dead_code, reason = "there are none")]
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

/// An access to a guest-physical address where the guest has no memory.
#[derive(Debug, Clone, Copy)]
pub struct Access {
    /// Guest-physical address.
    pub address: u64,
    /// As in `scause`.
    cause: u64,
    /// The guest's own (virtual) address, as its `stval` would have it.
    pub(in crate::arch) value: u64,
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

/// An instruction of a guest that has just trapped. A compressed one has zeros in its upper half, and one that accesses another address than that is 0.
#[derive(Debug, Clone, Copy)]
pub struct Instruction(u32);

impl Access {
    /// The one that has just trapped.
    #[inline(always)]
    fn current(cause: u64) -> Self {
        Self { address: per_hart().elsewhere.get(), cause, value: value() }
    }

    /// The same once more.
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
        let state = state();
        let bits = fetch(state, self.cause)?;
        // Of one that lies across the end of a page, only the part behind that may be here: it isn't one that a device takes.
        let offset = mmio::address_offset(bits, self.value, |number| state.register(number));
        Some(Instruction(if offset == Some(0) { bits } else { 0 }))
    }

    /// Does a load or store of `width` bytes (a power of two) lie across this address's natural boundaries? Then only a part of it is here.
    #[inline(always)]
    pub fn is_misaligned(&self, width: u8) -> bool {
        self.address & (u64::from(width) - 1) != 0
    }

    /// As the hart would report it with two stages, with the guest-physical address.
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
        Self::Refused(Exception { cause: cause(), value: value() })
    }
}

/// Called by the trap entry, on the core's empty stack.
pub(super) extern "C" fn taken(cpu: &mut Cpu) -> ! {
    // SAFETY: `enter_guest` has left the whole state there, which begins with its context (`repr(C)`), of the vCPU that has just trapped: while it ran, nobody referred to it.
    let state = unsafe { &mut *per_hart().context.get().cast::<VcpuState>() };
    state.come_back();
    match cause() {
        TIMER_INTERRUPT if is_alarm_due() => conclude_event(cpu, Exit::Timer),
        BREAKPOINT => {
            if let Some(shortcut) = state.shortcut() {
                handle_shortcut(cpu, shortcut)
            }
        }
        _ => {}
    }
    handle_exception(cpu)
}

impl Trap {
    /// The trap that has just entered the hypervisor. `state` is that of the running vCPU, which is asked for only where it is needed.
    #[inline(always)]
    pub fn current<'a>(state: impl FnOnce() -> &'a mut VcpuState) -> Self {
        let cause = cause();
        match cause {
            SOFTWARE_INTERRUPT => Self::Interrupt(Interrupt::Software),
            EXTERNAL_INTERRUPT => Self::Interrupt(Interrupt::External),
            TIMER_INTERRUPT => {
                timer::go_on();
                Self::Done(Exit::GuestTimer)
            }
            ILLEGAL_INSTRUCTION => state().privileged(),
            BREAKPOINT => {
                let state = state();
                // What is known is of its kernel's.
                let known = if state.is_in_kernel() { state.breakpoints.bits_at(state.pc()) } else { None };
                match known {
                    Some(bits) => state.carry_out(bits),
                    None => Self::Breakpoint(Exception { cause, value: value() }),
                }
            }
            CALL => match state() {
                state if state.is_in_kernel() => Self::Call,
                state => Self::own(state, Exception { cause, value: 0 }),
            },
            FETCH_FAULT => Self::Fetch(Access::current(cause)),
            LOAD_FAULT | STORE_FAULT => Self::Access(Access::current(cause)),
            FETCH_PAGE | LOAD_PAGE | STORE_PAGE => Self::PageFault(PageFault::new(cause, value())),
            _ if cause < u64::BITS.into() && GUESTS_OWN >> cause & 1 != 0 => {
                Self::own(state(), Exception { cause, value: value() })
            }
            _ => Self::Unknown(Exception { cause, value: value() }),
        }
    }

    /// What the guest handles itself, unless its policy is to see it first.
    pub fn own(state: &VcpuState, exception: Exception) -> Self {
        if per_hart().confines.get() && !state.is_in_kernel() {
            Self::Confined(exception)
        } else {
            Self::Own(exception)
        }
    }
}

/// The instruction that the vCPU is at, whose trap has this cause. None if the guest has taken its page away: it gets its own fault when it comes back
/// to it.
#[inline(always)]
pub fn fetch(state: &VcpuState, cause: u64) -> Option<u32> {
    let bits = fetch_instruction(state.pc());
    if bits.is_none() {
        fetch_failed(Origin { cause, pc: state.pc() });
    }
    bits
}

/// Where the hart went on with a translation that it has cached, the vCPU would come back with the same trap until the guest fences, so that is
/// forgotten.
#[cold]
#[inline(never)]
fn fetch_failed(origin: Origin) {
    origin.put_back();
    super::fence::guest_all();
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
pub(super) fn cause() -> u64 {
    csr::read!(csr::SCAUSE)
}

/// `stval` of the present trap.
pub(super) fn value() -> u64 {
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
