//! Loads and stores that reach virtual devices. Where they trap, and what instructions they are, the host knows.
use ainori_devices::bus::{DOORBELL_SIZE, Device, OfChannels};
use ainori_devices::channel::Effect;
use ainori_devices::finisher::{self, End};
use ainori_devices::{pci, virtio};
use ainori_sbi::Reason;

use crate::{Host, sbi, serial};

/// A load of `width` bytes at `offset` in a device's registers: the value, not extended. `None` if it has to be tried again.
#[inline(always)] // Called in one place, on the way of each load.
pub fn load(host: &mut impl Host, device: Device, offset: u64, width: u8) -> Option<u64> {
    // Most of all loads. A choice among all devices would be a jump through a table first.
    if device != Device::Irqchip {
        return load_of_other(host, device, offset, width);
    }
    let (value, harts) = host.devices().irqchip.read(offset, width, host);
    host.look_at_harts(harts);
    Some(u64::from(value))
}

/// The same of a device that isn't the interrupt controller.
#[inline(never)]
fn load_of_other(host: &mut impl Host, device: Device, offset: u64, width: u8) -> Option<u64> {
    match device {
        Device::Uart => serial::read(host, offset),
        Device::VirtioSlot => Some(u64::from(virtio::read_empty(offset, width))),
        Device::GiveWay => {
            if (offset, width) == (0, 4) {
                host.suspend();
            }
            Some(0)
        }
        Device::Irqchip | Device::InterruptFiles | Device::Finisher => Some(0),
    }
}

/// The same of a guest's channels. It never has to be tried again.
pub fn load_of_channel(host: &mut impl Host, part: OfChannels, offset: u64, width: u8) -> u64 {
    let ends = host.devices().channels;
    u64::from(match part {
        OfChannels::Config => pci::read(ends, offset, width),
        OfChannels::Doorbells => {
            let slot = (offset / DOORBELL_SIZE) as usize;
            let value = ends.get(slot).map_or(0, |end| end.read(offset % DOORBELL_SIZE, width));
            host.has_looked(slot);
            value
        }
    })
}

/// A store of `value`, `width` bytes wide, at `offset` in a device's registers. `None` if it has to be tried again.
#[inline(always)] // As above.
pub fn store(host: &mut impl Host, device: Device, offset: u64, width: u8, value: u64) -> Option<()> {
    match device {
        Device::Irqchip => irqchip(host, offset, width, value),
        Device::InterruptFiles => {
            let harts = host.devices().irqchip.store_to_file(offset, width, value as u32);
            host.look_at_harts(harts);
        }
        Device::Uart => return serial::write(host, offset, value as u8),
        Device::VirtioSlot | Device::GiveWay => {}
        Device::Finisher => finish(host, finisher::write(offset, width, value)),
    }
    Some(())
}

#[inline(never)]
fn irqchip(host: &mut impl Host, offset: u64, width: u8, value: u64) {
    let harts = host.devices().irqchip.write(offset, width, value as u32, host);
    host.look_at_harts(harts);
}

/// A store of `value` to what belongs to a guest's channels. It never has to be tried again.
pub fn store_of_channel(host: &mut impl Host, part: OfChannels, offset: u64, width: u8, value: u64) {
    let (ends, value) = (host.devices().channels, value as u32);
    let slot = (offset / DOORBELL_SIZE) as usize;
    match part {
        OfChannels::Config => {
            if let Some(slot) = pci::write(ends, offset, width, value) {
                host.hear(slot);
            }
        }
        OfChannels::Doorbells => {
            match ends.get(slot).map(|end| end.write(offset % DOORBELL_SIZE, width, value)) {
                None | Some(Effect::Nothing) => host.has_looked(slot),
                Some(Effect::Interrupt) => host.hear(slot),
                Some(Effect::Ring) => host.ring(slot),
            }
        }
    }
}

/// Ends the guest if it asks for that, as the SBI's system reset does.
fn finish(host: &mut impl Host, end: Option<End>) {
    let reason = match end {
        None => return,
        Some(End::PowerOff) => Reason::Shutdown,
        Some(End::Failure) => Reason::Failure,
        Some(End::Reboot) => Reason::Reboot,
    };
    sbi::reset(host, reason);
}
