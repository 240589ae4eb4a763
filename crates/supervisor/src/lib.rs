//! The supervisor-level state of a RISC-V hart, in software: what a guest's kernel has of it where harts have no H extension.
//!
//! Such a kernel runs in user mode, and each of its privileged instructions traps. [`Privileged::decode`] says which one it was, and a [`Supervisor`] carries it
//! out as the hart of the guest would have (privileged specification, "Supervisor-Level ISA", version 1.13; RV64). It is the trap-and-emulate of Popek and
//! Goldberg (1974), whose condition RISC-V's supervisor level meets: all that reads or writes its state traps in user mode.
//!
//! | the hart traps, as the guest | what to call |
//! |---|---|
//! | executes `csrrw` and the like | [`Supervisor::access`] |
//! | executes SRET | [`Supervisor::sret`] |
//! | executes WFI, and nothing [wakes](Supervisor::wakes) it | nobody: its hart waits |
//! | executes SFENCE.VMA, SINVAL.VMA and the like | the shadow of its tables, if [`Supervisor::allows`] it |
//! | does what its own kernel has to be told of | [`Supervisor::trap`] |
//! | is to be interrupted | [`Supervisor::set_line`], [`Supervisor::check_timer`]; then [`Supervisor::pending_interrupt`], and [`Supervisor::trap`] |
//!
//! # What the hart itself has to be told
//! While the guest runs, the hart is in user mode, with an `sstatus` of which [`Supervisor::hart_status`] says the guest's part, with [`Supervisor::hart_counters`] as
//! `scounteren` and [`Supervisor::hart_environment`] as `senvcfg`, and with tables that are those of the [`View`]. What an instruction changes of all this is in its [`Effects`].
//!
//! # What the guest is offered
//! Its [`Features`]. There is no H, no AIA, no Smstateen, no Sscofpmf, no Ssdbltrp, no Zicfilp and no Zicfiss; `sstatus.UXL` is read-only (64 bits), and so is `UBE` (little-endian).
//! `mstatus.TVM`, `TSR` and `TW`, by which firmware could keep a kernel from SFENCE.VMA, SRET and WFI, are 0.
//! Where the specification leaves a choice, it is the one of QEMU's harts, so that the two can be compared: all bits of `scause`, `stval`, `sscratch` and `stvec` are kept;
//! a write of `stvec` with a reserved mode is ignored.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

mod access;
mod cause;
mod csr;
mod features;
mod inspect;
mod instruction;
mod status;
mod supervisor;
#[cfg(test)]
mod tests;

pub use access::{Effects, Illegal, Outcome};
pub use cause::Cause;
pub use features::Features;
pub use instruction::Privileged;
pub use status::{Unit, Units};
pub use supervisor::{Line, Offsets, Privilege, Supervisor, View};
