//! What the board is, learnt from the device tree that the firmware hands over: harts and their extensions, memory, the console, the interrupt
//! controller, devices that guests may own.
//!
//! It is read at boot only, and nothing here touches the hardware: so all of it runs in host tests as well.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
extern crate alloc;

mod board;
mod imsic;
mod irqchip;
mod isa;
mod owned;
mod range;
#[cfg(test)]
mod tests;
mod tree;
#[cfg(feature = "uarts")]
pub mod uarts;

pub use board::{Board, BoardHart, BoardUart, Device, Error};
pub use imsic::{IPI_IDENTITY, identities_of};
pub use irqchip::{BoardIrqchip, Interrupt, Trigger, aplic_number};
pub use isa::{Environment, INTERRUPT_FILE, Isa};
pub use owned::OwnedInterrupt;
pub use range::{Range, Ranges, largest_free};
