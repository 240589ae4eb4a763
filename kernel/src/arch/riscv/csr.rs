//! Control and status registers: numbers (privileged specification, volume II, tables "Currently allocated CSR
//! addresses"), fields that the hypervisor uses, and access.

/// Reads a CSR by number.
macro_rules! read {
    ($csr:expr) => {{
        let value: u64;
        // SAFETY: to read a CSR that this module names changes nothing in HS-mode, if the hart has it. Else the read traps, which ends in a
        // panic (`unexpected_trap`). Boot refuses harts without H and Sstc (`hart::lacks`); who reads what only some harts have (HSTATEEN0,
        // VSISELECT) has asked `Features` or the board's ISA string; and who reads a register of a unit (FCSR, VSTART, VCSR, VLENB) has
        // switched the unit on, as the `# Safety` of `float` and `vector` demands.
        #[allow(unused_unsafe, reason = "some callers are unsafe blocks")]
        unsafe {
            core::arch::asm!("csrr {0}, {1}", out(reg) value, const $csr, options(nomem, nostack));
        }
        value
    }};
}
/// Writes a CSR by number. Unsafe where the register changes what the hypervisor itself executes or sees.
macro_rules! write {
    ($csr:expr, $value:expr) => {{
        let value: u64 = $value;
        core::arch::asm!("csrw {1}, {0}", in(reg) value, const $csr, options(nostack))
    }};
}
/// Reads a CSR by number, and writes 0 to it. Unsafe as [`write`] is.
macro_rules! take {
    ($csr:expr) => {{
        let value: u64;
        core::arch::asm!("csrrw {0}, {1}, zero", out(reg) value, const $csr, options(nostack));
        value
    }};
}
/// Reads a CSR by number, and writes another value to it. Unsafe as [`write`] is.
macro_rules! swap {
    ($csr:expr, $value:expr) => {{
        let mut value: u64 = $value;
        core::arch::asm!("csrrw {0}, {1}, {0}", inout(reg) value, const $csr, options(nostack));
        value
    }};
}
/// Sets bits of a CSR.
macro_rules! set {
    ($csr:expr, $bits:expr) => {{
        let bits: u64 = $bits;
        core::arch::asm!("csrs {1}, {0}", in(reg) bits, const $csr, options(nostack))
    }};
}
/// Clears bits of a CSR.
macro_rules! clear {
    ($csr:expr, $bits:expr) => {{
        let bits: u64 = $bits;
        core::arch::asm!("csrc {1}, {0}", in(reg) bits, const $csr, options(nostack))
    }};
}
pub(crate) use {clear, read, set, swap, take, write};

// Supervisor.
pub const SSTATUS: u16 = 0x100;
pub const SIE: u16 = 0x104;
pub const STVEC: u16 = 0x105;
pub const SCOUNTEREN: u16 = 0x106;
pub const SENVCFG: u16 = 0x10a;
pub const SSCRATCH: u16 = 0x140;
pub const SEPC: u16 = 0x141;
pub const SCAUSE: u16 = 0x142;
pub const STVAL: u16 = 0x143;
pub const SIP: u16 = 0x144;
#[cfg(not(feature = "sbi-timer"))]
pub const STIMECMP: u16 = 0x14d;
pub const SISELECT: u16 = 0x150;
pub const SIREG: u16 = 0x151;
pub const STOPEI: u16 = 0x15c;
pub const SATP: u16 = 0x180;
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
// Unprivileged.
pub const FCSR: u16 = 0x003;
pub const VSTART: u16 = 0x008;
pub const VCSR: u16 = 0x00f;
pub const TIME: u16 = 0xc01;
pub const VLENB: u16 = 0xc22;

/// Fields of `sstatus` and `vsstatus`.
pub mod status {
    /// Interrupt enable in S-mode.
    pub const SIE: u64 = 1 << 1;
    /// `SIE` before the trap.
    pub const SPIE: u64 = 1 << 5;
    /// Privilege before the trap: 1 is S (or VS), 0 is U (or VU).
    pub const SPP: u64 = 1 << 8;
    /// State of the vector unit: off, initial, clean, dirty.
    pub const VS: u64 = 0b11 << 9;
    /// The vector unit is on and its registers are zero.
    pub const VS_INITIAL: u64 = 0b01 << 9;
    /// The vector unit is on and its registers are those in memory.
    pub const VS_CLEAN: u64 = 0b10 << 9;
    /// The vector registers were written.
    pub const VS_DIRTY: u64 = 0b11 << 9;
    /// In S-mode (VS-mode), loads and stores may go to pages of user mode.
    #[cfg(feature = "shadow")]
    pub const SUM: u64 = 1 << 18;
    /// Loads may go to pages that can only be executed.
    #[cfg(feature = "shadow")]
    pub const MXR: u64 = 1 << 19;
    /// State of the floating-point unit: off, initial, clean, dirty.
    pub const FS: u64 = 0b11 << 13;
    /// The floating-point unit is on and its registers are zero.
    pub const FS_INITIAL: u64 = 0b01 << 13;
    /// The floating-point unit is on and its registers are those in memory.
    pub const FS_CLEAN: u64 = 0b10 << 13;
    /// The floating-point registers were written.
    pub const FS_DIRTY: u64 = 0b11 << 13;
    /// U-mode is 64 bits wide.
    pub const UXL_64: u64 = 0b10 << 32;
}

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

/// Registers of a file in an IMSIC, as `siselect` counts them (AIA, section 3.8), and what is in them.
pub mod file {
    /// External interrupt delivery enable.
    pub const EIDELIVERY: u64 = 0x70;
    /// In it: what is in the file interrupts the hart, and nothing else does.
    pub const FROM_FILE: u64 = 1;
    /// External interrupt enable threshold.
    pub const EITHRESHOLD: u64 = 0x72;
    /// The first of the pending bits.
    pub const EIP0: u64 = 0x80;
    /// The first of the enable bits.
    pub const EIE0: u64 = 0xc0;
    /// In `stopei`: the identity is from this bit on (section 3.9).
    pub const IDENTITY_SHIFT: u32 = 16;
}
