//! Devices as a guest sees them, as plain state machines.
//!
//! Nothing here knows the hardware or the hypervisor: registers go in, values and interrupt lines come out. The kernel
//! binds a device to a guest-physical address, decodes the trapping instruction with [`mmio`], and carries an interrupt
//! line to the vCPU.
//!
//! | module | device | shared between cores |
//! |---|---|---|
//! | [`irqchip`] | the guest's interrupt controller, whichever kind it is | as that |
//! | [`plic`] | RISC-V platform-level interrupt controller | yes, without locks |
//! | [`aia`] | an APLIC with its interrupt files | yes, without locks |
//! | [`aplic`] | advanced PLIC (AIA) | yes, without locks |
//! | [`imsic`] | interrupt file of a vCPU (AIA) | yes, without locks |
//! | [`uart`] | 16550A serial port | no: `&mut self`, the caller serialises |
//! | [`finisher`] | `sifive,test`: power off, reboot | no state |
//! | [`watchdog`] | Allwinner's watchdog | yes, without locks |
//! | [`virtio`] | empty slots for virtio devices | no state |
//! | [`channel`] | a guest's end of a channel to another: `ivshmem`, memory that both see and a doorbell | yes, without locks |
//! | [`pci`] | the configuration space in which guests find these | no state |
//! | [`bus`] | which device answers at which address | no state |
//! | [`mmio`] | decoder of load and store instructions | no state |
//! | [`zicsr`] | decoder of instructions that reach control and status registers | no state |
//!
//! Every operation does a bounded amount of work, whatever the guest writes.
#![no_std]
#![forbid(unsafe_code)]

#[macro_use]
mod atomic;
pub mod aia;
pub mod aplic;
pub mod bus;
pub mod channel;
pub mod finisher;
pub mod imsic;
pub mod irqchip;
pub mod mmio;
pub mod pci;
pub mod plic;
pub mod uart;
pub mod virtio;
pub mod watchdog;
pub mod zicsr;
