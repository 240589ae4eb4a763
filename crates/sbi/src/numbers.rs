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
/// Suspension of the machine.
pub const SUSP: u64 = 0x5355_5350;
/// The debug console.
pub const DBCN: u64 = 0x4442_434e;
/// The hypervisor's own extension: "AIN" in the range for vendors (`guests/common/ainori_sbi.h`).
pub const AINORI: u64 = 0x0941_494e;

/// The extensions that a guest finds, by the names of their constants. (The calls of before SBI 0.2 are there too.)
pub const EXTENSIONS: [(&str, u64); 9] = [
    ("BASE", BASE),
    ("TIME", TIME),
    ("IPI", IPI),
    ("RFENCE", RFENCE),
    ("HSM", HSM),
    ("SRST", SRST),
    ("SUSP", SUSP),
    ("DBCN", DBCN),
    ("AINORI", AINORI),
];

/// Functions of [`BASE`].
pub mod base {
    /// Version of the specification.
    pub const VERSION: u64 = 0;
    /// Number of the implementation.
    pub const IMPLEMENTATION: u64 = 1;
    /// Version of the implementation.
    pub const IMPLEMENTATION_VERSION: u64 = 2;
    /// Is there an extension?
    pub const PROBE: u64 = 3;
    /// `mvendorid`. The next two are `marchid` and `mimpid`.
    pub const VENDOR: u64 = 4;
    /// `mimpid`.
    pub const HART_IMPLEMENTATION: u64 = 6;
}

/// Functions of [`TIME`].
pub mod time {
    /// Sets the timer.
    pub const SET: u64 = 0;
}

/// Functions of [`IPI`].
pub mod ipi {
    /// Sends one to several harts.
    pub const SEND: u64 = 0;
}

/// Functions of [`RFENCE`]. (Those behind these are for hypervisors.)
pub mod rfence {
    /// FENCE.I.
    pub const INSTRUCTIONS: u64 = 0;
    /// SFENCE.VMA.
    pub const TRANSLATIONS: u64 = 1;
    /// SFENCE.VMA of one address space.
    pub const TRANSLATIONS_OF_ASID: u64 = 2;
}

/// Functions of [`HSM`].
pub mod hsm {
    /// Starts a hart.
    pub const START: u64 = 0;
    /// Stops the caller.
    pub const STOP: u64 = 1;
    /// The state of a hart.
    pub const STATUS: u64 = 2;
    /// Suspends the caller.
    pub const SUSPEND: u64 = 3;

    /// What to do: the default retentive suspension.
    pub const RETENTIVE: u64 = 0;
    /// The default non-retentive suspension.
    pub const NON_RETENTIVE: u64 = 0x8000_0000;
}

/// Functions of [`SRST`].
pub mod srst {
    /// Resets the machine.
    pub const RESET: u64 = 0;

    /// The kind: off.
    pub const SHUTDOWN: u64 = 0;
    /// Off and on again.
    pub const COLD_REBOOT: u64 = 1;
    /// On again, without having been off.
    pub const WARM_REBOOT: u64 = 2;

    /// The reason: none.
    pub const NO_REASON: u64 = 0;
    /// The system has failed.
    pub const SYSTEM_FAILURE: u64 = 1;
    /// The first reason of the guest's own: a vendor's, and behind them the ones of a guest's choice.
    pub const FIRST_SPECIFIC: u64 = 0xe000_0000;
}

/// Functions of [`SUSP`].
pub mod susp {
    /// `system_suspend`: suspends the machine.
    pub const SUSPEND: u64 = 0;

    /// The kind of sleep: to RAM. There is no other that isn't a platform's own.
    pub const TO_RAM: u64 = 0;
}

/// Functions of [`DBCN`].
pub mod dbcn {
    /// Prints what lies in memory.
    pub const WRITE: u64 = 0;
    /// Puts what was typed into memory.
    pub const READ: u64 = 1;
    /// Prints a byte.
    pub const WRITE_BYTE: u64 = 2;
}

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
    /// Gives the hart to all others until an interrupt for the caller.
    pub const GIVE_WAY: u64 = 4;
}
