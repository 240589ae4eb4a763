//! What loads and stores of devices do beyond the device.
use ainori_devices::bus::{Device, find, find_of_channels};
use ainori_lifecycle::Cause;

use super::host::{TestHost, Wish};
use crate::bus::{load, load_of_channel, store, store_of_channel};

/// Where the registers are on QEMU's `virt`, as guests' programs have it.
const FINISHER: u64 = 0x10_0000;
const GIVE_WAY: u64 = 0x400_0000;
const PLIC: u64 = 0xc00_0000;
const UART: u64 = 0x1000_0000;

fn write(host: &mut TestHost, address: u64, width: u8, value: u64) -> Option<()> {
    if let Some((part, offset)) = find_of_channels(address) {
        store_of_channel(host, part, offset, width, value);
        return Some(());
    }
    let (device, offset) = find(&host.devices.irqchip, address).expect("a device");
    store(host, device, offset, width, value)
}

fn read(host: &mut TestHost, address: u64, width: u8) -> Option<u64> {
    if let Some((part, offset)) = find_of_channels(address) {
        return Some(load_of_channel(host, part, offset, width));
    }
    let (device, offset) = find(&host.devices.irqchip, address).expect("a device");
    load(host, device, offset, width)
}

#[test]
fn the_finisher_ends_the_guest() {
    for (value, told, cause) in [
        (0x5555, "shutdown", Cause::Shutdown),
        (0x7777, "reboot", Cause::Reboot),
        (0x5_3333, "failure", Cause::Failure),
    ] {
        let mut host = TestHost::new(1);
        assert_eq!(write(&mut host, FINISHER, 4, value), Some(()));
        assert_eq!(host.take(), [Wish::StopGuest(told, cause)]);
    }
    let mut host = TestHost::new(1);
    write(&mut host, FINISHER, 4, 1);
    write(&mut host, FINISHER + 4, 4, 0x5555);
    assert!(host.take().is_empty());
}

#[test]
fn a_load_of_the_word_gives_way_and_nothing_else_of_its_page_does() {
    let mut host = TestHost::new(1);
    assert_eq!(read(&mut host, GIVE_WAY, 4), Some(0));
    assert_eq!(host.take(), [Wish::Suspend]);
    for (offset, width) in [(0, 1), (0, 2), (0, 8), (1, 1), (4, 4), (0xffc, 4)] {
        assert_eq!(read(&mut host, GIVE_WAY + offset, width), Some(0));
    }
    for value in [0, 1, u64::MAX] {
        assert_eq!(write(&mut host, GIVE_WAY, 4, value), Some(()));
    }
    assert!(host.take().is_empty());
}

/// From the port's register to the interrupt at a hart, and back.
#[test]
fn the_port_interrupts_through_the_controller() {
    let mut host = TestHost::new(2);
    let (context, source) = (3, 10); // supervisor mode of hart 1
    write(&mut host, PLIC + 4 * source, 4, 1);
    write(&mut host, PLIC + 0x2000 + 0x80 * context, 4, 1 << source);
    host.looked_at = 0;
    // The transmitter is empty, which is an interrupt once it is asked for.
    write(&mut host, UART + 1, 1, 2);
    assert_eq!((host.looked_at, host.devices.irqchip.is_pending(1)), (0b10, true));
    let claim = PLIC + 0x20_0004 + 0x1000 * context;
    assert_eq!(read(&mut host, claim, 4), Some(source));
    assert!(!host.devices.irqchip.is_pending(1));
    write(&mut host, UART + 1, 1, 0);
    assert!(host.take().is_empty());
    write(&mut host, claim, 4, source);
    assert_eq!(
        host.take(),
        [Wish::Complete(source as u32)],
        "the host knows whether it stands for one of the board"
    );
    assert!(!host.devices.irqchip.is_pending(1), "its line is down");
}

#[test]
fn a_taken_port_has_the_instruction_executed_again() {
    let mut host = TestHost::new(1);
    let devices = host.devices;
    devices.with_port(|_| {
        assert_eq!(read(&mut host, UART, 1), None);
        assert_eq!(write(&mut host, UART, 1, b'x'.into()), None);
        // Others don't mind.
        assert!(read(&mut host, PLIC, 4).is_some() && write(&mut host, PLIC, 4, 0).is_some());
    });
    assert!(devices.serial.output.is_empty());
}

#[test]
fn empty_slots_and_the_finisher_can_be_read() {
    let mut host = TestHost::new(1);
    assert_eq!(read(&mut host, 0x1000_1000, 4), Some(0x7472_6976), "virtio's magic value");
    assert_eq!(read(&mut host, FINISHER, 4), Some(0));
    assert!(matches!(find(&host.devices.irqchip, 0x1000_1008), Some((Device::VirtioSlot, 8))));
    assert_eq!(write(&mut host, 0x1000_1000, 4, 1), Some(()));
    assert!(host.take().is_empty());
}

/// A channel's end: its registers, its configuration space, and its interrupt.
#[test]
fn a_bell_interrupts_through_the_controller() {
    let mut host = TestHost::new(2);
    let (context, source, registers, config) = (3, 33, 0x4000_1000, 0x3000_8000);
    write(&mut host, PLIC + 4 * source, 4, 1);
    write(&mut host, PLIC + 0x2000 + 0x80 * context + 4, 4, 1 << (source - 32));
    assert_eq!(read(&mut host, config, 4), Some(0x1110_1af4));
    assert_eq!(read(&mut host, registers + 8, 4), Some(1), "it is the second end");
    // To the other one: what that is, the host knows.
    assert_eq!(write(&mut host, registers + 12, 4, 0), Some(()));
    assert_eq!(host.take(), [Wish::Ring(1)]);
    // Behind the last end there is nothing, as on a bus.
    assert_eq!((write(&mut host, 0x4000_300c, 4, 0), read(&mut host, 0x4000_3008, 4)), (Some(()), Some(0)));
    assert_eq!((read(&mut host, config + 0x8000, 2), host.take()), (Some(0xffff), vec![]));
    // From the other one, while it is masked, and then INTx is off.
    assert!(!host.devices.channels[1].ring());
    host.looked_at = 0;
    write(&mut host, config + 4, 2, 0x402);
    write(&mut host, registers, 4, 1);
    assert_eq!(host.looked_at, 0);
    write(&mut host, config + 4, 2, 2);
    assert_eq!((host.looked_at, host.devices.irqchip.is_pending(1)), (0b10, true));
    assert_eq!(read(&mut host, PLIC + 0x20_0004 + 0x1000 * context, 4), Some(source));
    assert_eq!((read(&mut host, registers + 4, 4), read(&mut host, registers + 4, 4)), (Some(1), Some(0)));
}
