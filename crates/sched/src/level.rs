//! Levels that change: how urgent a vCPU is on a core, and what follows when that is no longer what it was.
//!
//! The kernel uses them for temporal partitioning ([`Scheduler::set_levels`](crate::Scheduler::set_levels)); under all other policies a vCPU keeps its
//! level on a core. Priority inheritance will need them, too. What the kernel derives from a level is listed in docs/policies.md, Levels that change.
//!
//! A vCPU's *level* is where it waits in the run queue of one core: `Some(n)` below [`PRIORITIES`](ainori_limits::PRIORITIES), of which the higher
//! goes first, or `None`: it has no turn there, whether it has something to do or not. [`Scheduler::level`](crate::Scheduler::level) is the one place that
//! says what it is now. Where it comes from:
//!
//! | a level | comes from |
//! |---|---|
//! | at first | the policy, [`Policy::level`](crate::Policy::level), for the class with which a core [adopts](crate::Scheduler::adopt) the vCPU |
//! | from core to core | the class, which differs under a policy that [ranks by core](crate::Policy::ranks_by_core): each core adopts with the one that the vCPU has there. That is a constant, so others know it without asking that core |
//! | in time | the core's [`Calendar`](crate::Calendar): whenever a window begins or ends, its guest's vCPUs have their level and all others none ([`set_levels`](crate::Scheduler::set_levels)) |
//! | for a while | whoever lends it his own (priority inheritance): the higher of the two. Levels are ordered, `None` is the lowest |
//!
//! A changed level is known only to the scheduler of the core that owns the vCPU, or has it stealable. Whoever moves it to another core adopts it
//! there with what the first two say, and then calls `set_level` for the others.
/// What has to be asked again after levels have changed.
#[must_use = "the last decision, or the next deadline, may be out of date"]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AskAgain {
    /// Ask [`Scheduler::schedule`](crate::Scheduler::schedule): somebody else goes first, an equal waits for the quantum's end or none does any
    /// more, or the level of the running vCPU is another, and with it all that follows from it
    /// ([`Policy::threshold`](crate::Policy::threshold)).
    pub schedule: bool,
    /// Ask [`Scheduler::timers`](crate::Scheduler::timers): a sleeper with a timer has another level.
    pub timers: bool,
}

impl core::ops::BitOrAssign for AskAgain {
    #[inline]
    fn bitor_assign(&mut self, other: Self) {
        self.schedule |= other.schedule;
        self.timers |= other.timers;
    }
}
