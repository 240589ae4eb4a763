//! What a core may be disturbed for: it publishes the level of what it runs, its *threshold*, and other cores keep quiet about vCPUs of lower
//! levels. What they have left undone, the core looks for itself when its threshold goes down.
use ainori_handover::Requests;
use ainori_sched::{VcpuId, VcpuSet};

use super::Cpu;
use super::housekeeping::own_deadline;
use crate::arch::clock;

/// So many vCPUs are looked at in one go when a core has room for them again.
const MADE_UP_FOR: usize = 5;

/// Published by a core that runs nothing.
pub const IDLE: u8 = u8::MAX;

/// How much a threshold hides, as a number that grows with it: that of an idle core, which hides nothing, comes before all levels.
#[inline(always)]
pub const fn extent(threshold: u8) -> u8 {
    threshold.wrapping_add(1)
}

/// Is a core with this threshold to be disturbed for a vCPU of this level?
#[inline(always)]
pub const fn hears(threshold: u8, level: u8) -> bool {
    threshold == IDLE || threshold <= level
}

/// A core's threshold.
pub struct Threshold {
    /// What others know, or will in a moment.
    pub(super) level: u8,
    /// Where they read it (see [`Machine::thresholds`](crate::cpu::Machine::thresholds)).
    pub(super) published: &'static ainori_handover::PublishedThreshold,
    /// A [higher one](Cpu::keep_quiet) was published for a while, and may be still; 0 if not.
    quiet: u8,
}

impl Threshold {
    /// Of a core that runs nothing.
    pub fn new(published: &'static ainori_handover::PublishedThreshold) -> Self {
        Self { level: IDLE, published, quiet: 0 }
    }

    /// The lowest level that is heard: any, on a core that runs nothing.
    #[inline(always)]
    pub(super) fn lowest(&self) -> u8 {
        if self.level == IDLE { 0 } else { self.level }
    }
}

impl Cpu {
    /// Tells the others what they may disturb this core for. When that becomes less than it was, this core looks itself for what
    /// they have left undone meanwhile, and takes back its own.
    #[inline]
    pub(super) fn publish_threshold(&mut self, threshold: u8) {
        let before = core::mem::replace(&mut self.threshold.level, threshold);
        if before == threshold {
            return;
        }
        self.pending.deadlines = true;
        // As numbers, not by their extents: that is an instruction less on the way to who is entered.
        if before != IDLE && (threshold == IDLE || threshold < before) {
            self.threshold.published.lower(threshold);
            self.catch_up();
        } else {
            let now = clock::now();
            self.begin_patience(before, now);
            self.spare_beginning(threshold, own_deadline(), now);
            self.threshold.published.raise(threshold);
        }
    }

    /// A vCPU with this threshold will have the core in a moment: who is about to send an IPI for somebody less urgent had better know now.
    #[inline]
    pub(super) fn raise_threshold(&mut self, threshold: u8, now: u64) {
        if extent(threshold) > extent(self.threshold.level) {
            if !self.begin_patience(self.threshold.level, now) {
                // Who is woken by its timer has its own deadline just now.
                self.spare_beginning(threshold, now, now);
            }
            self.threshold.level = threshold;
            self.pending.deadlines = true;
            self.threshold.published.raise(threshold);
        }
    }

    /// More comes in than this core can do, and the vCPU that is about to be entered is to have it for a while: until then others keep quiet about its
    /// equals, and about itself, as if somebody more urgent had the core. They still ask for fences, as who asks waits.
    #[inline(never)]
    pub(super) fn keep_quiet(&mut self, id: VcpuId, now: u64) {
        let (level, patience) = (self.order.rank(id).level, self.scheduler.policy().patience);
        self.threshold.quiet = self.threshold.lowest().max(level + 1);
        self.threshold.published.raise(self.threshold.quiet);
        self.look_again_at(now + patience);
    }

    /// Ends the time for which others [keep quiet](Self::keep_quiet), as it is over, or as this core looks at what it has deferred anyhow.
    /// The core looks itself for what others have left undone meanwhile.
    #[inline(never)]
    pub(super) fn end_quiet(&mut self) {
        if core::mem::take(&mut self.threshold.quiet) != 0 {
            self.threshold.published.lower(self.threshold.level);
            self.show_housework();
            // By the threshold: where that doesn't follow priorities, it may not go down any more when who runs now leaves.
            self.look_for_neglected(self.order.at_least(self.threshold.lowest()));
        }
    }

    /// The core is given to this vCPU. If it is less urgent than the one for whom others keep quiet, that ends: where thresholds follow priorities they
    /// have been told already, elsewhere the threshold is the same for both.
    #[inline(never)]
    pub(super) fn end_quiet_above(&mut self, id: VcpuId) {
        if self.threshold.quiet > self.order.rank(id).level + 1 {
            self.end_quiet();
        }
    }

    #[inline(never)]
    fn catch_up(&mut self) {
        self.threshold.quiet = 0;
        self.show_housework();
        // No vCPU is sampled on a core that idles; where a watched one gets or keeps it, that is set afterwards.
        if self.later.is_deferred() {
            self.review_starved();
        } else {
            self.later.leave_out_sample();
        }
        // Those that are less urgent than who has the core now have their turn when it leaves.
        let running = self.scheduler.running();
        self.look_for_neglected(
            running.map_or(self.order.at_least(0), |id| self.order.rank(id).no_less_urgent),
        );
    }

    /// Looks for what others have left undone about these vCPUs.
    #[inline(always)]
    fn look_for_neglected(&mut self, among: VcpuSet) {
        let neglected = (self.scheduler.owned() | self.mechanisms.migration.migratable) & among;
        if self.machine.vcpu_count <= MADE_UP_FOR {
            self.make_up_for(neglected);
        } else {
            // Those of a former time may not have had their turn, and not be among those for whom there is room now.
            self.backlog.neglected |= neglected;
        }
        self.resume_backlog();
        if self.pending.backlog {
            self.leave_out_running();
        }
    }

    /// Until it is given to somebody the core is nobody's, as a window in time has begun, and hides nothing. It looks for what others have left undone about
    /// these vCPUs, whose levels have just been [published](crate::guest::vcpu::Vcpu::publish_level): whoever has read the former ones has made its request by the fence
    /// in this.
    pub(super) fn begin_for(&mut self, vcpus: VcpuSet) {
        self.threshold.quiet = 0;
        self.threshold.level = IDLE;
        self.pending.deadlines = true;
        self.threshold.published.lower(IDLE);
        self.show_housework();
        self.look_for_neglected(vcpus);
    }

    /// Who has just got this core doesn't wait for another one any more: to look at that would take from the time that it has got, which may be
    /// little. (Where two others took a core from each other every 30 us, one below them never got anywhere.)
    #[inline(never)]
    fn leave_out_running(&mut self) {
        if let Some(id) = self.scheduler.running()
            && self.machine.vcpu(id).requests.wanted() == Requests::WANTED.bits()
        {
            self.backlog.unread.remove(id);
            self.resume_backlog();
        }
    }

    /// Looks for what was wanted of a few vCPUs while this core had something more urgent to do.
    #[inline(always)]
    fn make_up_for(&mut self, some: VcpuSet) {
        // BOUND: `MADE_UP_FOR` vCPUs, some 30 instructions each.
        for id in some & self.scheduler.owned() {
            if self.machine.vcpu(id).has_requests() {
                self.backlog.unread.insert(id);
            }
        }
        let elsewhere = (some & self.mechanisms.migration.migratable) - self.mechanisms.migration.here;
        if !elsewhere.is_empty() {
            self.look_for_strays(elsewhere);
        }
    }

    /// The same for those that are a part of the backlog: of some now, of the others in their turns.
    #[inline(never)]
    pub(super) fn make_up_for_some(&mut self, neglected: VcpuSet) {
        let some = neglected.lowest::<MADE_UP_FOR>();
        self.backlog.neglected = neglected - some;
        self.make_up_for(some);
    }
}
