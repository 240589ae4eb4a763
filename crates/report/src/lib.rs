//! What the hypervisor tells of a run.
//!
//! Everything leaves the machine through one serial line, as lines `MARK| TEXT`: the mark is a guest's name, or
//! [`MARK`] for the hypervisor itself. A hypervisor line whose text starts with [`PREFIX`] holds one JSON [`Record`]:
//! that is how `ainori run` learns what happened, and how a log of a real board can be read afterwards.
//! A guest that wants its own result in the report prints a line that starts with [`GUEST_PREFIX`], then a JSON object.
#![cfg_attr(not(test), no_std)]
extern crate alloc;

pub mod exits;
pub mod histogram;

use alloc::{borrow::Cow, collections::BTreeMap, string::String, vec::Vec};
use serde::{Deserialize, Serialize};

/// Mark of the hypervisor's own lines. No guest may have this name.
pub const MARK: &str = "ainori";
/// Separates the mark of a line from its text.
pub const SEPARATOR: &str = "| ";
/// The same where the text is not the beginning of its source's line: that had been broken, as others had something to say.
pub const CONTINUATION: &str = "|+";
/// Starts the text of a hypervisor line that holds a [`Record`].
pub const PREFIX: &str = "@record ";
/// Starts a guest's line that holds a JSON object for the report, e.g. `@result {"hackbench_s":0.31}`.
/// The key `ok` with any value but `true` says that the guest did not do its job.
pub const GUEST_PREFIX: &str = "@result ";

/// [`Fault::cause`] of what was no trap.
pub const NO_TRAP: u64 = u64::MAX;

/// One thing that the hypervisor reports.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "kebab-case")]
pub enum Record {
    /// The board, once, before the first guest starts.
    Board(Board),
    /// A guest stopped; written when it happens.
    Stopped(Stopped),
    /// A guest is started again: what it prints from here on is its next life's. Written just before that.
    Restarted(Restarted),
    /// Counters of one vCPU; written at the end.
    Vcpu(VcpuStats),
    /// Counters of one core; written at the end.
    Core(CoreStats),
    /// The last record.
    End(End),
}

/// What the hypervisor learnt of the board.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Board {
    /// `model` of the device tree.
    pub model: String,
    /// Harts that run the hypervisor.
    pub harts: u32,
    /// Main memory in bytes.
    pub memory: u64,
    /// Ticks of `time` per second.
    pub timebase_hz: u64,
    /// Bytes of memory the hypervisor took for itself at boot (image, stacks, tables, trace rings).
    pub hypervisor_bytes: u64,
}

/// Why a guest stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopReason {
    /// SBI system reset, type shutdown, reason none.
    Shutdown,
    /// SBI system reset, type reboot, reason none. (A Linux that panics ends so, if it is not told to stay.)
    Reboot,
    /// SBI system reset with reason "system failure", or a reason of the guest's own.
    Failure,
    /// The guest did what it may not do; see [`Stopped::fault`].
    Fault,
    /// The guest showed no sign of life for as long as its watchdog allows; see [`Stopped::fault`].
    Watchdog,
    /// Every vCPU of the guest stopped itself (SBI HSM), so none can start another.
    AllHartsStopped,
}

/// The end of a guest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stopped {
    /// The guest's name.
    pub guest: String,
    /// Index of the vCPU that caused the stop.
    pub vcpu: u32,
    /// Which of its lives ended, from 1.
    pub life: u32,
    /// Why.
    pub reason: StopReason,
    /// What comes after it.
    pub next: Next,
    /// `time` when it happened, ticks since boot.
    pub time: u64,
    /// Set for [`StopReason::Fault`], and for [`StopReason::Watchdog`], where it was: its cause is [`NO_TRAP`].
    pub fault: Option<Fault>,
}

/// What comes after a guest's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Next {
    /// Nothing: the manifest doesn't have the guest started again after such an end.
    End,
    /// It is started again.
    Restart,
    /// It would be started again, but that has been done too often already (`restart_limit`).
    GiveUp,
}

/// The beginning of a guest's life after its first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restarted {
    /// The guest's name.
    pub guest: String,
    /// Number of the life that begins, from 2.
    pub life: u32,
    /// `time` when it begins, ticks since boot.
    pub time: u64,
}

/// What a guest did wrong, with its registers at that moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    /// In words, e.g. "store to an address that is not the guest's".
    pub what: Cow<'static, str>,
    /// Guest virtual address of the instruction.
    pub pc: u64,
    /// `scause` as the hypervisor saw it.
    pub cause: u64,
    /// Guest-physical address if the fault has one, else `stval`.
    pub address: u64,
    /// The instruction's bits if they could be read, else 0.
    pub instruction: u32,
    /// Privilege mode the guest was in: `VS` or `VU`.
    pub mode: Cow<'static, str>,
    /// `x0` to `x31`.
    pub x: Vec<u64>,
    /// Supervisor CSRs of the guest by name: `vsstatus`, `vstvec`, `vsepc`, `vscause`, `vstval`, `vsatp`.
    pub csr: BTreeMap<Cow<'static, str>, u64>,
}

/// Counters of a vCPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VcpuStats {
    /// The guest's name.
    pub guest: String,
    /// Index within the guest.
    pub vcpu: u32,
    /// Core that owned it at the end.
    pub core: u32,
    /// Exits to the hypervisor by cause, e.g. `"sbi-ipi": 12`, `"wfi": 3`. Causes that did not occur are left out.
    pub exits: BTreeMap<Cow<'static, str>, u64>,
    /// Calls of programs, returns of their kernel and interrupts of its own that were carried out on the fast path, which are no exits. Only on harts without the H extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fast_path: Option<u64>,
    /// Times that the vCPU was given its core.
    pub dispatches: u64,
    /// Times that it lost the core to another vCPU while it could run.
    pub preemptions: u64,
    /// Times that it changed its core.
    pub migrations: u64,
    /// Time it was running, in ticks of `time`.
    pub running: u64,
    /// From the moment an interrupt was due to the moment that the guest's handler was entered, for the interrupts that the
    /// hypervisor delivered to a guest that had them enabled. (A timer interrupt of the running vCPU needs no delivery.)
    pub latency: Latency,
}

/// Durations in ticks of `time`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// How many; the other fields mean nothing if 0.
    pub count: u64,
    /// Shortest.
    pub min: u64,
    /// Longest.
    pub max: u64,
    /// Sum of all.
    pub sum: u64,
    /// The histogram's buckets that aren't empty: largest value and count (see [`histogram`]).
    pub buckets: Vec<(u64, u32)>,
}

impl Latency {
    /// Mean; `None` if there was no event.
    pub fn mean(&self) -> Option<f64> {
        (self.count != 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// A duration that `percent` of all were not longer than, known to within 1/32 of itself; `None` if there was none.
    pub fn percentile(&self, percent: f64) -> Option<u64> {
        let wanted = percent / 100.0 * self.count as f64;
        let mut seen = 0;
        let mut reached = self.buckets.iter().filter(|(_, count)| {
            seen += u64::from(*count);
            seen as f64 >= wanted
        });
        // The bound of the last bucket can be above what was really seen.
        reached.next().map(|(bound, _)| self.max.min(*bound))
    }
}

/// Counters of a core.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CoreStats {
    /// Dense index.
    pub core: u32,
    /// Hart id of the board.
    pub hart: u64,
    /// Interrupts that the hypervisor took, by cause.
    pub interrupts: BTreeMap<Cow<'static, str>, u64>,
    /// World switches (another vCPU than before entered).
    pub switches: u64,
    /// Messages taken from other cores.
    pub messages: u64,
    /// Physical IPIs sent to other cores.
    pub ipis_sent: u64,
    /// IPIs that were not needed, since the receiver would look anyway.
    pub ipis_saved: u64,
    /// Time without any vCPU to run, in ticks of `time`.
    pub idle: u64,
    /// Longest time in the hypervisor between two looks for interrupts (entering a guest, idling, or a preemption point), in ticks of `time`. The
    /// time from the last look to idling isn't counted.
    pub longest_irqs_off: u64,
    /// What took it: the trap that the core came in with, or `backlog` if it ended at a preemption point behind that trap's service.
    pub longest_irqs_off_cause: Cow<'static, str>,
    /// The longest such time for each cause, in ticks of `time`.
    pub irqs_off_max: BTreeMap<Cow<'static, str>, u64>,
    /// All such times for each cause added up, in ticks of `time`.
    pub irqs_off_total: BTreeMap<Cow<'static, str>, u64>,
    /// Longest time for which the core served one event after the other without entering a vCPU, although one was ready, in ticks of `time`.
    pub longest_delay: u64,
    /// Most bytes of its stack ([`STACK_SIZE`](ainori_limits::STACK_SIZE)) that were ever in use.
    pub stack: u64,
    /// The core's trace ring, if the run was traced.
    pub trace: Option<TraceRing>,
}

/// Where a trace ring is in the machine's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceRing {
    /// Physical address of its header.
    pub address: u64,
    /// Bytes, header included.
    pub bytes: u64,
    /// Records that were written, those that have been overwritten included.
    pub written: u64,
}

/// The end of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// `time` at the end, ticks since boot.
    pub time: u64,
    /// Console output that found no room in its ring: more was written than the serial port could send.
    pub console_bytes_lost: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_come_from_the_buckets() {
        let latency =
            Latency { count: 100, min: 5, max: 120, sum: 1200, buckets: vec![(10, 98), (63, 1), (127, 1)] };
        assert_eq!(latency.mean(), Some(12.0));
        assert_eq!(latency.percentile(50.0), Some(10));
        assert_eq!(latency.percentile(99.0), Some(63));
        assert_eq!(latency.percentile(100.0), Some(120), "never above the longest");
        assert_eq!((Latency::default().mean(), Latency::default().percentile(99.0)), (None, None));
    }
}
