//! What the hypervisor takes for itself, in instructions as they are counted, and in nanoseconds at a hart's speed.
use crate::system::System;
use ainori_sched::Occasion;
use serde::Deserialize;

/// The file of costs, `costs.toml`. A test (in `tests/src/budgets.rs`) fails if a budget of a path is greater than what stands there; that budgets are kept
/// is counted in the emulator.
pub const FILE: &str = include_str!("../costs.toml");

/// How fast a hart is in the analysis if nobody says: as in virtual time, where an instruction takes 4 ns. In millions of instructions per second.
pub const MIPS: u32 = 250;

/// Instructions of the hypervisor's paths, as [`FILE`] has them.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paths {
    /// From the hart's trap to the first instruction of the guest's handler, where another guest runs.
    pub dispatch: Path,
    /// From a guest's going to sleep to the next instruction of whoever is next.
    pub sleep: Path,
    /// What a switch takes beyond these: floating point, vectors, mail of other cores.
    pub registers: Path,
    /// A trap that does next to nothing.
    pub trap: Path,
    /// Longest stretch without a look at who waits, on a hart that an RTOS may want.
    pub irqs_off: Path,
    /// From the hart's trap at a window's end to the first instruction of the handler of the next one's guest.
    pub window: Path,
    /// More of that for each vCPU of a guest that has had the window before.
    pub window_per_vcpu: Path,
    /// A piece of housework.
    pub housework: Path,
    /// Looking for another core for a vCPU that is preempted.
    pub kick: Path,
    /// More of that for each hart of the board.
    pub kick_per_hart: Path,
    /// Records of a trace in one switch.
    pub records: Path,
    /// Time between two looks for another hart for a vCPU that is kept waiting, where the policy moves vCPUs.
    pub retry_us: Duration,
    /// So long before the time to take the hart it may be taken already, if the one who has it traps then.
    pub guard_us: Duration,
    /// Time between two pieces of housework beside the least urgent guest of the hart that keeps house, in microseconds.
    pub housework_pause_us: Duration,
    /// The same beside others there.
    pub hidden_housework_us: Duration,
}

/// What a path may take.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Path {
    /// Most instructions.
    pub instructions: u64,
    /// Where that is from.
    pub source: String,
    /// Names of budgets (`tests/budgets.toml`) that may not be greater.
    #[serde(default)]
    pub budgets: Vec<String>,
}

/// A time that doesn't depend on how fast a hart is.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Duration {
    /// Microseconds.
    pub us: u64,
    /// Where that is from.
    pub source: String,
}

/// What the hypervisor takes on one hart of a system, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Costs {
    /// A guest that has slept gets the hart, and gives it back.
    pub switches_ns: u64,
    /// What each job costs beyond that, whether its guest has slept or not.
    pub job_ns: u64,
    /// What is lost of the begin of a window in time: something was begun before, then the window begins, and its guest is switched to. 0 where there are none.
    pub opening_ns: u64,
    /// The hart may be taken so much before a job arrives: the policy's advance, and the guard.
    pub advance_ns: u64,
    /// What has been begun for somebody else when a job arrives, once in a busy period.
    pub blocking_ns: u64,
    /// For how long the policy may defer a preemption, once in a busy period.
    pub grace_ns: u64,
    /// Looking for another hart for who is kept waiting, under a policy that moves vCPUs: so much in each period, 0 where there is nobody to move.
    pub retry_ns: u64,
    /// That period.
    pub retry_period_ns: u64,
    /// Housework beside guests: a load of so much in each period, 0 where there is none.
    pub housework_ns: u64,
    /// That period.
    pub housework_period_ns: u64,
}

impl Paths {
    /// The costs on a hart, for a guest with this priority there; `mips` is the hart's speed, not 0.
    #[must_use]
    pub fn on(&self, system: &System, hart: u32, priority: u8, mips: u32) -> Costs {
        let ns = |instructions: u64| (instructions * 1_000).div_ceil(u64::from(mips.max(1)));
        let us = |time: &Duration| time.us * 1_000;
        let is_alone = system.is_alone(hart);
        let keeps_house = system.housekeeping_hart == hart;
        let records = if system.is_traced { self.records.instructions } else { 0 };
        let advance_ns = if is_alone { 0 } else { system.advance_ns + us(&self.guard_us) };
        let kick = ns(self.kick.instructions + self.kick_per_hart.instructions * u64::from(system.harts));
        // Who has lost the hart is looked after a while later, each of them, and if there is no other hart for one, again and again.
        let movable = system.movable(hart);
        let look = ns(self.trap.instructions + 2 * self.irqs_off.instructions);
        let first_look = if movable > 0 { look + kick * (movable - 1) } else { 0 };
        let switches_ns = if is_alone {
            // Nobody is switched to.
            0
        } else {
            let is_moved_at_once = system.policy.pulls(Occasion::Preempted { in_kernel: true });
            let move_ns = if is_moved_at_once { kick } else { 0 };
            let to = ns(self.dispatch.instructions + self.registers.instructions + records) + move_ns;
            let back = ns(self.sleep.instructions + self.registers.instructions + records);
            to.max(advance_ns) + back + first_look
        };
        // The hart that keeps house looks what the next deadline is, to keep its work clear of it. Other timers of a guest that is awake don't reach
        // the hypervisor.
        let job_ns = if keeps_house { ns(self.trap.instructions + records) } else { 0 };
        let is_least = system.is_least(priority, hart);
        let (housework_ns, housework_period_ns) = if keeps_house {
            let piece = ns(self.housework.instructions + self.trap.instructions + records);
            let pause = if is_least { &self.housework_pause_us } else { &self.hidden_housework_us };
            // Beside others it comes each interval, whatever a piece takes; the pause begins behind a piece.
            (piece, us(pause) + if is_least { piece } else { 0 })
        } else {
            (0, u64::MAX)
        };
        let opening_ns = if system.has_windows() {
            let others = system.most_vcpus_at_home(hart) * self.window_per_vcpu.instructions;
            ns(2 * self.irqs_off.instructions
                + self.window.instructions
                + others
                + self.registers.instructions
                + records)
        } else {
            0
        };
        Costs {
            opening_ns,
            switches_ns,
            job_ns,
            advance_ns,
            // What was begun for somebody else, and what was begun for the one who waits: budgets.toml has the same for the longest way to an RTOS.
            blocking_ns: ns(2 * self.irqs_off.instructions),
            grace_ns: if system.policy.defers() && !is_alone { system.grace_ns } else { 0 },
            retry_ns: if movable > 0 { look } else { 0 },
            retry_period_ns: us(&self.retry_us),
            housework_ns,
            housework_period_ns,
        }
    }
}
