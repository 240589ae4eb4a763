//! Control and status registers: numbers (privileged specification, volume II, tables "Currently allocated CSR
//! addresses"), fields that the hypervisor uses, and access.

/// Reads a CSR by number.
macro_rules! read {
    ($csr:expr) => {{
        let value: u64;
        // SAFETY: to read a CSR that this module names changes nothing in HS-mode, if the hart has it. Else the read traps, which ends in a
        // panic (`unexpected_trap`). Boot refuses harts without what this build needs, as H or Sstc (`hart::lacks`); who reads what only some harts have (HSTATEEN0,
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
#[cfg_attr(feature = "no-h", expect(unused_macros, reason = "registers of guests are in memory"))]
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
#[cfg(not(feature = "no-h"))]
pub(crate) use swap;
pub(crate) use {clear, read, set, take, write};

#[cfg(not(feature = "no-h"))]
mod hypervisor;
#[cfg(not(feature = "no-h"))]
pub use hypervisor::*;

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
#[cfg(any(not(feature = "sbi-timer"), feature = "no-h"))]
pub const STIMECMP: u16 = 0x14d;
pub const SISELECT: u16 = 0x150;
pub const SIREG: u16 = 0x151;
pub const STOPEI: u16 = 0x15c;
pub const SATP: u16 = 0x180;
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
    #[cfg(not(feature = "no-h"))]
    pub const VS_INITIAL: u64 = 0b01 << 9;
    /// The vector unit is on and its registers are those in memory.
    pub const VS_CLEAN: u64 = 0b10 << 9;
    /// The vector registers were written.
    #[cfg(not(feature = "no-h"))]
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
    #[cfg(not(feature = "no-h"))]
    pub const FS_INITIAL: u64 = 0b01 << 13;
    /// The floating-point unit is on and its registers are those in memory.
    pub const FS_CLEAN: u64 = 0b10 << 13;
    /// The floating-point registers were written.
    #[cfg(not(feature = "no-h"))]
    pub const FS_DIRTY: u64 = 0b11 << 13;
    /// U-mode is 64 bits wide.
    pub const UXL_64: u64 = 0b10 << 32;
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
