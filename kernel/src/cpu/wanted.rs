//! Who wants this core, and who has it: what a preemption point gives way to.
use ainori_sched::{VcpuId, VcpuSet};

use super::Cpu;
use super::guard::near;
use crate::arch::{clock, world};

impl Cpu {
    /// Has a vCPU that takes cores from others something to do here that can't wait? So it is from the moment that it is woken until it has
    /// been entered with its interrupt, and again shortly before its own timer.
    #[inline]
    pub(super) fn is_wanted(&self) -> bool {
        let Some(first) = self.first_urgent() else { return false };
        let now = clock::now();
        // Guests that set their timers again and again, or take the core from each other, may not keep it from its work for ever.
        let priority = self.order.rank(first).class.priority;
        let gave_way = self.backlog.gave_way_to & (1 << priority) != 0;
        if gave_way && self.is_stalled(now) {
            return false;
        }
        if self.waits_for_core(first) || self.is_due(first) && (!gave_way || self.is_top(first)) {
            return true;
        }
        self.loaded == Some(first)
            && world::loaded_deadline().is_some_and(|at| {
                let near = near(self.guard);
                // It may have given way for this very deadline: another alarm came before that.
                now < at && at <= now + near && (!gave_way || at <= self.backlog.deferred_at + near)
            })
    }

    /// [`Self::is_wanted`] where few instructions more don't matter.
    #[inline(never)]
    pub(super) fn is_wanted_out_of_line(&self) -> bool {
        self.is_wanted()
    }

    /// [`Self::is_wanted`], but for the time before its own timer, and however often this core has given way for it.
    pub(super) fn is_awaited(&self) -> bool {
        self.first_urgent().is_some_and(|first| self.waits_for_core(first) || self.is_due(first))
    }

    /// Who has the core. Also one that has just let its equals go first: none of them is in more of a hurry than it was, unless it [is
    /// due](Self::is_due). Else one that yields at each of its traps would hold up all that gives way here.
    pub(super) fn holder(&self) -> Option<VcpuId> {
        let scheduler = &self.scheduler;
        scheduler.running().or_else(|| scheduler.picked().filter(|id| !scheduler.is_asleep(*id)))
    }

    /// Would it take the core from who has it? Also if nobody has it.
    pub(super) fn waits_for_core(&self, first: VcpuId) -> bool {
        self.holder().is_none_or(|holder| self.scheduler.precedes(first, holder))
    }

    fn first_urgent(&self) -> Option<VcpuId> {
        self.scheduler.first().filter(|id| self.urgent.contains(*id))
    }

    /// Is there an interrupt for it that it hasn't been entered with?
    fn is_due(&self, id: VcpuId) -> bool {
        self.residents[id].as_ref().is_some_and(|resident| resident.due != 0)
    }

    /// Is nobody of this core more urgent?
    pub(super) fn is_top(&self, id: VcpuId) -> bool {
        (self.scheduler.owned() & self.above(id)).is_empty()
    }

    /// All vCPUs of a higher level than this one.
    #[inline(never)]
    pub(super) fn above(&self, id: VcpuId) -> VcpuSet {
        self.order.at_least(self.order.rank(id).level + 1)
    }
}
