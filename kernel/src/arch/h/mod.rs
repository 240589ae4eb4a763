//! Harts with the H extension: guests' kernels run in VS-mode, and the hart translates their addresses a second time.
pub mod context;
pub mod fence;
pub mod files;
pub mod guest_access;
pub mod hart;
mod hgatp;
mod inject;
#[cfg_attr(not(feature = "shadow"), path = "no_shadow.rs")]
pub mod shadow;
#[cfg_attr(feature = "sbi-timer", path = "sbi_timer.rs")]
pub mod timer;
pub mod trap;
pub mod vcpu;
pub mod world;

pub use vcpu::VcpuState;
