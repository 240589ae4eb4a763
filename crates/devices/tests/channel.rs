//! The ends of channels, against what Linux's PCI core, its `uio_pci_generic` and programs do with them.
#![cfg(not(loom))]

use ainori_devices::bus::{bell_page, channel_memory, channel_source, doorbell};
use ainori_devices::channel::{Effect, Endpoint, layout};
use ainori_devices::pci;
use proptest::prelude::*;

const SIZE: u64 = 64 << 10;
const COMMAND: u64 = 4;
const INTX_DISABLE: u32 = 1 << 10;
const STATUS_INTERRUPT: u32 = 1 << 19;
/// From one device's configuration space to the next one's.
const DEVICE: u64 = 1 << 15;

fn two() -> [Endpoint; 2] {
    [Endpoint::new(7, 0, SIZE), Endpoint::new(9, 1, 2 << 20)]
}

fn dword(ends: &[Endpoint], offset: u64) -> u32 {
    pci::read(ends, offset, 4)
}

/// `pci_ea_init` and `pci_ea_read` of Linux's drivers/pci/pci.c: BAR, and the first and the last address.
fn enhanced_allocation(ends: &[Endpoint], device: u64) -> Vec<(u32, u64, u64)> {
    let mut at = u64::from(pci::read(ends, device + 0x34, 1));
    assert_eq!(pci::read(ends, device + at, 1), 0x14, "the only capability");
    assert_eq!(pci::read(ends, device + at + 1, 1), 0, "is the last");
    let entries = pci::read(ends, device + at + 2, 1) & 0x3f;
    at += 4;
    let read = |_| {
        let [first, base, most] = [0, 4, 8].map(|offset| dword(ends, device + at + offset));
        at += u64::from(4 * ((first & 7) + 1));
        assert!(first >> 31 == 1 && first >> 8 & 0xff == 0 && base & 3 == 0, "memory of 32 bits, enabled");
        let start = u64::from(base & !3);
        (first >> 4 & 0xf, start, start + u64::from(most | 3))
    };
    (0..entries).map(read).collect()
}

#[test]
fn linux_finds_each_device_where_it_is() {
    let ends = two();
    for (slot, end) in ends.iter().enumerate() {
        let device = slot as u64 * DEVICE;
        assert_eq!(dword(&ends, device), 0x1110_1af4);
        assert_eq!((pci::read(&ends, device, 2), pci::read(&ends, device + 2, 2)), (0x1af4, 0x1110));
        assert_eq!(pci::read(&ends, device + 0xe, 1), 0, "an ordinary device of one function");
        assert_eq!(pci::read(&ends, device + 0x2e, 2), u32::from(end.number), "subsystem");
        assert_eq!(pci::read(&ends, device + 0x3d, 1), 1, "INTA");
        assert_eq!(pci::read(&ends, device + 0x3c, 1), channel_source(slot));
        // Who sizes BARs finds none.
        for bar in (0x10..0x28).step_by(4) {
            assert_eq!(pci::write(&ends, device + bar, 4, u32::MAX), None);
            assert_eq!(dword(&ends, device + bar), 0);
        }
        let (registers, memory) = (doorbell(slot), channel_memory(slot));
        let expected = vec![
            (0, registers.base, registers.base + registers.size - 1),
            (2, memory, memory + end.size - 1),
        ];
        assert_eq!(enhanced_allocation(&ends, device), expected);
        end.add_page();
        let page = bell_page(slot);
        assert_eq!(enhanced_allocation(&ends, device), [expected, vec![(4, page, page + 4095)]].concat());
    }
    for absent in [2 * DEVICE, 31 * DEVICE, 0x1000, DEVICE + 0x7000] {
        assert_eq!(dword(&ends, absent), u32::MAX);
        assert_eq!(pci::read(&ends, absent, 2), 0xffff);
        assert_eq!(pci::write(&ends, absent + COMMAND, 4, 0), None);
    }
    assert_eq!(dword(&ends, 0x100), 0, "no extended capabilities");
}

/// `pci_intx_mask_supported`, then its handler and a program that waits (drivers/uio/uio_pci_generic.c).
#[test]
fn a_program_is_woken_once_for_each_bell() {
    let ends = two();
    let end = &ends[0];
    let command = || pci::read(&ends, COMMAND, 2);
    let before = command();
    assert_eq!(pci::write(&ends, COMMAND, 2, before ^ INTX_DISABLE), None);
    assert_eq!(command(), before ^ INTX_DISABLE, "INTx can be switched off");
    assert_eq!(pci::write(&ends, COMMAND, 2, before), None);

    assert!(!end.ring(), "its bell is masked");
    assert_eq!(end.read(layout::STATUS, 4), 1);
    assert_eq!(end.write(layout::MASK, 4, 1), Effect::Nothing);
    assert_eq!((end.read(layout::MASK, 4), dword(&ends, COMMAND) & STATUS_INTERRUPT), (1, 0));
    for _ in 0..3 {
        assert!(end.ring());
        assert!(!end.ring() && !end.ring(), "nobody has looked yet");
        // The handler.
        assert_ne!(dword(&ends, COMMAND) & STATUS_INTERRUPT, 0);
        assert_eq!(pci::write(&ends, COMMAND, 2, command() | INTX_DISABLE), None);
        // The program, which switches it on too early and is told again.
        assert_eq!(pci::write(&ends, COMMAND, 2, command() & !INTX_DISABLE), Some(0));
        assert_eq!(end.read(layout::STATUS, 4), 1);
        assert_eq!((end.read(layout::STATUS, 4), dword(&ends, COMMAND) & STATUS_INTERRUPT), (0, 0));
    }
    assert_eq!(pci::write(&ends, COMMAND + 1, 1, INTX_DISABLE >> 8), None, "by bytes, too");
    assert!(!end.ring(), "INTx is off");
    assert_eq!(pci::write(&ends, COMMAND, 4, 0), Some(0), "it wasn't forgotten");
}

#[test]
fn a_bell_that_rang_before_it_was_unmasked_interrupts_then() {
    let end = Endpoint::new(0, 0, SIZE);
    assert!(!end.ring());
    assert_eq!(end.write(layout::MASK, 4, 1), Effect::Interrupt);
    end.reset();
    assert_eq!([layout::MASK, layout::STATUS].map(|register| end.read(register, 4)), [0, 0]);
}

/// A ring may be handed on by more than one: by the core where it rang, and by one that finds it in the bell's interrupt file. One of them makes the interrupt; and nobody,
/// when its hearer has looked before.
#[test]
fn a_bell_that_two_hand_on_interrupts_once() {
    let end = Endpoint::new(0, 0, SIZE);
    assert_eq!(end.write(layout::MASK, 4, 1), Effect::Nothing);
    assert!(!end.take_due(), "nobody has rung");
    for _ in 0..3 {
        assert!(end.ring());
        assert_eq!([end.take_due(), end.take_due()], [true, false]);
        assert!(!end.ring() && !end.take_due(), "it rings still, and has interrupted");
        assert_eq!(end.read(layout::STATUS, 4), 1);
    }
    assert!(end.ring());
    assert_eq!(end.read(layout::STATUS, 4), 1);
    assert!(!end.take_due(), "its hearer has looked");
    assert!(end.ring());
    assert_eq!(end.write(layout::MASK, 4, 0), Effect::Nothing);
    assert!(!end.take_due(), "it is masked");
    assert_eq!(end.write(layout::MASK, 4, 1), Effect::Interrupt, "it wasn't forgotten");
    assert_eq!([end.take_due(), end.take_due()], [true, false]);
}

#[test]
fn who_rings_names_the_other_end() {
    for end in two() {
        let (own, other) = (end.position, end.position ^ 1);
        assert_eq!(end.read(layout::POSITION, 4), own);
        assert_eq!(end.write(layout::DOORBELL, 4, other << 16), Effect::Ring);
        for nobody in [own << 16, 2 << 16, other << 16 | 1, u32::MAX] {
            assert_eq!(end.write(layout::DOORBELL, 4, nobody), Effect::Nothing, "{nobody:#x}");
        }
        for (offset, width) in [(layout::DOORBELL, 2), (layout::DOORBELL, 8), (16, 4), (0xffc, 4), (13, 4)] {
            assert_eq!(end.write(offset, width, other << 16), Effect::Nothing);
            assert_eq!(end.read(offset, width), 0);
        }
    }
}

proptest! {
    /// Against a line that is high while all three say so: whatever is done, in any width and anywhere, each time that it rises is told, and nothing else. Who looks
    /// whether that is to be made into an interrupt, makes one if the line has risen since somebody looked, and is high.
    #[test]
    fn each_rise_of_the_line_is_told_once(steps in proptest::collection::vec((0u8..5, 0u64..0x60, prop_oneof![1 => Just(1u8), 1 => Just(2), 3 => Just(4)], any::<u32>()), 1..200)) {
        let ends = [Endpoint::new(0, 1, SIZE)];
        let line = || dword(&ends, COMMAND) & STATUS_INTERRUPT != 0 && dword(&ends, COMMAND) & INTX_DISABLE == 0;
        let mut is_owed = false;
        for (what, offset, width, value) in steps {
            let (before, offset) = (line(), offset & !u64::from(width - 1));
            let told = match what {
                0 => ends[0].ring(),
                1 => { ends[0].read(offset & 0xf, width); false }
                2 => ends[0].write(offset & 0xf, width, value) == Effect::Interrupt,
                3 => pci::write(&ends, offset & 0x7, width, value).is_some(),
                _ => {
                    prop_assert_eq!(ends[0].take_due(), std::mem::take(&mut is_owed) && before);
                    false
                }
            };
            prop_assert_eq!(told, line() && !before);
            is_owed |= told;
        }
    }
}
