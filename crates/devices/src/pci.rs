//! The configuration space in which a guest finds the [ends](Endpoint) of its channels: one bus, a device for each, in the enhanced mechanism's layout (PCI
//! Express Base Specification 5.0, 7.2.2), as Linux's `pci-host-ecam-generic` reads it.
//!
//! Where a device's registers and memory are can't be chosen: its BARs are hard-wired to zero, and a capability says where they are instead (Enhanced
//! Allocation, 7.8.5). So no guest can move them, and its second stage need not follow.

use crate::bus::{DOORBELL_SIZE, bell_page, channel_memory, channel_source, doorbell};
use crate::channel::Endpoint;
use ainori_limits::PAGE;

/// Device and vendor of `ivshmem`.
const ID: u32 = 0x1110 << 16 | VENDOR;
const VENDOR: u32 = 0x1af4;
/// Class: memory, RAM. Revision 0: its interrupt is INTx.
const CLASS: u32 = 0x0500 << 16;
/// Of the status register, in the upper half of the command register's word: there is a list of capabilities; INTx is asked for.
const HAS_CAPABILITIES: u32 = 1 << 20;
const ASKS: u32 = 1 << 19;
/// Where that list begins.
const CAPABILITIES: u32 = EA_AT;
const EA_AT: u32 = 0x40;
/// Its only one: Enhanced Allocation, with so many entries, each for a BAR.
const fn ea(entries: u32) -> u32 {
    entries << 16 | 0x14
}
/// An entry: enabled, without a secondary property, and two words long behind its first. Its primary property is memory.
const ENTRY: u32 = 1 << 31 | 0xff << 16 | 2;
/// Where an entry has the number of its BAR.
const BAR_SHIFT: u32 = 4;
/// Its pin is INTA.
const PIN: u32 = 1 << 8;
/// What a load finds where nothing is.
const NOTHING: u32 = u32::MAX;

/// Where in the space something is: the slot of a device, and its register.
struct Place<'a> {
    slot: usize,
    end: &'a Endpoint,
    register: u32,
}

/// Of the devices, function 0 alone is there.
fn place(ends: &[Endpoint], offset: u64) -> Option<Place<'_>> {
    let (slot, function, register) = ((offset >> 15) as usize, offset >> 12 & 7, offset as u32 & 0xfff);
    let end = ends.get(slot).filter(|_| function == 0)?;
    Some(Place { slot, end, register })
}

/// The bits that a `width` of bytes covers.
const fn covered(width: u8) -> u32 {
    if width < 4 { !(u32::MAX << (8 * width as u32)) } else { u32::MAX }
}

impl Place<'_> {
    /// The word in which the register is.
    fn word(&self) -> u32 {
        match self.register & !3 {
            0x00 => ID,
            0x04 => {
                let asks = if self.end.asks() { ASKS } else { 0 };
                HAS_CAPABILITIES | asks | self.end.command()
            }
            0x08 => CLASS,
            // Which of the system's channels it is: both ends find the same number.
            0x2c => u32::from(self.end.number) << 16 | VENDOR,
            0x34 => CAPABILITIES,
            // The line is what firmware says of it: the source of the guest's interrupt controller.
            0x3c => PIN | channel_source(self.slot),
            EA_AT => ea(if self.end.has_page() { 3 } else { 2 }),
            0x44 => ENTRY,
            0x48 => doorbell(self.slot).base as u32,
            0x4c => (DOORBELL_SIZE - 1) as u32 & !3,
            0x50 => ENTRY | 2 << BAR_SHIFT,
            0x54 => channel_memory(self.slot) as u32,
            0x58 => (self.end.size - 1) as u32 & !3,
            0x5c if self.end.has_page() => ENTRY | 4 << BAR_SHIFT,
            0x60 if self.end.has_page() => bell_page(self.slot) as u32,
            0x64 if self.end.has_page() => (PAGE - 1) as u32 & !3,
            _ => 0,
        }
    }
}

/// A guest's load of `width` bytes at `offset`, which is a multiple of `width`, in the configuration space of these devices, by their slots.
pub fn read(ends: &[Endpoint], offset: u64, width: u8) -> u32 {
    let word = place(ends, offset).map_or(NOTHING, |place| place.word() >> (8 * (place.register & 3)));
    word & covered(width)
}

/// A guest's store of `value`, likewise. The slot of a device that interrupts its guest now, if there is one.
#[must_use]
pub fn write(ends: &[Endpoint], offset: u64, width: u8, value: u32) -> Option<usize> {
    let place = place(ends, offset)?;
    let shift = 8 * (place.register & 3);
    let is_command = place.register & !3 == 4;
    (is_command && place.end.set_command(value << shift, covered(width) << shift)).then_some(place.slot)
}
