//! Everything that knows RISC-V. The rest of the kernel uses what is named here, and nothing else: the folders are private.
//!
//! `riscv` is what every hart has in common, `h` the back end for harts with the H extension, whose guests' kernels run in VS-mode, and `u` the one for harts without it, whose
//! guests' kernels run in user mode. Each defines what is taken from `back_end` here; which one a kernel has is decided when it is built (docs/boards.md, A hart without H).
//! The files beside them are what both have of vCPUs and of tables.
pub mod gstage;
#[cfg(not(feature = "no-h"))]
mod h;
#[cfg(feature = "shadow")]
mod page_fault;
mod riscv;
#[cfg(feature = "shadow")]
mod shadow_tables;
#[cfg(feature = "no-h")]
mod u;
mod vcpu;

#[cfg(not(feature = "no-h"))]
use h as back_end;
#[cfg(feature = "no-h")]
use u as back_end;

pub use back_end::{VcpuState, context, files, guest_access, shadow, trap, world};
pub use riscv::{clear, clock, firmware, imsic, start};

/// One hart: what it can do, setting it up for guests, and the hypervisor's own interrupts.
pub mod hart {
    pub use super::back_end::hart::*;
    #[cfg(all(feature = "sbi-timer", not(feature = "no-h")))]
    pub use super::back_end::timer::adopt;
    pub use super::back_end::timer::settle_alarm;
    #[cfg(feature = "sbi-timer")]
    pub use super::back_end::timer::wait; // in place of the hart's
    #[cfg(any(feature = "no-h", feature = "sbi-timer"))]
    pub use super::back_end::timer::{pending_own_interrupts, set_alarm}; // likewise
    pub use super::riscv::hart::*;
}

/// Fences, the hypervisor's own and those that it executes for guests.
pub mod fence {
    pub use super::back_end::fence::*;
    pub use super::riscv::fence::*;
}
