//! Do the tasks that guests declare keep their deadlines? Response-time analysis of fixed priorities in two levels: guests on a hart,
//! tasks within a guest. Plain arithmetic on times in nanoseconds: nothing here reads a file or runs a system.
//!
//! | module | subject |
//! |---|---|
//! | [`response`] | the longest response of a task on one hart: busy periods, jitter, blocking, deadlines beyond the period |
//! | [`supply`] | when a hart is whose, under a policy with windows in time |
//! | [`schedule`] | who runs when if all are released at once, for pictures, and for tests of the analysis |
//! | [`system`] | what is asked: guests, their tasks, the policy |
//! | [`costs`] | what the hypervisor takes for itself |
//! | [`limits`] | where nothing can be said, and why |
//! | [`analysis`] | the answer for a system: each task, and what is left of each hart |
//!
//! An answer that a task meets its deadline is a promise, so each term is a bound: where none is known, the answer is that nothing can be
//! said. What is promised holds for what is declared: a task that computes for longer than it says, comes more often, or that isn't declared, is
//! in no bound.
//!
//! Two tasks of one guest, alone on a hart:
//!
//! ```
//! use ainori_deadlines::response::{Load, worst};
//! use ainori_deadlines::supply::Supply;
//!
//! let load = |rank, period, cost| Load { rank, period, cost, deadline: period, jitter: 0, blocking: 0 };
//! let loads = [load(2, 10, 4), load(1, 30, 9)];
//! assert_eq!(worst(&loads, 1, &Supply::always()).unwrap().response, 17); // 9, and 4 twice
//! ```
#![forbid(unsafe_code)]

pub mod analysis;
pub mod costs;
pub mod limits;
pub mod response;
pub mod schedule;
pub mod supply;
pub mod system;

#[cfg(test)]
mod tests;

pub use analysis::{Answer, HartAnswer, Part, Verdict, analyse};
pub use costs::{Costs, Paths};
pub use system::{Guest, System, Task, Vcpu};
