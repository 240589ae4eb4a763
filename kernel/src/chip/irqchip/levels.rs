//! Which interrupt level each guest has.
use ainori_limits::{IRQ_LEVELS, PRIORITIES};

/// Interrupt levels of vCPUs: the priorities that really occur, by their rank. The most urgent one has [`IRQ_LEVELS`], and where there are
/// more priorities than levels, the least urgent ones have level 1 in common. Where the policy makes no difference between priorities, all have the
/// highest level.
#[derive(Debug, Clone, Copy)]
pub struct Levels {
    /// A bit for each priority that occurs.
    occur: u32,
}

impl Levels {
    /// The levels of a system with these priorities, as the policy [counts](ainori_sched::Policy::level) them. Only at boot.
    pub fn of(priorities: impl Iterator<Item = u8>) -> Self {
        const { assert!(PRIORITIES as u32 <= u32::BITS) };
        Self { occur: priorities.fold(0, |occur, priority| occur | 1 << (priority % PRIORITIES)) }
    }

    /// How many priorities occur.
    pub fn count(self) -> u32 {
        self.occur.count_ones()
    }

    /// The level of the devices of a vCPU with this priority, 1 to [`IRQ_LEVELS`]. While it runs, sources of lower levels are kept away.
    pub fn level(self, priority: u8) -> u32 {
        let higher = (self.occur >> (priority % PRIORITIES) >> 1).count_ones();
        IRQ_LEVELS.saturating_sub(higher).max(1)
    }
}
