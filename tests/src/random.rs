//! Random systems: what must hold for every system is checked on many that nobody thought of.
//!
//! | module | subject |
//! |---|---|
//! | [`description`] | a system as values; shown as a manifest |
//! | [`generate`] | a valid system from a seed |
//! | [`oracle`] | what it promises, by rules on the description alone |
//! | [`run`] | runs it in lockstep time; somebody types |
//! | [`check`], [`counters`] | compares a run with the promises, and its counters with each other |
//! | [`text`] | what talking guests print, computed |
//! | [`shrink`] | makes a failing system smaller |
//! | [`rng`] | the same numbers for the same seed for ever |
//!
//! The tool is `tests/src/bin/random-systems.rs`; a fixed set runs with the emulator's tests.

pub mod check;
pub mod counters;
pub mod description;
pub mod generate;
pub mod oracle;
pub mod rng;
pub mod run;
pub mod shrink;
pub mod text;
