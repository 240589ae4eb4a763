//! Everything that knows RISC-V. The rest of the kernel uses what is `pub` here, CSR names in `csr` included.
//!
//! This back end needs the H extension (guest kernels run in VS-mode). One without it would be a sibling folder
//! that defines the same modules and names.
pub mod clear;
pub mod context;
pub mod csr;
pub mod fence;
pub mod firmware;
mod float;
pub mod gstage;
pub mod guest_access;
pub mod hart;
pub mod isa;
pub mod start;
pub mod trap;
mod vector;
pub mod world;

pub use context::Context;
pub use trap::{Exception, Interrupt, Trap};
