//! Drivers for the devices of the board that the hypervisor itself uses.
pub mod ipi;
pub mod irqchip;
pub mod quiet;
#[cfg_attr(feature = "uarts", path = "uarts.rs")]
pub mod uart;
