//! What policies are made of. A policy is a pure choice (`crates/sched`); what it chooses among is done here, one file each. A core asks a
//! mechanism only where its policy uses it.
pub mod attend;
pub mod confine;
pub mod defer;
pub mod fetch;
pub mod lend;
pub mod settle;
pub mod shield;
pub mod watch;
