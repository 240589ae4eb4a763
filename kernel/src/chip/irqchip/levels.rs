//! Which interrupt level each guest has.
use ainori_limits::{IRQ_LEVELS, PRIORITIES};
use ainori_sched::Policy;

/// The level of the devices of a guest whose vCPUs have no turn now, under a policy with windows in time: below that of whoever may run.
pub const CLOSED: u32 = 1;

/// Interrupt levels of vCPUs: the levels of the run queue that really occur, by their rank. The most urgent one has [`IRQ_LEVELS`], and where there are
/// too many, the least urgent ones have the lowest in common: 1, or the one above [`CLOSED`]. Where the policy makes no difference between priorities, all have the
/// highest level.
#[derive(Debug, Clone, Copy)]
pub struct Levels {
    /// A bit for each level of the run queue that occurs.
    occur: u32,
    /// The lowest that anybody has.
    lowest: u32,
}

impl Levels {
    /// Those of a system whose vCPUs have these [levels](Policy::level) in the run queue. Only at boot.
    pub fn of(levels: impl Iterator<Item = u8>, policy: &Policy) -> Self {
        const { assert!(PRIORITIES as u32 <= u32::BITS) };
        let occur = levels.fold(0, |occur, level| occur | 1 << (level % PRIORITIES));
        Self { occur, lowest: if policy.has_windows() { CLOSED + 1 } else { 1 } }
    }

    /// How many levels of the run queue occur.
    pub fn count(self) -> u32 {
        self.occur.count_ones()
    }

    /// The level of the devices of a vCPU with this level in the run queue, 1 to [`IRQ_LEVELS`]. While it runs, sources of lower levels are kept away.
    pub fn level(self, level: u8) -> u32 {
        let higher = (self.occur >> (level % PRIORITIES) >> 1).count_ones();
        IRQ_LEVELS.saturating_sub(higher).max(self.lowest)
    }
}
