//! The system description.
//!
//! A *manifest* is a TOML file that says what runs on a board: guests, their vCPUs, memory and devices, and the policy
//! that shares the harts among them. `docs/` has its reference. This crate reads and checks manifests on the host
//! (`Manifest::load`), and defines what the hypervisor sees of them: [`config::System`], carried in a
//! [`blob`] behind the hypervisor's own image.
//!
//! Without the feature `host` (default) the crate is `no_std` and holds only what the hypervisor needs.
#![cfg_attr(not(feature = "host"), no_std)]
extern crate alloc;

pub mod blob;
pub mod config;
#[cfg(feature = "host")]
mod host;
mod housework;
pub mod layout;

pub use housework::housekeeping_core;

#[cfg(feature = "host")]
pub use host::{
    Board, Clock, DEFAULT_TRACE_RECORDS, Disk, Finding, Findings, Forward, GuestPaths, Interrupts, Load,
    MAX_TRACE_RECORDS, Manifest, Needs, Network, Place, PowerButton, Problem, RunSettings, Span, Task, files,
    has_h, has_sstc, show_size,
};
