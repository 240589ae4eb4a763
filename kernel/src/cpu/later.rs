//! What this core has left for later, and when it looks at that.
//!
//! Four kinds of such work have times of their own: what was deferred (the [backlog](super::backlog), vCPUs that get no turn here, the time
//! for which others keep quiet), a device's interrupt that waits, the end of a [window in time](super::mechanism::windows), and the next sample of a vCPU that is watched. There is one alarm for
//! all of them: the way to a guest asks for the earliest time only ([`Later::due`]), however many kinds there are. Every policy needs
//! this, also one that moves nobody. The hypervisor's slow work has its own time ([`housekeeping`](super::housekeeping)).
use ainori_sched::VcpuId;

use super::Cpu;
use crate::arch::{clock, world};

/// The times, in ticks of `time`; `u64::MAX` where there is nothing.
pub(super) struct Later {
    /// When to look at what was deferred.
    look: u64,
    /// When a device's interrupt that waits has its turn.
    device: u64,
    /// When a window in time ends.
    window: u64,
    /// The earlier of these two.
    timed: u64,
    /// The earliest of all these and, while a watched vCPU has the core, of its next sample. Later than that where it was [put off](Self::put_off).
    due: u64,
    /// `look` was put off for vCPUs that take cores from others, the last one of this priority; plus one, 0 if for none.
    held_off_for: u8,
}

impl Later {
    /// Nothing was left.
    pub const fn new() -> Self {
        let never = u64::MAX;
        Self { look: never, device: never, window: never, timed: never, due: never, held_off_for: 0 }
    }

    /// When the alarm is wanted.
    #[inline(always)]
    pub fn due(&self) -> u64 {
        self.due
    }

    /// True if something was deferred.
    #[inline(always)]
    pub fn is_deferred(&self) -> bool {
        self.look != u64::MAX
    }

    /// The earliest of the times that don't depend on who has the core.
    #[inline(always)]
    pub fn due_for_all(&self) -> u64 {
        self.look.min(self.timed)
    }

    /// A window in time ends then.
    pub fn set_window(&mut self, at: u64) {
        self.window = at;
        self.timed = self.window.min(self.device);
    }

    /// A device's interrupt that waits has its turn then.
    #[inline]
    fn set_device(&mut self, at: u64) {
        self.device = at;
        self.timed = self.window.min(self.device);
    }

    /// True if a device's interrupt that waits has its turn.
    #[inline(always)]
    pub fn is_device_due(&self, now: u64) -> bool {
        self.device <= now
    }

    /// True if it is time to look at what was deferred: then the caller does, and nothing is noted any more.
    #[inline(always)]
    pub fn take_look(&mut self, now: u64) -> bool {
        let is_over = self.look <= now;
        if is_over {
            (self.look, self.held_off_for) = (u64::MAX, 0);
        }
        is_over
    }

    /// What was deferred has been seen to, or needs not be any more. The next sample is left out, too, until whoever gets the core is known.
    #[inline(always)]
    pub fn forget_look(&mut self) {
        (self.look, self.held_off_for) = (u64::MAX, 0);
        self.leave_out_sample();
    }

    /// True if the time of what was deferred has been [set later](Cpu::hold_off_look).
    #[inline(always)]
    pub fn is_held_off(&self) -> bool {
        self.held_off_for != 0
    }

    /// No sample is waited for: nobody who is watched has the core, or it isn't known yet who gets it.
    #[inline(always)]
    pub fn leave_out_sample(&mut self) {
        self.set_sample(u64::MAX);
    }

    /// The next sample of whoever has the core is due then.
    #[inline(always)]
    pub fn set_sample(&mut self, at: u64) {
        self.due = self.due_for_all().min(at);
    }

    /// The alarm isn't wanted before `until`, unless one of the times changes.
    #[inline(always)]
    pub fn put_off(&mut self, until: u64) {
        self.due = self.due.max(until);
    }

    #[inline(always)]
    fn look_at(&mut self, at: u64) {
        self.look = self.look.min(at);
        self.due = self.due.min(at);
    }
}

impl Cpu {
    /// Has this core look at `at`, whatever it does then, for what it has deferred and whom it has left alone.
    ///
    /// That interrupts whoever runs then. If it is one that takes cores from others, not just when its own timer is due: as that may be set anew
    /// whenever it is, a while after the next time is the best guess.
    #[inline]
    pub(super) fn look_again_at(&mut self, at: u64) {
        let at = self.clear_of_own_timer(at);
        self.later.look_at(at);
        self.pending.alarm = true;
    }

    fn clear_of_own_timer(&self, at: u64) -> u64 {
        let runs =
            self.scheduler.running().filter(|id| self.urgent.contains(*id) && self.loaded == Some(*id));
        let own = runs.and_then(|_| world::loaded_deadline());
        let now = clock::now();
        let comes_first = |own: &u64| now < *own && *own <= at + self.guard;
        own.filter(comes_first).map_or(at, |own| own + self.scheduler.policy().patience)
    }

    /// What was deferred for a vCPU that has run before waits for one that takes cores from others, too, if that gets the core now. But
    /// only for one of each priority in turn, should the core be taken again and again.
    ///
    /// Nor is it left for much later: when that one's timer is due next isn't known before it has set it, and a look in passing may be just then (a
    /// task 2.7 us late, where another try was due a millisecond after a tick).
    #[inline(never)]
    pub(super) fn hold_off_look(&mut self, id: VcpuId, now: u64) {
        if !self.urgent.contains(id) {
            return;
        }
        let priority_plus_one = self.order.rank(id).class.priority + 1;
        let look = self.resident(id).due.max(now) + self.scheduler.policy().patience;
        if priority_plus_one > self.later.held_off_for || self.later.look > look {
            self.later.held_off_for = self.later.held_off_for.max(priority_plus_one);
            self.later.look = look;
            self.later.leave_out_sample();
        }
    }

    /// When a device's interrupt that waits has its turn has changed.
    #[inline]
    pub(super) fn set_device_due(&mut self, at: u64) {
        self.later.set_device(at);
        self.look_for_sample();
        self.pending.alarm = true;
    }

    /// What there is to look at has changed, but not who has the core.
    #[inline]
    pub(super) fn look_for_sample(&mut self) {
        let at = self.next_sample();
        self.later.set_sample(at);
    }
}
