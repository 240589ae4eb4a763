//! Loads and stores that reach virtual devices. Where they trap, and what instructions they are, the host knows.
use ainori_devices::aplic::{Msi, Outside};
use ainori_devices::bus::{DOORBELL_SIZE, Device, channel_source};
use ainori_devices::channel::Effect;
use ainori_devices::finisher::{self, End};
use ainori_devices::{pci, virtio};
use ainori_sbi::Reason;

use crate::{Host, sbi, serial};

/// A load of `width` bytes at `offset` in a device's registers: the value, not extended. `None` if it has to be tried again.
#[inline(always)] // Called in one place, on the way of each load.
pub fn load(host: &mut impl Host, device: Device, offset: u64, width: u8) -> Option<u64> {
    match device {
        Device::Irqchip => {
            let (value, harts) = host.devices().irqchip.read(offset, width, &mut Sources(host));
            host.look_at_harts(harts);
            Some(u64::from(value))
        }
        Device::Uart => serial::read(host, offset),
        Device::VirtioSlot => Some(u64::from(virtio::read_empty(offset, width))),
        Device::Finisher => Some(0),
        Device::PciConfig => Some(u64::from(pci::read(host.devices().channels, offset, width))),
        Device::Doorbell => {
            let end = host.devices().channels.get((offset / DOORBELL_SIZE) as usize);
            Some(end.map_or(0, |end| u64::from(end.read(offset % DOORBELL_SIZE, width))))
        }
    }
}

/// A store of `value`, `width` bytes wide, at `offset` in a device's registers. `None` if it has to be tried again.
#[inline(always)] // As above.
pub fn store(host: &mut impl Host, device: Device, offset: u64, width: u8, value: u64) -> Option<()> {
    match device {
        Device::Irqchip => irqchip(host, offset, width, value),
        Device::Uart => return serial::write(host, offset, value as u8),
        Device::VirtioSlot => {}
        Device::Finisher => finish(host, finisher::write(offset, width, value)),
        Device::PciConfig => {
            if let Some(slot) = pci::write(host.devices().channels, offset, width, value as u32) {
                interrupt(host, slot);
            }
        }
        Device::Doorbell => doorbell(host, offset, width, value as u32),
    }
    Some(())
}

#[inline(never)]
fn irqchip(host: &mut impl Host, offset: u64, width: u8, value: u64) {
    let harts = host.devices().irqchip.write(offset, width, value as u32, &mut Sources(host));
    host.look_at_harts(harts);
}

#[inline(never)]
fn doorbell(host: &mut impl Host, offset: u64, width: u8, value: u32) {
    let slot = (offset / DOORBELL_SIZE) as usize;
    let Some(end) = host.devices().channels.get(slot) else { return };
    match end.write(offset % DOORBELL_SIZE, width, value) {
        Effect::Nothing => {}
        Effect::Interrupt => interrupt(host, slot),
        Effect::Ring => host.ring(slot),
    }
}

/// The end of a channel interrupts its own guest.
fn interrupt(host: &mut impl Host, slot: usize) {
    let harts = host.devices().irqchip.pulse(channel_source(slot));
    host.look_at_harts(harts);
}

/// Whom the guest's controller tells that a source has been served.
struct Sources<'a, H>(&'a mut H);

impl<H: Host> Outside for Sources<'_, H> {
    /// Of the kinds that guests have, none sends messages.
    fn send(&mut self, _: Msi) {}

    fn complete(&mut self, source: u32) {
        self.0.complete_source(source);
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
