//! Loads and stores of guests outside their memory: their virtual devices.
use core::sync::atomic::Ordering;

use ainori_devices::bus::{self, Device, UART_SOURCE};
use ainori_devices::finisher::{self, End};
use ainori_devices::mmio::{self, Kind};
use ainori_devices::uart::Uart;
use ainori_devices::virtio;
use ainori_sched::VcpuId;

use super::fault::{self, What};
use super::{Guest, sbi};
use crate::arch::Exception;
use crate::arch::guest_access::fetch_instruction;
use crate::arch::trap::GuestPageFault;
use crate::cpu::Cpu;
use crate::stats::Exit;

/// RBR: where a guest reads what was typed.
const UART_DATA: u64 = 0;
/// LSR: its offset, and its bits that say that the transmitter takes bytes.
const UART_LINE_STATUS: u64 = 5;
const UART_TRANSMITTER_READY: u64 = 0x60;

/// Carries out the load or store that has just trapped.
pub fn access(cpu: &mut Cpu, vcpu: VcpuId, cause: Exception) -> Exit {
    let fault = GuestPageFault::current();
    let Some((device, offset)) = bus::find(fault.address) else {
        let what = if cause == Exception::LoadFault { What::Load } else { What::Store };
        return fault::wild(cpu, vcpu, what, cause, &fault);
    };
    let exit = match device {
        Device::Plic => Exit::Plic,
        Device::Uart => Exit::Uart,
        Device::Finisher | Device::VirtioSlot => Exit::Device,
    };
    // The hart describes simple loads and stores itself; where it doesn't, the instruction is fetched. If the guest has just
    // taken that page away, it gets its own fault when it comes back to it.
    let described = match fault.instruction {
        0 => fetch_instruction(cpu.context(vcpu).pc),
        bits => Some(bits),
    };
    let Some(bits) = described else { return exit };
    let Some(access) = mmio::decode(bits) else {
        return fault::wild(cpu, vcpu, What::Access, cause, &fault);
    };
    // First, as a device may end the guest.
    cpu.context(vcpu).pc += u64::from(access.length);
    let guest = cpu.machine.guest_of(vcpu);
    match access.kind {
        Kind::Load { rd, width, signed } => {
            let value = match device {
                Device::Plic => plic_read(cpu, guest, offset, width),
                Device::Uart => uart_read(cpu, guest, offset),
                Device::VirtioSlot => u64::from(virtio::read_empty(offset, width)),
                Device::Finisher => 0,
            };
            if rd != 0 {
                cpu.context(vcpu).x[usize::from(rd)] = mmio::extend(value, width, signed);
            }
        }
        Kind::Store { rs2, width } => {
            let value = if rs2 == 0 { 0 } else { cpu.context(vcpu).x[usize::from(rs2)] };
            match device {
                Device::Plic => plic_write(cpu, guest, offset, width, value),
                Device::Uart => uart_write(cpu, guest, offset, value as u8),
                Device::VirtioSlot => {}
                Device::Finisher => {
                    if let Some(end) = finisher::write(offset, width, value) {
                        finish(cpu, vcpu, end);
                    }
                }
            }
        }
    }
    exit
}

/// As the SBI's system reset ([`sbi::reset`]).
fn finish(cpu: &mut Cpu, vcpu: VcpuId, end: End) {
    let told = match end {
        End::PowerOff => "shutdown",
        End::Failure => "failure",
        End::Reboot => "reboot",
    };
    sbi::reset(cpu, vcpu, told);
}

fn plic_read(cpu: &mut Cpu, guest: &'static Guest, offset: u64, width: u8) -> u64 {
    let (value, effects) = guest.plic.read(offset, width);
    cpu.look_at_contexts(guest.index, effects.contexts);
    u64::from(value)
}

fn plic_write(cpu: &mut Cpu, guest: &'static Guest, offset: u64, width: u8, value: u64) {
    let effects = guest.plic.write(offset, width, value as u32);
    cpu.look_at_contexts(guest.index, effects.contexts);
    if let Some(source) = effects.completed {
        cpu.complete_source(guest, source);
    }
}

fn uart_read(cpu: &mut Cpu, guest: &'static Guest, offset: u64) -> u64 {
    let mut value = 0;
    with_uart(cpu, guest, |uart| value = u64::from(uart.read(offset as u8)));
    if offset == UART_DATA && cpu.machine.input_waits.load(Ordering::SeqCst) {
        cpu.wake_console();
    }
    // A guest that polls before it writes waits, rather than loses bytes, while its ring is full.
    if offset == UART_LINE_STATUS && !guest.output.has_room() {
        value & !UART_TRANSMITTER_READY
    } else {
        value
    }
}

fn uart_write(cpu: &mut Cpu, guest: &'static Guest, offset: u64, value: u8) {
    let mut tell = false;
    with_uart(cpu, guest, |uart| {
        tell = uart.write(offset as u8, value).is_some_and(|byte| guest.output.push(byte));
    });
    if tell {
        cpu.wake_console();
    }
}

/// Does something with a guest's serial port, and passes its interrupt on.
pub fn with_uart(cpu: &mut Cpu, guest: &'static Guest, act: impl FnOnce(&mut Uart)) {
    let contexts = {
        let mut uart = guest.uart.lock();
        act(&mut uart);
        // Under the lock, so that the line's changes reach the interrupt controller in their order.
        if uart.interrupt() { guest.plic.raise(UART_SOURCE) } else { guest.plic.lower(UART_SOURCE) }
    };
    cpu.look_at_contexts(guest.index, contexts);
}
