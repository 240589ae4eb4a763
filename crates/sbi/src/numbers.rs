//! Numbers of the SBI (RISC-V Supervisor Binary Interface, version 2.0): of the one that the hypervisor calls, and of the one that it is.

/// Version 2.0, as the base extension tells it.
pub const VERSION_2_0: u64 = 2 << 24;

/// Base.
pub const BASE: u64 = 0x10;
/// The timer.
pub const TIME: u64 = 0x5449_4d45;
/// Software interrupts of other harts.
pub const IPI: u64 = 0x73_5049;
/// Fences on other harts.
pub const RFENCE: u64 = 0x5246_4e43;
/// Start and stop of harts.
pub const HSM: u64 = 0x48_534d;
/// Reset of the machine.
pub const SRST: u64 = 0x5352_5354;
/// The debug console.
pub const DBCN: u64 = 0x4442_434e;
/// The hypervisor's own extension: "AIN" in the range for vendors (`guests/common/ainori_sbi.h`).
pub const AINORI: u64 = 0x0941_494e;

/// The extensions that a guest finds, by the names of their constants. (The calls of before SBI 0.2 are there too.)
pub const EXTENSIONS: [(&str, u64); 8] = [
    ("BASE", BASE),
    ("TIME", TIME),
    ("IPI", IPI),
    ("RFENCE", RFENCE),
    ("HSM", HSM),
    ("SRST", SRST),
    ("DBCN", DBCN),
    ("AINORI", AINORI),
];

/// Functions of [`AINORI`].
pub mod ainori {
    /// Gives the hart to the next vCPU of the same priority.
    pub const YIELD: u64 = 0;
    /// Writes a mark into the trace.
    pub const MARK: u64 = 1;
    /// The hart has taken a lock.
    pub const LOCK_TAKEN: u64 = 2;
    /// The hart has released its last lock.
    pub const LOCK_RELEASED: u64 = 3;
}
