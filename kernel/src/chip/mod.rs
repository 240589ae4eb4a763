//! The board: what is on it, and drivers for the devices that the hypervisor itself uses.
pub mod board;
pub mod ipi;
pub mod irqchip;
pub mod quiet;
pub mod uart;

pub use board::Board;
