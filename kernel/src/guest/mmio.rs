//! Loads and stores of guests outside their memory: their virtual devices.
use ainori_devices::bus::{self, Device};
use ainori_devices::finisher::{self, End};
use ainori_devices::mmio::{Kind, extend};
use ainori_devices::virtio;
use ainori_lifecycle::Cause;
use ainori_sched::VcpuId;

use super::fault::{self, What};
use super::{Guest, serial, stop};
use crate::arch::trap::{Access, AccessKind};
use crate::cpu::Cpu;
use crate::stats::Exit;

/// Carries out the load or store that has just trapped.
#[inline(always)]
pub fn access(cpu: &mut Cpu, vcpu: VcpuId, access: Access) -> Exit {
    let Some((device, offset)) = bus::find(access.address) else {
        let what = if access.kind() == AccessKind::Load { What::Load } else { What::Store };
        return fault::wild(cpu, vcpu, what, access);
    };
    let exit = match device {
        Device::Irqchip => Exit::Plic,
        Device::Uart => Exit::Uart,
        Device::Finisher | Device::VirtioSlot => Exit::Device,
    };
    let Some(instruction) = access.instruction(|| cpu.state(vcpu)) else { return exit };
    // As on QEMU's `virt`, no device takes a misaligned access: a part of it would be somebody else's.
    let operation = instruction.operation().filter(|operation| !access.is_misaligned(operation.width()));
    let Some(operation) = operation else {
        return fault::wild(cpu, vcpu, What::Access, access);
    };
    let guest = cpu.machine.guest_of(vcpu);
    match operation.kind {
        Kind::Load { rd, width, signed } => {
            let value = match device {
                Device::Irqchip => Some(irqchip_read(cpu, guest, offset, width)),
                Device::Uart => serial::read(cpu, guest, offset),
                Device::VirtioSlot => Some(u64::from(virtio::read_empty(offset, width))),
                Device::Finisher => Some(0),
            };
            // A device that is taken by somebody else at this moment: the instruction is executed, and traps, once more.
            let Some(value) = value else { return exit };
            let state = cpu.state(vcpu);
            state.set_register(rd, extend(value, width, signed));
            state.skip(operation.length);
        }
        Kind::Store { rs2, width } => {
            let value = cpu.state(vcpu).register(rs2);
            let done = match device {
                Device::Irqchip => {
                    irqchip_write(cpu, guest, offset, width, value);
                    Some(())
                }
                Device::Uart => serial::write(cpu, guest, offset, value as u8),
                Device::VirtioSlot => Some(()),
                Device::Finisher => {
                    finish(cpu, vcpu, finisher::write(offset, width, value));
                    Some(())
                }
            };
            if done.is_some() {
                cpu.state(vcpu).skip(operation.length);
            }
        }
    }
    exit
}

/// Ends the guest if it asks for that, as the SBI's system reset does.
fn finish(cpu: &mut Cpu, vcpu: VcpuId, end: Option<End>) {
    let (told, cause) = match end {
        None => return,
        Some(End::PowerOff) => ("shutdown", Cause::Shutdown),
        Some(End::Failure) => ("failure", Cause::Failure),
        Some(End::Reboot) => ("reboot", Cause::Reboot),
    };
    stop::stop(cpu, vcpu, told, cause, |_| None);
}

#[inline(always)]
fn irqchip_read(cpu: &mut Cpu, guest: &'static Guest, offset: u64, width: u8) -> u64 {
    let (value, effects) = guest.irqchip.read(offset, width);
    cpu.look_at_harts(guest, effects.harts);
    u64::from(value)
}

#[inline(never)]
fn irqchip_write(cpu: &mut Cpu, guest: &'static Guest, offset: u64, width: u8, value: u64) {
    let effects = guest.irqchip.write(offset, width, value as u32);
    cpu.look_at_harts(guest, effects.harts);
    if let Some(source) = effects.completed {
        cpu.complete_source(guest, source);
    }
}
