//! Which virtual device answers at which guest-physical address: the memory map of QEMU's `virt` (its hw/riscv/virt.c), as far as a guest
//! has it. All guests have the devices of [`MAP`]; beside them each has its own kind of interrupt controller ([`Irqchip`]), and those that have
//! [channels](crate::channel) a PCI bus ([`CHANNELS`]). A device more is a line more in the map, and its source of the interrupt controller is one less in
//! [`is_free_source`].
use crate::aplic;
use crate::irqchip::Irqchip;
use ainori_limits::{CHANNEL_SIZE, GUEST_CHANNELS};

/// A range of a guest's physical addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Its first address.
    pub base: u64,
    /// Its length in bytes.
    pub size: u64,
}

impl Window {
    /// How far an address lies behind the first one. `None` if it isn't in the range.
    #[inline(always)]
    #[must_use]
    pub const fn offset(self, address: u64) -> Option<u64> {
        let offset = address.wrapping_sub(self.base);
        if offset < self.size { Some(offset) } else { None }
    }
}

/// A virtual device. What is most loaded from comes first, and last what has nothing to load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Device {
    /// Interrupt controller ([`crate::irqchip`]).
    Irqchip,
    /// Serial port ([`crate::uart`]).
    Uart,
    /// Place for a virtio device, of which there is none ([`crate::virtio`]).
    VirtioSlot,
    /// A word whose load lasts until an interrupt ([`GIVE_WAY`]).
    GiveWay,
    /// Ends the guest ([`crate::finisher`]).
    Finisher,
    /// The pages of interrupt files, where messages come in ([`crate::imsic`]).
    InterruptFiles,
}

/// What guests that have channels have in addition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OfChannels {
    /// The configuration space of the PCI bus ([`crate::pci`]).
    Config,
    /// The registers of the ends ([`crate::channel`]), each in a page of its own.
    Doorbells,
}

/// The finisher's registers.
pub const FINISHER: Window = Window { base: 0x10_0000, size: 0x1000 };
/// A page with one word: its load gives the core to others, as WFI does, until an interrupt for the hart that loads. So a program can do that which isn't a
/// kernel, and to which this page alone is mapped. Where `virt` has a bus for devices that were added to it.
pub const GIVE_WAY: Window = Window { base: 0x400_0000, size: ainori_limits::PAGE };
/// The watchdog's, of a guest that has one: behind the finisher, and the clock that `virt` has there.
pub const WATCHDOG: Window = Window { base: 0x10_2000, size: ainori_limits::PAGE };
/// The interrupt controller's, if it is a PLIC.
pub const PLIC: Window = Window { base: 0xc00_0000, size: 0x60_0000 };
/// The same if it is an APLIC: where `virt` has the domain of supervisor level, as a guest has no other one.
pub const APLIC: Window = Window { base: 0xd00_0000, size: aplic::WINDOW };
/// Where the interrupt files' pages begin, if there are some: where `virt` has those of supervisor level.
pub const IMSIC_BASE: u64 = 0x2800_0000;
/// The serial port's.
pub const UART: Window = Window { base: 0x1000_0000, size: 0x100 };
/// The serial port's source of the interrupt controller.
pub const UART_SOURCE: u32 = 10;
/// The slots for virtio devices, one behind the other.
pub const VIRTIO: Window = Window { base: 0x1000_1000, size: VIRTIO_SLOTS as u64 * VIRTIO_SLOT_SIZE };
/// Number of slots. Slot *n* has the source *n* + 1 of the interrupt controller.
pub const VIRTIO_SLOTS: u32 = 8;
/// Bytes of each slot.
pub const VIRTIO_SLOT_SIZE: u64 = 0x1000;

/// The configuration space of the PCI bus of a guest that has channels: one bus, where `virt` has its first.
pub const PCI_CONFIG: Window = Window { base: 0x3000_0000, size: 0x10_0000 };
/// What the bus's devices have of a guest's physical addresses: the lower half of what `virt` has for devices of 32 bits.
pub const PCI_MEMORY: Window = Window { base: 0x4000_0000, size: 0x4000_0000 };
/// The registers of the channels' ends, one behind the other.
pub const DOORBELLS: Window = Window { base: PCI_MEMORY.base, size: GUEST_CHANNELS as u64 * DOORBELL_SIZE };
/// Bytes of each: a page, so that a program may be given one of them.
pub const DOORBELL_SIZE: u64 = ainori_limits::PAGE;
/// Where the pages of bells that are [interrupt files](crate::channel::Endpoint::has_page) are, one behind the other.
const BELL_PAGES: u64 = DOORBELLS.base + DOORBELLS.size;
/// Where the channels' memory begins, [`CHANNEL_SIZE`] apart.
const CHANNEL_MEMORY: u64 = 0x5000_0000;
/// The first channel's source of the interrupt controller, where `virt` has those of its PCI bus; the next one's is one more.
const CHANNEL_SOURCE: u32 = 32;

const _: () = {
    assert!(bell_page(GUEST_CHANNELS) <= CHANNEL_MEMORY);
    assert!(CHANNEL_MEMORY + GUEST_CHANNELS as u64 * CHANNEL_SIZE <= PCI_MEMORY.base + PCI_MEMORY.size);
};

/// The registers of the channel in this slot of the bus; slots are numbered below [`GUEST_CHANNELS`].
pub const fn doorbell(slot: usize) -> Window {
    Window { base: DOORBELLS.base + slot as u64 * DOORBELL_SIZE, size: DOORBELL_SIZE }
}

/// Where the end in this slot finds the page by which it rings, if it has one.
pub const fn bell_page(slot: usize) -> u64 {
    BELL_PAGES + slot as u64 * ainori_limits::PAGE
}

/// Where the memory of the channel in this slot begins.
pub const fn channel_memory(slot: usize) -> u64 {
    CHANNEL_MEMORY + slot as u64 * CHANNEL_SIZE
}

/// Its source of the interrupt controller.
pub const fn channel_source(slot: usize) -> u32 {
    CHANNEL_SOURCE + slot as u32
}

/// What answers where: window, its device, and the bytes, a power of two, after which the device's registers repeat (for one of several
/// alike).
const MAP: [(Window, Device, u64); 4] = [
    (UART, Device::Uart, UART.size),
    (FINISHER, Device::Finisher, FINISHER.size),
    (VIRTIO, Device::VirtioSlot, VIRTIO_SLOT_SIZE),
    (GIVE_WAY, Device::GiveWay, GIVE_WAY.size),
];

/// The same of guests' channels.
const CHANNELS: [(Window, OfChannels); 2] =
    [(DOORBELLS, OfChannels::Doorbells), (PCI_CONFIG, OfChannels::Config)];

/// The device at an address, and the offset in its registers, for a guest with this interrupt controller. What it may have of channels isn't among them: [`find_of_channels`].
#[inline(always)] // Called in one place, on the way of each load and store.
pub fn find(irqchip: &Irqchip, address: u64) -> Option<(Device, u64)> {
    if let Some(found) = irqchip.part_at(address) {
        return Some(found);
    }
    // BOUND: 4.
    for (window, device, repeat) in &MAP {
        if let Some(offset) = window.offset(address) {
            return Some((*device, offset & (repeat - 1)));
        }
    }
    None
}

/// What of its channels is at an address, and the offset in it, for a guest that has some. Apart from [`find`], on whose way it would be.
pub fn find_of_channels(address: u64) -> Option<(OfChannels, u64)> {
    // BOUND: 2.
    for (window, part) in &CHANNELS {
        if let Some(offset) = window.offset(address) {
            return Some((*part, offset));
        }
    }
    None
}

/// Does any virtual device of a guest with this interrupt controller answer in `start..end`, or a channel's memory lie there, whether it has any or not? In a slot for
/// virtio devices, which is a page, nothing does: a device of the board that is there takes the empty one's place.
pub fn is_used(irqchip: &Irqchip, start: u64, end: u64) -> bool {
    let all = MAP.iter().filter(|(_, device, _)| *device != Device::VirtioSlot).map(|(window, _, _)| *window);
    let mut windows = all.chain(irqchip.windows()).chain([PCI_CONFIG, PCI_MEMORY, WATCHDOG]);
    // BOUND: 9.
    windows.any(|window| window.size > 0 && start < window.base + window.size && window.base < end)
}

/// The source of the interrupt controller that a virtio device in this slot has.
pub const fn virtio_source(slot: u32) -> u32 {
    slot + 1
}

/// The slot whose channel has this source of the interrupt controller, if a guest has so many.
pub fn channel_of(source: u32) -> Option<usize> {
    let slot = source.wrapping_sub(CHANNEL_SOURCE) as usize;
    (slot < GUEST_CHANNELS).then_some(slot)
}

/// Can a device of the board have this source of the interrupt controller: does it exist, and has no virtual device it? (The sources of slots for virtio devices are
/// free: an empty slot never interrupts, and what is in one has its own.)
pub fn is_free_source(source: u32) -> bool {
    (1..Irqchip::SOURCES as u32).contains(&source) && source != UART_SOURCE && channel_of(source).is_none()
}

#[cfg(all(test, not(loom)))]
mod tests {
    extern crate std;

    use super::*;
    use crate::aia::Aia;
    use crate::plic::Plic;
    use std::vec::Vec;

    /// With a PLIC, with an APLIC, and with an APLIC and the interrupt files of two harts.
    fn kinds() -> [Irqchip; 3] {
        [Irqchip::Plic(Plic::new()), Irqchip::Aia(Aia::direct()), Irqchip::Aia(Aia::with_files(2))]
    }

    #[test]
    fn each_address_is_that_of_virt() {
        let kinds = kinds();
        let of_all = [
            (0x10_0000, Some((Device::Finisher, 0))),
            (0x10_0fff, Some((Device::Finisher, 0xfff))),
            (0x10_1000, None), // the clock of `virt`, which a guest has only if it owns it
            (0x03ff_ffff, None),
            (0x0400_0000, Some((Device::GiveWay, 0))),
            (0x0400_1000, None),
            (0x0bff_ffff, None),
            (0x1000_0005, Some((Device::Uart, 5))),
            (0x1000_0100, None),
            (0x1000_1000, Some((Device::VirtioSlot, 0))),
            (0x1000_8008, Some((Device::VirtioSlot, 8))),
            (0x1000_9000, None),
            (0x8000_0000, None),
            (0, None),
            (u64::MAX, None),
        ];
        for (address, expected) in of_all {
            for kind in &kinds {
                assert_eq!(find(kind, address), expected, "{address:#x}");
            }
        }
        let of_a_kind = [
            (0x0c00_0000, [Some((Device::Irqchip, 0)), None, None]),
            (0x0c20_1004, [Some((Device::Irqchip, 0x20_1004)), None, None]),
            (0x0c60_0000, [None; 3]),
            (0x0cff_ffff, [None; 3]),
            (0x0d00_0000, [None, Some((Device::Irqchip, 0)), Some((Device::Irqchip, 0))]),
            (0x0d00_401c, [None, Some((Device::Irqchip, 0x401c)), Some((Device::Irqchip, 0x401c))]),
            (0x0d00_5000, [None; 3]),
            (0x27ff_ffff, [None; 3]),
            (0x2800_0000, [None, None, Some((Device::InterruptFiles, 0))]),
            (0x2800_1004, [None, None, Some((Device::InterruptFiles, 0x1004))]),
            (0x2800_2000, [None; 3]),
        ];
        for (address, expected) in of_a_kind {
            assert_eq!(kinds.each_ref().map(|kind| find(kind, address)), expected, "{address:#x}");
        }
    }

    #[test]
    fn who_has_channels_has_a_pci_bus() {
        let of_bus = [
            (0x2fff_ffff, None),
            (0x3000_8004, Some((OfChannels::Config, 0x8004))),
            (0x3010_0000, None),
            (0x4000_100c, Some((OfChannels::Doorbells, 0x100c))),
            (0x4000_4000, None),
            (channel_memory(0), None), // its memory doesn't trap
            (UART.base, None),
        ];
        for (address, expected) in of_bus {
            assert_eq!(find_of_channels(address), expected, "{address:#x}");
        }
        let places = [0, 3].map(|slot| (doorbell(slot).base, channel_memory(slot), channel_source(slot)));
        assert_eq!(places, [(0x4000_0000, 0x5000_0000, 32), (0x4000_3000, 0x6800_0000, 35)]);
    }

    #[test]
    fn windows_do_not_overlap_and_are_found_from_outside() {
        for irqchip in kinds() {
            let windows: Vec<Window> = MAP
                .iter()
                .map(|(window, _, _)| *window)
                .chain(irqchip.windows())
                .chain([PCI_CONFIG, PCI_MEMORY])
                .filter(|window| window.size > 0)
                .collect();
            for (index, window) in windows.iter().enumerate() {
                let others = windows.iter().enumerate().filter(|(other, _)| *other != index);
                for (_, other) in others {
                    assert!(
                        window.base + window.size <= other.base || other.base + other.size <= window.base
                    );
                }
                // An empty slot for a virtio device gives way to what is there on the board.
                let expected = *window != VIRTIO;
                assert_eq!(is_used(&irqchip, window.base, window.base + 1), expected);
                assert_eq!(is_used(&irqchip, window.base - 1, window.base + window.size + 1), expected);
            }
            assert!(!is_used(&irqchip, 0x10_1000, 0x10_2000));
            assert!(!is_used(&irqchip, 0x8000_0000, u64::MAX));
        }
        for (start, expected) in [
            (PLIC.base, [true, false, false]),
            (APLIC.base, [false, true, true]),
            (IMSIC_BASE, [false, false, true]),
        ] {
            assert_eq!(kinds().map(|kind| is_used(&kind, start, start + 1)), expected, "{start:#x}");
            assert_eq!(kinds().map(|kind| is_used(&kind, start - 1, start + 1)), expected, "{start:#x}");
        }
    }

    #[test]
    fn no_source_has_two_devices() {
        // What is in a slot has 1 to 8, the serial port 10, channels 32 to 35, and there are 95.
        for source in 0..200 {
            let expected =
                (1..10).contains(&source) || (11..32).contains(&source) || (36..96).contains(&source);
            assert_eq!(is_free_source(source), expected, "{source}");
        }
        assert!(!is_free_source(u32::MAX));
        assert_eq!([31, 32, 35, 36].map(channel_of), [None, Some(0), Some(3), None]);
    }
}
