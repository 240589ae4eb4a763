//! The hypervisor: it boots on the firmware in HS-mode, and then runs one event loop on each core.
//!
//! Where to look: [`boot`] makes the machine, [`cpu`] is the kernel of one core ([`cpu::event`] its event loop), [`guest`] what
//! guests see, [`arch`] all that knows RISC-V, [`chip`] the board.
#![no_std]
#![no_main]

extern crate alloc;

mod arch;
mod boot;
mod chip;
mod cpu;
mod guest;
mod memory;
mod panic;
mod report;
mod stats;
