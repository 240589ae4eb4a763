//! What policies are made of. A policy is a pure choice (`crates/sched`); what it chooses among is done here, one file each. A core asks
//! most of these only where its policy uses them. Two serve every policy, also one that moves nobody: [`threshold`]; and in [`push`] the
//! alarm for whatever the core has deferred ([`look_again_at`](crate::cpu::Cpu::look_again_at) and its neighbours), which is also the one
//! for who waits here too long.
pub mod apart;
pub mod confine;
pub mod defer;
pub mod gangs;
pub mod migrate;
pub mod pull;
pub mod push;
pub mod settle;
pub mod threshold;
pub mod watch;
