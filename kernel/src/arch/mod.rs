//! Everything that knows RISC-V. The rest of the kernel uses what is named here, and nothing else: the folders are private.
//!
//! [`riscv`] is what every hart has in common, [`h`] the back end for harts with the H extension, whose guests' kernels run in VS-mode. A back end for
//! others would be one more folder, which defines the modules and names that are taken from `h` here; which one a kernel has is decided when
//! it is built.
mod h;
mod riscv;

pub use h::context::Context;
pub use h::trap::{Exception, Interrupt, Trap};
pub use h::{context, gstage, guest_access, hart, trap, world};
pub use riscv::{clear, csr, firmware, isa, start};

pub use h::fence;
