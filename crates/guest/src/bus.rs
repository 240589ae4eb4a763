//! Loads and stores that reach virtual devices. Where they trap, and what instructions they are, the host knows.
use ainori_devices::bus::Device;
use ainori_devices::finisher::{self, End};
use ainori_devices::virtio;
use ainori_sbi::Reason;

use crate::{Host, sbi, serial};

/// A load of `width` bytes at `offset` in a device's registers: the value, not extended. `None` if it has to be tried again.
#[inline(always)] // Called in one place, on the way of each load.
pub fn load(host: &mut impl Host, device: Device, offset: u64, width: u8) -> Option<u64> {
    match device {
        Device::Irqchip => {
            let (value, harts) =
                host.devices().irqchip.read(offset, width, |source| host.complete_source(source));
            host.look_at_harts(harts);
            Some(u64::from(value))
        }
        Device::Uart => serial::read(host, offset),
        Device::VirtioSlot => Some(u64::from(virtio::read_empty(offset, width))),
        Device::InterruptFiles | Device::Finisher => Some(0),
    }
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
        Device::VirtioSlot => {}
        Device::Finisher => finish(host, finisher::write(offset, width, value)),
    }
    Some(())
}

#[inline(never)]
fn irqchip(host: &mut impl Host, offset: u64, width: u8, value: u64) {
    let irqchip = &host.devices().irqchip;
    let harts = irqchip.write(offset, width, value as u32, |source| host.complete_source(source));
    host.look_at_harts(harts);
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
