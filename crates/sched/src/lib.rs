//! Which vCPU runs on a core: states, run queue, policies.
//!
//! Each core has a [`Scheduler`] of its own, which knows only the vCPUs that this core owns. It is a state
//! machine: the kernel tells it what happens (a vCPU wakes, sleeps, yields), asks at each scheduling point
//! for a [`Decision`], and carries that out. Nothing here knows of RISC-V, of guests, or of other cores.
//!
//! The model is SPUMONE's (thesis, 3.2): vCPUs are sleeping, suspended or running; priorities are fixed;
//! equals take turns with a quantum. What differs between systems is a value, the [`Policy`]: four
//! choices, each with pure functions that the scheduler and the kernel ask. The [presets](presets()) are the named
//! combinations.
//!
//! | state | in the run queue | leaves it by |
//! |---|---|---|
//! | [`State::Sleeping`] | no | [`wake`](Scheduler::wake), to the tail of its level |
//! | [`State::Suspended`] | yes | [`schedule`](Scheduler::schedule), when it is picked; [`sleep`](Scheduler::sleep) |
//! | [`State::Running`] | yes, at the head of its level | [`schedule`](Scheduler::schedule), when another is picked; [`sleep`](Scheduler::sleep); [`yield_now`](Scheduler::yield_now) |
//!
//! An RTOS preempts Linux at its wake-up, and Linux goes on where it was:
//!
//! ```
//! use ainori_sched::{Class, Policy, Scheduler, VcpuId};
//!
//! let (linux, rtos) = (VcpuId(0), VcpuId(1));
//! let mut scheduler = Scheduler::new(Policy::preset("spumone", 5_000, 10_000_000).unwrap());
//! scheduler.adopt(linux, Class { priority: 1, guest: 0 });
//! scheduler.adopt(rtos, Class { priority: 10, guest: 1 });
//!
//! scheduler.wake(linux);
//! assert_eq!(scheduler.schedule(0).run, Some(linux));
//!
//! scheduler.wake(rtos);
//! let decision = scheduler.schedule(100);
//! assert_eq!((decision.run, decision.previous, decision.preempted), (Some(rtos), Some(linux), true));
//!
//! scheduler.sleep(rtos);
//! assert_eq!(scheduler.schedule(200).run, Some(linux));
//! ```
//!
//! Levels may [change](level), by a core's [`Calendar`] or whenever somebody says so. Where they don't, that costs nothing: the queue has one list
//! more, which no search comes to.
//!
//! Every operation takes constant time but few ([`set_timer`](Scheduler::set_timer), [`co_schedule`](Scheduler::co_schedule), and what changes levels),
//! and few instructions: they are on the way from a timer interrupt to the RTOS.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

mod calendar;
mod gangs;
pub mod level;
mod lists;
mod policy;
mod presets;
mod scheduler;
mod spin;
mod timers;
mod vcpu;

#[cfg(test)]
mod tests;

pub use calendar::{Calendar, CalendarError, Piece, Window};
pub use gangs::Gangs;
pub use level::AskAgain;
pub use policy::{Admission, Condition, Occasion, Placement, Policy, Preemption, Ranking};
pub use presets::{Preset, presets};
pub use scheduler::{Decision, Scheduler};
pub use spin::SpinDetector;
pub use vcpu::{Class, State, VcpuId, VcpuIter, VcpuSet};

/// A point in time or a length of it, in ticks of the `time` CSR.
pub type Time = u64;
