//! Privileged instructions, decoded (privileged specification, "Supervisor Instructions" and "RISC-V Privileged Instruction Set Listings"; Svinval; Zawrs).
use ainori_devices::zicsr::AnyCsrInstruction;

/// What a guest's kernel executes that traps in user mode, or can. Registers are numbers of general ones; register 0 means all addresses, or all address spaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Privileged {
    /// `csrrw`, `csrrs`, `csrrc` and those with a value of their own.
    Csr(AnyCsrInstruction),
    /// SRET.
    Return,
    /// WFI.
    WaitForInterrupt,
    /// SFENCE.VMA.
    Fence {
        /// The register with a virtual address.
        address: u8,
        /// The register with an address space's ASID.
        asid: u8,
    },
    /// SINVAL.VMA.
    Invalidate {
        /// The register with a virtual address.
        address: u8,
        /// The register with an address space's ASID.
        asid: u8,
    },
    /// SFENCE.W.INVAL: before SINVAL.VMA.
    FenceBeforeInvalidations,
    /// SFENCE.INVAL.IR: after SINVAL.VMA.
    FenceAfterInvalidations,
    /// WRS.NTO: the hart waits for its reservation to go, without a limit.
    WaitOnReservation,
    /// WRS.STO: the same, for a short time.
    WaitOnReservationShortly,
    /// Any other, privileged or not.
    Other,
}

impl Privileged {
    /// Bytes of each but [`Self::Other`].
    pub const LENGTH: u8 = 4;

    /// What an instruction is, whether or not the guest may execute it.
    #[inline]
    #[must_use]
    pub const fn decode(bits: u32) -> Self {
        /// All but the registers of a fence.
        const FENCE_MASK: u32 = !(31 << 20 | 31 << 15);
        if let Some(instruction) = AnyCsrInstruction::decode(bits) {
            return Self::Csr(instruction);
        }
        let (address, asid) = ((bits >> 15 & 31) as u8, (bits >> 20 & 31) as u8);
        match bits {
            0x1020_0073 => Self::Return,
            0x1050_0073 => Self::WaitForInterrupt,
            0x1800_0073 => Self::FenceBeforeInvalidations,
            0x1810_0073 => Self::FenceAfterInvalidations,
            0x00d0_0073 => Self::WaitOnReservation,
            0x01d0_0073 => Self::WaitOnReservationShortly,
            _ if bits & FENCE_MASK == 0x1200_0073 => Self::Fence { address, asid },
            _ if bits & FENCE_MASK == 0x1600_0073 => Self::Invalidate { address, asid },
            _ => Self::Other,
        }
    }
}
