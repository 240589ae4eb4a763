//! Visitors go home when they are better off there, and who has woken where an equal runs goes to a core that idles.
use ainori_sched::{VcpuId, VcpuSet};

use crate::arch::clock;
use crate::cpu::Cpu;

/// Who may have to go.
pub struct Settling {
    /// Those that may have to go to another core before the next decision of the scheduler.
    pub(super) unsettled: VcpuSet,
}

impl Settling {
    /// Nobody.
    pub const fn new() -> Self {
        Self { unsettled: VcpuSet::EMPTY }
    }
}

impl Cpu {
    /// A vCPU may have to go to another core. Done before the next decision, as its own trap may still be served now.
    pub(in crate::cpu) fn unsettle(&mut self, id: VcpuId) {
        if self.mechanisms.migration.migratable.contains(id) {
            self.mechanisms.settling.unsettled.insert(id);
            self.pending.unsettled = true;
        }
    }

    /// Visitors whose home idles go there, and those that wait for an equal here, if they get turns there. Who has woken here and would have to
    /// wait for an equal goes to a core that idles, if there is one.
    ///
    /// Beside one that takes cores from others little at a time has to do, as for the [backlog](crate::cpu::backlog): one of them, and a while later the next.
    #[inline(never)]
    pub(in crate::cpu) fn settle(&mut self) {
        let beside_urgent = self.holder().is_some_and(|id| self.urgent.contains(id));
        let mut stops = self.is_wanted_out_of_line();
        // BOUND: one of those that have woken a round, and between two is a preemption point.
        while !stops && let Some(id) = self.mechanisms.settling.unsettled.pop() {
            if !self.has(id) {
                continue;
            }
            self.publish_mode(id);
            let resident = self.resident(id);
            let called_home = core::mem::take(&mut resident.called_home);
            let must_stay = resident.shared.confined && resident.state.is_in_kernel();
            let home = resident.shared.home;
            let waits = self.scheduler.waits_for_equal(id);
            // Who has a core to itself doesn't leave it to wait for an equal at home: two that visit each other's homes would change places for
            // ever, each sent on to the core that the other one has just left.
            let is_better = called_home && home != self.id && (waits || self.is_idle(home));
            if let Some(core) = self.core_with_seat(id) {
                self.migrate_to(id, core);
            } else if is_better
                && !must_stay
                && self.machine.vcpu(id).may_run_on(home)
                && self.accepts(id, home)
            {
                self.migrate_to(id, home);
            } else if waits
                && let Some(core) = self.suitable_core(id)
                && core != self.id
                && self.is_idle(core)
            {
                self.migrate_to(id, core);
            } else if self.loaded != Some(id) && self.mechanisms.migration.here.contains(id) && waits {
                self.make_stealable_out_of_line(id);
            }
            stops = self.is_preempted() || beside_urgent;
        }
        let is_done = self.mechanisms.settling.unsettled.is_empty();
        self.unsettle_unseated();
        if beside_urgent && !is_done {
            self.look_again_at(clock::now() + self.scheduler.policy().patience);
        }
    }
}
