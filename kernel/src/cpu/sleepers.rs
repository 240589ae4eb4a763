//! vCPUs that sleep on this core: when their timers are due, and what becomes of one that is woken, by its timer or by anything else.
use ainori_sched::VcpuId;
use ainori_trace::{Event, Line};

use super::Cpu;
use crate::arch::clock;
use crate::guest::vcpu::Hold;

/// So many vCPUs whose timers are due are woken in one go.
const WOKEN_AT_ONCE: usize = 4;

impl Cpu {
    /// The running vCPU doesn't go on until something wakes it.
    pub fn rest(&mut self, id: VcpuId) {
        self.scheduler.sleep(id);
        self.watch_timer(id);
        self.trace(Event::Sleep { vcpu: id.0 });
    }

    /// Wakes sleeping vCPUs whose timers are due, or soon will be. Are there any? If there are more, `next_deadline` says so: they have their
    /// turns behind a preemption point.
    #[inline(always)]
    pub(super) fn wake_expired(&mut self, now: u64) -> bool {
        if self.next_deadline > now + self.guard {
            return false;
        }
        let woken = self.wake_next(now);
        match woken {
            Some(id) if !self.urgent.contains(id) => self.wake_others(),
            // Whoever else is due can wait until an urgent one has been entered.
            Some(_) => self.update_deadline(Some(now)),
            // Who seemed to be due was not: that has been looked for just now.
            None => {}
        }
        woken.is_some()
    }

    #[inline(never)]
    fn wake_others(&mut self) {
        // BOUND: a few vCPUs, some 80 instructions each, and 20 for each level that has sleepers. Before each is a preemption point.
        for _ in 1..WOKEN_AT_ONCE {
            if self.gives_way() {
                break;
            }
            // An urgent one may be due by now.
            match self.wake_next(clock::now()) {
                Some(id) if !self.urgent.contains(id) => {}
                _ => break,
            }
        }
        // Who is next is found out when it is asked for: `pending.deadlines`.
    }

    /// Wakes the next sleeper if it is due, or if it takes the core from others and soon will be: then the core waits for the rest of it.
    #[inline(always)]
    fn wake_next(&mut self, now: u64) -> Option<VcpuId> {
        // Behind one that takes no core from others, one that does may soon be due.
        if self.pending.deadlines || !self.urgent.contains(self.next_sleeper) && !self.urgent.is_empty() {
            self.update_deadline_out_of_line(Some(now));
        }
        let (id, at) = (self.next_sleeper, self.next_deadline);
        let until = if self.urgent.contains(id) { now + self.guard } else { now };
        if at > until {
            return None;
        }
        let resident = self.resident(id);
        resident.due = at + resident.advance;
        let threshold = resident.threshold;
        self.raise_threshold(threshold, now);
        self.scheduler.expire(id);
        self.note_wake(id, now);
        self.pending.deadlines = true;
        self.trace(Event::Raised { vcpu: id.0, line: Line::Timer });
        Some(id)
    }

    /// Finds who of those sleepers that may disturb what this core runs is to be woken next: the one whose timer comes first, or if it is to be woken
    /// `now`, the most urgent one whose timer is due by then, or within the guard if it takes the core from others.
    #[inline(always)]
    pub(super) fn update_deadline(&mut self, now: Option<u64>) {
        self.pending.deadlines = false;
        let lowest = self.threshold.lowest();
        self.next_deadline = u64::MAX;
        // BOUND: the levels that have sleepers, some 20 instructions each.
        for (id, at) in self.scheduler.timers(lowest) {
            if at < self.next_deadline {
                (self.next_sleeper, self.next_deadline) = (id, at);
            }
            if let Some(now) = now
                && (at <= now || at <= now + self.guard && self.urgent.contains(id))
            {
                break;
            }
        }
    }

    /// The same where few instructions more don't matter.
    #[inline(never)]
    pub(super) fn update_deadline_out_of_line(&mut self, now: Option<u64>) {
        self.update_deadline(now);
    }

    /// From now on this core wakes a vCPU, which sleeps here, when its timer is due.
    #[inline(always)]
    pub(super) fn watch_timer(&mut self, id: VcpuId) {
        match self.resident(id).wake_at() {
            Some(at) => {
                self.scheduler.set_timer(id, at);
                if at < self.next_deadline {
                    (self.next_sleeper, self.next_deadline) = (id, at);
                }
            }
            None => self.ignore_timer(id),
        }
    }

    /// This core doesn't wake a vCPU by its timer any more.
    #[inline(always)]
    pub(super) fn ignore_timer(&mut self, id: VcpuId) {
        self.scheduler.clear_timer(id);
        self.pending.deadlines = true;
    }

    /// A sleeping vCPU may have something to do.
    pub(super) fn wake(&mut self, id: VcpuId) {
        if self.resident(id).hold == Hold::None && self.scheduler.asleep().contains(id) {
            self.trace(Event::Wake { vcpu: id.0 });
            self.scheduler.wake(id);
            self.note_wake(id, clock::now());
            self.unsettle(id);
            self.pending.deadlines = true;
        }
    }

    /// A vCPU has joined the run queue.
    #[inline(always)]
    fn note_wake(&mut self, id: VcpuId, now: u64) {
        self.pending.woken = true;
        self.note_ready(id);
        // If it has slept and woken since the last decision, it has had the core all the time, and may go on without having waited. If
        // it doesn't, `leave_vcpu` says since when it waits.
        if self.scheduler.picked() != Some(id) {
            self.machine.vcpu(id).publish_waiting(now);
        }
    }
}
