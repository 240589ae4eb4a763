//! What a trap was: `scause` as types (privileged specification, table "Supervisor cause register values").
use crate::arch::csr;

const SOFTWARE_INTERRUPT: u64 = 1 << 63 | 1;
const TIMER_INTERRUPT: u64 = 1 << 63 | 5;

/// Why the hypervisor was entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trap {
    /// Something for the core, whichever vCPU was running.
    Interrupt(Interrupt),
    /// Something that the running vCPU did.
    Exception(Exception),
    /// Something that guests handle themselves, from one that must not do so here. The value is what its `vscause` would be.
    Confined(u64),
    /// A cause that is not delegated to a guest and that the hypervisor has not enabled.
    Unknown(u64),
}

/// Interrupts that the hypervisor enables for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interrupt {
    /// Another core rang.
    Software,
    /// The core's alarm.
    Timer,
    /// A device.
    External,
}

/// Exceptions of guests that are not delegated to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exception {
    /// An instruction that the hart refuses, perhaps only because a register file is switched off.
    IllegalInstruction,
    /// A call to the SBI.
    EnvironmentCall,
    /// Fetch from an address that the guest doesn't have.
    FetchFault,
    /// Load from an address that the guest doesn't have: a virtual device, or a mistake.
    LoadFault,
    /// Store to an address that the guest doesn't have.
    StoreFault,
    /// An instruction that would be legal for a hypervisor's host: WFI, WRS.NTO, hypervisor instructions.
    VirtualInstruction,
}

impl Exception {
    /// Its number in `scause`.
    pub const fn code(self) -> u64 {
        match self {
            Self::IllegalInstruction => 2,
            Self::EnvironmentCall => 10,
            Self::FetchFault => 20,
            Self::LoadFault => 21,
            Self::VirtualInstruction => 22,
            Self::StoreFault => 23,
        }
    }

    /// The number of the access fault that a guest gets in place of a guest-page fault, as on a machine that has
    /// nothing at the address.
    pub const fn access_fault(self) -> u64 {
        match self {
            Self::FetchFault => 1,
            Self::LoadFault => 5,
            _ => 7,
        }
    }
}

impl Trap {
    /// The trap that has just entered the hypervisor.
    #[inline]
    pub fn current() -> Self {
        let cause = cause();
        match cause {
            SOFTWARE_INTERRUPT => Self::Interrupt(Interrupt::Software),
            TIMER_INTERRUPT => Self::Interrupt(Interrupt::Timer),
            0x8000_0000_0000_0009 => Self::Interrupt(Interrupt::External),
            2 => Self::Exception(Exception::IllegalInstruction),
            10 => Self::Exception(Exception::EnvironmentCall),
            20 => Self::Exception(Exception::FetchFault),
            21 => Self::Exception(Exception::LoadFault),
            22 => Self::Exception(Exception::VirtualInstruction),
            23 => Self::Exception(Exception::StoreFault),
            // Guests' interrupts have one number as the hypervisor sees them and the one below for the guest.
            0x8000_0000_0000_0002 | 0x8000_0000_0000_0006 | 0x8000_0000_0000_000a => {
                Self::Confined(cause - 1)
            }
            0 | 1 | 3..=8 | 12 | 13 | 15 => Self::Confined(cause),
            _ => Self::Unknown(cause),
        }
    }
}

/// Was it the core's own timer? Only of an interrupt: so the highest bit needs no look.
#[inline]
pub fn is_timer() -> bool {
    cause() << 1 == TIMER_INTERRUPT << 1
}

/// `scause` of the present trap.
pub fn cause() -> u64 {
    csr::read!(csr::SCAUSE)
}

/// A guest-page fault as the hart reports it. It must be read before the guest's instruction is: a fetch that fails is a trap of its own,
/// which overwrites all of this.
#[derive(Debug, Clone, Copy)]
pub struct GuestPageFault {
    /// Guest-physical address.
    pub address: u64,
    /// The guest's own (virtual) address, as its `stval` would have it.
    pub value: u64,
    /// The hart's description of the load or store (`htinst`), or 0.
    pub instruction: u32,
}

impl GuestPageFault {
    /// The present one.
    #[inline]
    pub fn current() -> Self {
        let value = csr::read!(csr::STVAL);
        // htval holds the address without its lowest two bits, which stval gives (virtual, but within the same page).
        let address = csr::read!(csr::HTVAL) << 2 | value & 0b11;
        Self { address, value, instruction: csr::read!(csr::HTINST) as u32 }
    }
}

/// `stval` of the present trap.
pub fn value() -> u64 {
    csr::read!(csr::STVAL)
}
