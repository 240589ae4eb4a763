//! Loads and stores of guests outside their memory: their virtual devices.
use core::sync::atomic::Ordering;

use ainori_devices::mmio::{self, Kind};
use ainori_devices::uart::Uart;
use ainori_sched::VcpuId;

use super::fault::{self, What};
use super::{Guest, PLIC_BASE, PLIC_SIZE, UART_BASE, UART_SIZE, UART_SOURCE};
use crate::arch::guest_access::fetch_instruction;
use crate::arch::{Exception, trap};
use crate::cpu::Cpu;
use crate::stats::Exit;

/// RBR: where a guest reads what was typed.
const UART_DATA: u64 = 0;
/// LSR: its offset, and its bits that say that the transmitter takes bytes.
const UART_LINE_STATUS: u64 = 5;
const UART_TRANSMITTER_READY: u64 = 0x60;

/// Carries out the load or store that has just trapped.
pub fn access(cpu: &mut Cpu, vcpu: VcpuId, cause: Exception) -> Exit {
    let guest = cpu.machine.guest_of(vcpu);
    let address = trap::fault_address();
    let wild = if cause == Exception::LoadFault { What::Load } else { What::Store };
    let device = match address {
        PLIC_BASE.. if address - PLIC_BASE < PLIC_SIZE => Exit::Plic,
        UART_BASE.. if address - UART_BASE < UART_SIZE => Exit::Uart,
        _ => return fault::stop(cpu, vcpu, wild, cause.code()),
    };
    // The hart describes simple loads and stores itself; where it doesn't, the instruction is fetched.
    let described = match trap::transformed_instruction() {
        0 => fetch_instruction(cpu.context(vcpu).pc),
        bits => Some(bits),
    };
    let Some(access) = described.and_then(mmio::decode) else {
        return fault::stop(cpu, vcpu, What::Access, cause.code());
    };
    match access.kind {
        Kind::Load { rd, width, signed } => {
            let value = match device {
                Exit::Plic => plic_read(cpu, guest, address - PLIC_BASE, width),
                _ => uart_read(cpu, guest, address - UART_BASE),
            };
            if rd != 0 {
                cpu.context(vcpu).x[usize::from(rd)] = mmio::extend(value, width, signed);
            }
        }
        Kind::Store { rs2, width } => {
            let value = if rs2 == 0 { 0 } else { cpu.context(vcpu).x[usize::from(rs2)] };
            match device {
                Exit::Plic => plic_write(cpu, guest, address - PLIC_BASE, width, value),
                _ => uart_write(cpu, guest, address - UART_BASE, value as u8),
            }
        }
    }
    cpu.context(vcpu).pc += u64::from(access.length);
    device
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
