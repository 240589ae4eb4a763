//! What a guest sees of its machine: the services of its firmware and its virtual devices, over a small interface to whatever runs it ([`Host`]).
//!
//! The hypervisor's core is one host. The tests have another one, which is a few words of memory, so that all of this runs under random guests on any
//! computer. Dispatch is static: in the hypervisor nothing of the interface is left.
//!
//! | module | what |
//! |---|---|
//! | [`sbi`] | carries out what a guest asks its firmware for; `ainori-sbi` has decoded and checked it |
//! | [`bus`] | loads and stores that reach virtual devices |
//! | [`serial`] | the serial port: registers of a 16550A and the SBI's debug console, which are one stream |
//!
//! Every function does a bounded amount of work, whatever the guest passes. None waits: what is taken by somebody else at this moment has the guest try
//! again, and the trap that this makes is a preemption point.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

pub mod bus;
pub mod sbi;
pub mod serial;
#[cfg(test)]
mod tests;

use ainori_devices::channel::Endpoint;
use ainori_devices::irqchip::{Board, Irqchip};
use ainori_lifecycle::{Cause, Hart};
use ainori_sbi::RemoteFence;

use serial::Serial;

/// The virtual devices of a guest. Shared by its vCPUs.
pub struct Devices {
    /// Its interrupt controller.
    pub irqchip: Irqchip,
    /// Its serial port.
    pub serial: Serial,
    /// Its ends of channels to other guests, by their slots of its PCI bus: at most `GUEST_CHANNELS` of `ainori_limits`.
    pub channels: &'static [Endpoint],
}

/// What the services want of whatever runs the guest, on behalf of one of its vCPUs: the *caller*, whose trap is being served. Harts are the guest's own,
/// by their ids there; sets of them have a bit each, and name only harts that are there. As a [`Board`] it is what the guest's sources stand for that are relayed.
pub trait Host: Board {
    /// The guest's devices.
    fn devices(&self) -> &'static Devices;

    /// The state of a hart. `None` if the guest has no such hart.
    fn hart(&self, hart: u32) -> Option<&'static Hart>;
    /// The caller stops itself, and doesn't go on behind its trap. True if all harts of the guest have stopped by now.
    fn stop_caller(&mut self) -> bool;
    /// Are all harts stopped but the caller?
    fn is_alone(&self) -> bool;
    /// A hart has been [asked](Hart::ask_start) to start.
    fn start(&mut self, hart: u32);
    /// The caller sleeps until an interrupt, unless there is one already.
    fn suspend(&mut self);
    /// The caller doesn't go on behind its trap, but at this guest-physical address: as the SBI resumes a hart that has kept nothing, with its id in `a0`,
    /// `opaque` in `a1`, no translation, and its interrupts off, but enabled as they were (SBI 2.0, 9.4, table 20).
    fn resume_at(&mut self, address: u64, opaque: u64);
    /// The caller lets its equals go first.
    fn yield_now(&mut self);
    /// The guest ends: why, in the words of reports, and as its rules for restarts see it.
    fn stop_guest(&mut self, reason: &'static str, cause: Cause);

    /// Sets the caller's timer, in ticks of `time`.
    fn set_timer(&mut self, at: u64);
    /// Raises the software interrupt of these harts.
    fn send_ipi(&mut self, harts: u64);
    /// Takes back the caller's software interrupt. Was there one?
    fn take_software_interrupt(&mut self) -> bool;
    /// Has these harts fence. The caller doesn't go on before they have.
    fn remote_fence(&mut self, harts: u64, fence: RemoteFence);
    /// The external interrupts of these harts may have changed: [`Irqchip::is_pending`].
    fn look_at_harts(&mut self, harts: u64);

    /// The bell at the other end of the channel in this slot rings.
    fn ring(&mut self, slot: usize);
    /// The caller has let the bell of the channel in this slot interrupt, which has rung before: it does now, or soon.
    fn hear(&mut self, slot: usize);
    /// The caller has looked at the bell of the channel in this slot.
    fn has_looked(&mut self, slot: usize);

    /// Is this range of guest-physical addresses the guest's memory, all of it?
    fn has_memory(&self, address: u64, size: u64) -> bool;
    /// What lies in its memory from `address` on: `size` bytes, or none if they aren't all there. The guest may change them meanwhile.
    fn load(&self, address: u64, size: usize) -> Option<impl Iterator<Item = u8> + use<Self>>;
    /// Puts a byte into its memory. Nothing happens where there is none.
    fn store(&mut self, address: u64, byte: u8);

    /// Something typed waits for room in the guest's port.
    fn input_waits(&self) -> bool;
    /// The guest has output that should be sent, or room for input.
    fn wake_console(&mut self);
    /// The guest's output has no more room: it should be sent, and the caller's trap isn't to keep that waiting.
    fn relieve_console(&mut self);

    /// The guest has marked a place in the trace.
    fn mark(&mut self, value: u64);
    /// The caller says whether it holds a lock.
    fn note_lock(&mut self, holds_lock: bool);
}
