//! Registers of harts with the H extension: the hypervisor's, and those of VS-mode.

// Hypervisor.
pub const HSTATUS: u16 = 0x600;
pub const HEDELEG: u16 = 0x602;
pub const HIDELEG: u16 = 0x603;
pub const HIE: u16 = 0x604;
pub const HCOUNTEREN: u16 = 0x606;
pub const HGEIE: u16 = 0x607;
pub const HVIEN: u16 = 0x608;
pub const HVICTL: u16 = 0x609;
pub const HENVCFG: u16 = 0x60a;
pub const HSTATEEN0: u16 = 0x60c;
pub const HTVAL: u16 = 0x643;
pub const HIP: u16 = 0x644;
pub const HVIP: u16 = 0x645;
pub const HVIPRIO1: u16 = 0x646;
pub const HVIPRIO2: u16 = 0x647;
pub const HTINST: u16 = 0x64a;
pub const HGATP: u16 = 0x680;
pub const HTIMEDELTA: u16 = 0x605;
pub const HGEIP: u16 = 0xe12;
// Virtual supervisor: the running guest's own supervisor registers.
pub const VSSTATUS: u16 = 0x200;
pub const VSTVEC: u16 = 0x205;
pub const VSSCRATCH: u16 = 0x240;
pub const VSEPC: u16 = 0x241;
pub const VSCAUSE: u16 = 0x242;
pub const VSTVAL: u16 = 0x243;
#[cfg(not(feature = "sbi-timer"))]
pub const VSTIMECMP: u16 = 0x24d;
pub const VSISELECT: u16 = 0x250;
pub const VSIREG: u16 = 0x251;
pub const VSATP: u16 = 0x280;

/// Fields of `hstatus`.
pub mod hstatus {
    /// The trap came from a guest (V was 1).
    pub const SPV: u64 = 1 << 7;
    /// Privilege of the guest at the trap: 1 is VS, 0 is VU.
    pub const SPVP: u64 = 1 << 8;
    /// The guest interrupt file of the vCPU, by its number; 0 if it has none.
    pub const VGEIN: u64 = 0x3f << VGEIN_SHIFT;
    /// Where that is.
    pub const VGEIN_SHIFT: u32 = 12;
    /// Accesses to `satp`, SFENCE.VMA and SINVAL.VMA in VS-mode trap.
    #[cfg(feature = "shadow")]
    pub const VTVM: u64 = 1 << 20;
    /// WFI and WRS.NTO in VS-mode trap.
    pub const VTW: u64 = 1 << 21;
    /// SRET in VS-mode traps.
    pub const VTSR: u64 = 1 << 22;
    /// VS-mode is 64 bits wide.
    pub const VSXL_64: u64 = 0b10 << 32;
}

/// Bits of `hvip`, `hideleg`: a guest's interrupts as the hypervisor sees them. In `vsie` they stand one bit lower.
pub mod virtual_interrupt {
    use ainori_limits::cause::interrupt;

    /// VS-level software interrupt.
    pub const SOFTWARE: u64 = 1 << interrupt::GUEST_SOFTWARE;
    /// VS-level timer interrupt.
    pub const TIMER: u64 = 1 << interrupt::GUEST_TIMER;
    /// VS-level external interrupt.
    pub const EXTERNAL: u64 = 1 << interrupt::GUEST_EXTERNAL;
    /// All of them.
    pub const ALL: u64 = SOFTWARE | TIMER | EXTERNAL;
}

/// Fields of `henvcfg` (as of `menvcfg`).
pub mod envcfg {
    /// `cbo.inval` allowed, and does a flush.
    pub const CBIE_FLUSH: u64 = 0b01 << 4;
    /// `cbo.clean`, `cbo.flush` allowed.
    pub const CBCFE: u64 = 1 << 6;
    /// `cbo.zero` allowed.
    pub const CBZE: u64 = 1 << 7;
    /// Hardware updates accessed and dirty bits.
    pub const ADUE: u64 = 1 << 61;
    /// Page-based memory types.
    pub const PBMTE: u64 = 1 << 62;
    /// `stimecmp` of the guest.
    pub const STCE: u64 = 1 << 63;
}

/// Fields of `hie` and `hip`, besides those of `hvip`.
pub mod hie {
    use ainori_limits::cause::interrupt;

    /// One of the guest interrupt files that the hypervisor watches has something for its vCPU.
    pub const SGEI: u64 = 1 << interrupt::SUPERVISOR_GUEST_EXTERNAL;
}

/// Fields of `hvictl` (AIA, section 6.3.2).
pub mod hvictl {
    use ainori_limits::cause::interrupt;

    /// The interrupt that `IPRIO` is about.
    pub const IID_EXTERNAL: u64 = (interrupt::SUPERVISOR_EXTERNAL as u64) << 16;
    /// A priority: above those of software and timer interrupts, as it has by default. With none there is no such interrupt.
    pub const HIGHEST_PRIORITY: u64 = 1;
}

/// Fields of `hstateen0` (Smstateen): which registers guests may reach. None stays set but those that guests are told of, so that what else a hart adds is hidden.
pub mod stateen {
    /// `senvcfg`.
    pub const ENVCFG: u64 = 1 << 62;
    /// Those of Ssaia but for the next two. Can be set only if the hypervisor itself may reach them, as can those.
    pub const AIA: u64 = 1 << 59;
    /// The file of an IMSIC, `stopei`.
    pub const IMSIC: u64 = 1 << 58;
    /// `siselect` and `sireg`.
    pub const CSRIND: u64 = 1 << 60;
    /// Those that a guest with an interrupt file is told of. Where it has none of the hart's, an access to one of the file's own traps all the same.
    pub const FOR_FILES: u64 = CSRIND | AIA | IMSIC;
}
