//! Loads and stores of guests outside their memory: their virtual devices.
use ainori_devices::mmio::{self, Kind};
use ainori_sched::VcpuId;

use super::fault::{self, What};
use super::{Guest, PLIC_BASE, PLIC_SIZE, UART_BASE, UART_SIZE, serial};
use crate::arch::guest_access::fetch_instruction;
use crate::arch::{Exception, trap};
use crate::cpu::Cpu;
use crate::stats::Exit;

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
                Exit::Plic => Some(plic_read(cpu, guest, address - PLIC_BASE, width)),
                _ => serial::read(cpu, guest, address - UART_BASE),
            };
            // A device that is taken by somebody else at this moment: the instruction is executed, and traps, once more.
            let Some(value) = value else { return device };
            if rd != 0 {
                cpu.context(vcpu).x[usize::from(rd)] = mmio::extend(value, width, signed);
            }
        }
        Kind::Store { rs2, width } => {
            let value = if rs2 == 0 { 0 } else { cpu.context(vcpu).x[usize::from(rs2)] };
            let done = match device {
                Exit::Plic => {
                    plic_write(cpu, guest, address - PLIC_BASE, width, value);
                    Some(())
                }
                _ => serial::write(cpu, guest, address - UART_BASE, value as u8),
            };
            if done.is_none() {
                return device;
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
