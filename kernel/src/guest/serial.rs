//! A guest's serial port: the registers of its 16550A, and the SBI's debug console, which are one stream.
//!
//! The port, and the writing end of the guest's output, are taken by the guest's vCPUs and by the console core, each for some hundred instructions.
//! Nobody waits for it: who finds it taken has the guest's instruction executed once more, which then traps again.
use core::sync::atomic::{Ordering, fence};

use ainori_devices::bus::UART_SOURCE;
use ainori_devices::uart::{
    Uart, lsr,
    register::{LSR, RBR_THR_DLL},
};

use super::{Guest, OUTPUT};
use crate::cpu::Cpu;

/// Room that a guest finds which looks before it writes: more than a whole FIFO of its port.
const ROOM: usize = 32;

/// Does something with a guest's port, and passes its interrupt on. None if the port is taken at this moment.
pub fn with_port<R>(cpu: &mut Cpu, guest: &'static Guest, act: impl FnOnce(&mut Uart) -> R) -> Option<R> {
    let (result, harts) = {
        let mut port = guest.port.try_lock()?;
        let result = act(&mut port);
        // Under the lock, so that the line's changes reach the interrupt controller in their order.
        let is_up = port.interrupt();
        (result, if is_up { guest.irqchip.raise(UART_SOURCE) } else { guest.irqchip.lower(UART_SOURCE) })
    };
    cpu.look_at_harts(guest, harts);
    Some(result)
}

/// A load from a register. None if it has to be tried again.
pub fn read(cpu: &mut Cpu, guest: &'static Guest, offset: u64) -> Option<u64> {
    let value = u64::from(with_port(cpu, guest, |port| port.read(offset as u8))?);
    if offset == RBR_THR_DLL.into() && cpu.machine.input_waits.is_set() {
        cpu.wake_console();
    }
    // A guest that looks before it writes waits, rather than loses bytes, while its ring is full.
    if offset == LSR.into() && guest.output.room() < ROOM {
        guest.awaits_room.store(true, Ordering::Relaxed);
        // Dekker's rule: either it is seen here that there is room by now, or the console core sees that it is waited for.
        fence(Ordering::SeqCst);
        if guest.output.room() < ROOM {
            cpu.relieve_console();
            return Some(value & !u64::from(lsr::TRANSMITTER_EMPTY));
        }
    }
    Some(value)
}

/// Output of the guest was sent: does it wait for room, and is there plenty?
pub fn has_awaited_room(guest: &Guest) -> bool {
    fence(Ordering::SeqCst);
    guest.awaits_room.load(Ordering::Relaxed) && guest.output.room() >= OUTPUT / 2
}

/// It [has](has_awaited_room): its port isn't busy any more. That is an interrupt, which a driver that was told so waits for.
pub fn tell_of_room(cpu: &mut Cpu, guest: &'static Guest) {
    if with_port(cpu, guest, Uart::empty_transmitter).is_some() {
        guest.awaits_room.store(false, Ordering::Relaxed);
    }
}

/// A store to a register. None if it has to be tried again.
pub fn write(cpu: &mut Cpu, guest: &'static Guest, offset: u64, value: u8) -> Option<()> {
    let tell = with_port(cpu, guest, |port| {
        port.write(offset as u8, value).is_some_and(|byte| guest.output.push(byte))
    })?;
    if tell {
        cpu.wake_console();
    }
    Some(())
}

/// Writes what `bytes` gives (at most the length of a short line) to the debug console, as far as there is room. Returns how
/// much that was, or None if it has to be tried again.
pub fn print(cpu: &mut Cpu, guest: &'static Guest, bytes: impl Iterator<Item = u8>) -> Option<u64> {
    let (written, tell) = {
        let _the_only_writer = guest.port.try_lock()?;
        guest.output.append(bytes.take(guest.output.room().saturating_sub(ROOM)))
    };
    if written == 0 {
        cpu.relieve_console();
    } else if tell {
        cpu.wake_console();
    }
    Some(written as u64)
}

/// Takes what was typed from the debug console, at most `most` bytes. Returns how much that was, or None if it has to be tried
/// again.
pub fn scan(
    cpu: &mut Cpu,
    guest: &'static Guest,
    most: usize,
    mut take: impl FnMut(usize, u8),
) -> Option<u64> {
    let read = with_port(cpu, guest, |port| {
        let mut read = 0;
        // BOUND: `most`, which is `CONSOLE_PIECE` bytes at most, and the port's FIFO has no more; some 60 instructions each.
        while read < most && port.read(LSR) & lsr::DATA_READY != 0 {
            take(read, port.read(RBR_THR_DLL));
            read += 1;
        }
        read
    })?;
    if read != 0 && cpu.machine.input_waits.is_set() {
        cpu.wake_console();
    }
    Some(read as u64)
}
