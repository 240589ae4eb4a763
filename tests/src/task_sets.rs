//! Random sets of tasks: what `ainori check` says of their deadlines, against what a run in lockstep time shows.
//!
//! | module | subject |
//! |---|---|
//! | [`generate`] | a set from a seed: one or two FreeRTOS on a hart, beside somebody who computes on |
//! | [`spread`] | one of which a guest has tasks on two harts |
//! | [`judge`] | the answer and the run, and what doesn't hold between them |

pub mod generate;
pub mod judge;
pub mod spread;
