//! Counters. They are written only by the core that owns them, and read at the end.
use alloc::boxed::Box;

pub use ainori_report::exits::Exit;
use ainori_report::histogram::Histogram;

/// Number of [`Exit`] causes.
pub const EXITS: usize = Exit::NAMES.len();

/// Interrupts of a core by their places in [`CoreCounters::interrupts`].
pub mod interrupt {
    /// The IPIs of other cores.
    pub const SOFTWARE: usize = 0;
    /// The core's alarm.
    pub const TIMER: usize = 1;
    /// Devices of the board, and this hart's guest interrupt files of vCPUs that don't run.
    pub const EXTERNAL: usize = 2;
    /// Their names in a report.
    pub const NAMES: [&str; 3] = ["software", "timer", "external"];
}

/// Counters of a vCPU.
#[derive(Debug)]
pub struct VcpuCounters {
    /// Exits by cause.
    pub exits: [u64; EXITS],
    /// Times that it was given the core.
    pub dispatches: u64,
    /// Times that it lost the core while it could run.
    pub preemptions: u64,
    /// Times that it changed the core.
    pub migrations: u64,
    /// Ticks that it ran.
    pub running: u64,
    /// From due interrupts to the guest's handler, in ticks. (Behind a pointer, as it is large and seldom touched.)
    pub latency: Box<Histogram>,
}

impl Default for VcpuCounters {
    fn default() -> Self {
        Self {
            exits: [0; EXITS],
            dispatches: 0,
            preemptions: 0,
            migrations: 0,
            running: 0,
            latency: Box::default(),
        }
    }
}

/// Counters of a core.
#[derive(Debug)]
pub struct CoreCounters {
    /// Interrupts taken, by [`interrupt`].
    pub interrupts: [u64; interrupt::NAMES.len()],
    /// World switches.
    pub switches: u64,
    /// Messages from other cores.
    pub messages: u64,
    /// IPIs sent.
    pub ipis_sent: u64,
    /// IPIs that were not needed.
    pub ipis_saved: u64,
    /// Ticks without any vCPU to run.
    pub idle: u64,
    /// Longest time in the hypervisor between two looks for interrupts (entering a guest, idling, or a preemption point), in ticks, by
    /// cause: the trap that the core came in with, or `Backlog` if it ended at a preemption point behind that trap's service. The
    /// time from the last look to idling isn't counted.
    pub irqs_off_max: [u64; EXITS],
    /// All such times added up, by cause.
    pub irqs_off_total: [u64; EXITS],
    /// The longest time for which nobody was entered, although somebody was ready, in ticks.
    pub longest_delay: u64,
}

impl Default for CoreCounters {
    fn default() -> Self {
        Self {
            interrupts: [0; interrupt::NAMES.len()],
            switches: 0,
            messages: 0,
            ipis_sent: 0,
            ipis_saved: 0,
            idle: 0,
            irqs_off_max: [0; EXITS],
            irqs_off_total: [0; EXITS],
            longest_delay: 0,
        }
    }
}
