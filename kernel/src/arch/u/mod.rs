//! Harts without the H extension: guests' kernels run in U-mode, as their programs do. Each privileged instruction of theirs traps, and is carried out
//! on registers in memory ([`ainori_supervisor`]); and the hart walks shadow tables ([`ainori_shadow`]), which map for a guest's kernel what that may reach, and for its programs what these may.
//!
//! The hypervisor's own code isn't in these tables, but for one page that changes from the one to the other ([`window`]), as a kernel's trampoline does where user tables don't map the kernel.
mod breakpoints;
pub mod context;
mod fast;
pub mod fence;
pub mod files;
pub mod guest_access;
pub mod hart;
mod inject;
mod map;
mod page;
pub mod per_hart;
mod privileged;
mod senvcfg;
pub mod shadow;
#[cfg_attr(feature = "sbi-timer", path = "sbi_timer.rs")]
pub mod timer;
pub mod trap;
pub mod vcpu;
mod window;
pub mod world;

pub use vcpu::VcpuState;
