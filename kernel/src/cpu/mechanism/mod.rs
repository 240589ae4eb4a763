//! What policies are made of. A policy is a pure choice (`crates/sched`); what it chooses among is done here, one file each. A core asks
//! these only where its policy uses them.
pub mod apart;
pub mod confine;
pub mod defer;
pub mod gangs;
pub mod migrate;
pub mod pull;
pub mod push;
pub mod settle;
pub mod strays;
pub mod watch;
