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
    let irqchip = &cpu.machine.guest_of(vcpu).devices.irqchip;
    let Some((device, offset)) = bus::find(irqchip, access.address) else {
        return elsewhere(cpu, vcpu);
    };
    let exit = match device {
        Device::Irqchip => Exit::Irqchip,
        Device::InterruptFiles => Exit::InterruptFile,
        Device::Uart => Exit::Uart,
        Device::Finisher | Device::VirtioSlot | Device::GiveWay => Exit::Device,
    };
    let load = |caller: &mut Caller<'_>, width| ainori_guest::bus::load(caller, device, offset, width);
    let store = |caller: &mut Caller<'_>, width, value| {
        ainori_guest::bus::store(caller, device, offset, width, value)
    };
    carry_out(cpu, vcpu, access, exit, load, store)
}

/// The same where no device is that all guests have. It isn't given the access, which for that would be put into memory on the way of every other one.
#[inline(never)]
fn elsewhere(cpu: &mut Cpu, vcpu: VcpuId) -> Exit {
    let access = Access::again();
    #[cfg(feature = "watchdog")]
    if let Some(exit) = super::watchdog::access(cpu, vcpu, Access::again()) {
        return exit;
    }
    let channels = cpu.machine.guest_of(vcpu).devices.channels;
    let Some((part, offset)) = bus::find_of_channels(access.address).filter(|_| !channels.is_empty()) else {
        let what = if access.kind() == AccessKind::Load { What::Load } else { What::Store };
        return fault::wild(cpu, vcpu, what, access);
    };
    let load = |caller: &mut Caller<'_>, width| {
        Some(ainori_guest::bus::load_of_channel(caller, part, offset, width))
    };
    let store = |caller: &mut Caller<'_>, width, value| {
        ainori_guest::bus::store_of_channel(caller, part, offset, width, value);
        Some(())
    };
    carry_out(cpu, vcpu, access, Exit::Device, load, store)
}

/// Decodes the instruction, and has `load` or `store` do what it wants of a device.
#[inline(always)]
pub(super) fn carry_out(
    cpu: &mut Cpu,
    vcpu: VcpuId,
    access: Access,
    exit: Exit,
    load: impl FnOnce(&mut Caller<'_>, u8) -> Option<u64>,
    store: impl FnOnce(&mut Caller<'_>, u8, u64) -> Option<()>,
) -> Exit {
    let Some(instruction) = access.instruction(|| cpu.state(vcpu)) else { return exit };
    // As on QEMU's `virt`, no device takes a misaligned access: a part of it would be somebody else's.
    let operation = instruction.operation().filter(|operation| !access.is_misaligned(operation.width()));
    let Some(operation) = operation else {
        return fault::wild(cpu, vcpu, What::Access, access);
    };
    // Where that gives nothing, a device is taken by somebody else at this moment: the instruction is executed, and traps, once more.
    match operation.kind {
        Kind::Load { rd, width, signed } => {
            let Some(value) = load(&mut Caller::new(cpu, vcpu), width) else { return exit };
            let state = cpu.state(vcpu);
            state.set_register(rd, extend(value, width, signed));
            state.skip(operation.length);
        }
        Kind::Store { rs2, width } => {
            let value = cpu.state(vcpu).register(rs2);
            if store(&mut Caller::new(cpu, vcpu), width, value).is_some() {
                cpu.state(vcpu).skip(operation.length);
            }
        }
    }
    exit
}
