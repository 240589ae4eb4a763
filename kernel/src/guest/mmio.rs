//! Loads and stores of guests outside their memory: their virtual devices.
use ainori_devices::bus::{self, Device};
use ainori_devices::mmio::{Kind, extend};
use ainori_sched::VcpuId;

use super::caller::Caller;
use super::fault::{self, What};
use crate::arch::trap::{Access, AccessKind};
use crate::cpu::Cpu;
use crate::stats::Exit;

/// Carries out the load or store that has just trapped.
#[inline(always)]
pub fn access(cpu: &mut Cpu, vcpu: VcpuId, access: Access) -> Exit {
    let devices = &cpu.machine.guest_of(vcpu).devices;
    let Some((device, offset)) = bus::find(&devices.irqchip, !devices.channels.is_empty(), access.address)
    else {
        let what = if access.kind() == AccessKind::Load { What::Load } else { What::Store };
        return fault::wild(cpu, vcpu, what, access);
    };
    let exit = match device {
        Device::Irqchip => Exit::Irqchip,
        Device::Uart => Exit::Uart,
        Device::Finisher | Device::VirtioSlot | Device::PciConfig | Device::Doorbell => Exit::Device,
    };
    let Some(instruction) = access.instruction(|| cpu.state(vcpu)) else { return exit };
    // As on QEMU's `virt`, no device takes a misaligned access: a part of it would be somebody else's.
    let operation = instruction.operation().filter(|operation| !access.is_misaligned(operation.width()));
    let Some(operation) = operation else {
        return fault::wild(cpu, vcpu, What::Access, access);
    };
    // Where that gives nothing, a device is taken by somebody else at this moment: the instruction is executed, and traps, once more.
    match operation.kind {
        Kind::Load { rd, width, signed } => {
            let value = ainori_guest::bus::load(&mut Caller::new(cpu, vcpu), device, offset, width);
            let Some(value) = value else { return exit };
            let state = cpu.state(vcpu);
            state.set_register(rd, extend(value, width, signed));
            state.skip(operation.length);
        }
        Kind::Store { rs2, width } => {
            let value = cpu.state(vcpu).register(rs2);
            let done = ainori_guest::bus::store(&mut Caller::new(cpu, vcpu), device, offset, width, value);
            if done.is_some() {
                cpu.state(vcpu).skip(operation.length);
            }
        }
    }
    exit
}
