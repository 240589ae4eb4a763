//! How urgent each vCPU is on a core. Mostly that is the same on all cores. Under a policy that [ranks by core](ainori_sched::Policy::ranks_by_core) each has
//! an order of its own, and who comes to a core has the rank that its guest has there (LiSTEE RT's priority OS).
//!
//! Made at boot, and never changed: so any core can look up what a vCPU is on another one. Under a policy with windows in time that is what it is in its guest's
//! windows; what it is now, others read in [`Vcpu::level_on`](crate::guest::vcpu::Vcpu::level_on).
use ainori_limits::PRIORITIES;
use ainori_sched::{Class, VcpuId, VcpuSet};

use super::ByVcpu;

/// What a vCPU is on a core.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rank {
    /// What the scheduler is told of it.
    pub class: Class,
    /// At which level it waits.
    pub level: u8,
    /// While it runs, vCPUs of lower levels don't disturb the core ([`Policy::threshold`](ainori_sched::Policy::threshold)).
    pub threshold: u8,
    /// While it runs, devices of lower [levels](crate::chip::irqchip::Levels) don't: the core's threshold then, as the controller
    /// [has it](ainori_board::BoardIrqchip::threshold).
    pub irq_threshold: u16,
    /// All of its level or a higher one there, itself included.
    pub no_less_urgent: VcpuSet,
}

/// The ranks of all vCPUs on one core.
pub struct Order {
    ranks: ByVcpu<Rank>,
    /// Those that take the core from others.
    pub urgent: VcpuSet,
    /// Those of each level and above.
    from_level: [VcpuSet; PRIORITIES as usize],
}

impl Order {
    /// Of these ranks. Only at boot.
    pub fn new(mut ranks: ByVcpu<Rank>, urgent: VcpuSet, vcpu_count: usize) -> Self {
        let ids = (0..vcpu_count as u8).map(VcpuId);
        let from_level = core::array::from_fn(|least| {
            ids.clone().filter(|id| usize::from(ranks[*id].level) >= least).collect()
        });
        for id in ids {
            let rank = &mut ranks[id];
            rank.no_less_urgent = from_level.get(usize::from(rank.level)).copied().unwrap_or_default();
        }
        Self { ranks, urgent, from_level }
    }

    /// What a vCPU is here.
    #[inline(always)]
    pub fn rank(&self, id: VcpuId) -> &Rank {
        &self.ranks[id]
    }

    /// All vCPUs of this level or a higher one.
    #[inline]
    pub fn at_least(&self, level: u8) -> VcpuSet {
        self.from_level.get(usize::from(level)).copied().unwrap_or_default()
    }
}
