//! A guest's serial port: the registers of its 16550A, and the SBI's debug console, which are one stream.
//!
//! The port, and the writing end of the guest's output, are taken by the guest's vCPUs and by whoever drives the console, each for some hundred
//! instructions. Nobody waits for it: who finds it taken has the guest's instruction executed once more, which then traps again.
use core::sync::atomic::{AtomicBool, Ordering, fence};

use ainori_console::Source;
use ainori_devices::bus::UART_SOURCE;
use ainori_devices::uart::{
    Uart, lsr,
    register::{LSR, RBR_THR_DLL},
};
use spin::Mutex;

use crate::{Devices, Host};

/// Bytes of output that a guest can be ahead of the board's serial port.
pub const OUTPUT: usize = 64 * 1024;

/// Room that a guest finds which looks before it writes: more than a whole FIFO of its port.
const ROOM: usize = 32;

/// A port, and the output on its way to the board's.
pub struct Serial {
    /// The registers. Only the guest's vCPUs and who drives the console take this lock, and nobody waits for it.
    port: Mutex<Uart>,
    /// What the guest has written.
    pub output: Source,
    /// It was told that its port is busy, as there was no room for its output, and is to be interrupted when there is.
    awaits_room: AtomicBool,
}

impl Serial {
    /// A port as after reset, of a guest with this name. Allocates: only at boot.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            port: Mutex::new(Uart::new()),
            output: Source::new(name, OUTPUT),
            awaits_room: AtomicBool::new(false),
        }
    }

    /// Output was sent: does the guest wait for room, and is there plenty?
    #[must_use]
    pub fn has_awaited_room(&self) -> bool {
        fence(Ordering::SeqCst);
        self.awaits_room.load(Ordering::Relaxed) && self.output.room() >= OUTPUT / 2
    }
}

impl Devices {
    /// Does something with the port, and passes its interrupt on. Returns the harts to look at again as well. `None` if the port is taken at this moment.
    pub fn with_port<R>(&self, act: impl FnOnce(&mut Uart) -> R) -> Option<(R, u64)> {
        let mut port = self.serial.port.try_lock()?;
        let result = act(&mut port);
        // Under the lock, so that the line's changes reach the interrupt controller in their order.
        let is_up = port.interrupt();
        let harts = if is_up { self.irqchip.raise(UART_SOURCE) } else { self.irqchip.lower(UART_SOURCE) };
        Some((result, harts))
    }

    /// The guest [waits](Serial::has_awaited_room) for room, and there is: its port isn't busy any more. That is an interrupt, which a driver that was told so
    /// waits for. Returns the harts to look at again, or `None` if it has to be tried again.
    pub fn tell_of_room(&self) -> Option<u64> {
        let ((), harts) = self.with_port(Uart::empty_transmitter)?;
        self.serial.awaits_room.store(false, Ordering::Relaxed);
        Some(harts)
    }

    /// Puts the port back as after reset. `None` if it has to be tried again. Nobody need look at harts: the interrupt controller is reset as well.
    pub fn reset_port(&self) -> Option<()> {
        let mut port = self.serial.port.try_lock()?;
        *port = Uart::new();
        self.irqchip.lower(UART_SOURCE);
        Some(())
    }
}

fn with_port<H: Host, R>(host: &mut H, act: impl FnOnce(&mut H, &mut Uart) -> R) -> Option<R> {
    let (result, harts) = host.devices().with_port(|port| act(host, port))?;
    host.look_at_harts(harts);
    Some(result)
}

/// A load from a register. `None` if it has to be tried again.
pub(crate) fn read(host: &mut impl Host, offset: u64) -> Option<u64> {
    let Serial { output, awaits_room, .. } = &host.devices().serial;
    let value = u64::from(with_port(host, |_, port| port.read(offset as u8))?);
    if offset == RBR_THR_DLL.into() && host.input_waits() {
        host.wake_console();
    }
    // A guest that looks before it writes waits, rather than loses bytes, while its ring is full.
    if offset == LSR.into() && output.room() < ROOM {
        awaits_room.store(true, Ordering::Relaxed);
        // Dekker's rule: either it is seen here that there is room by now, or who sends output sees that it is waited for.
        fence(Ordering::SeqCst);
        if output.room() < ROOM {
            host.relieve_console();
            return Some(value & !u64::from(lsr::TRANSMITTER_EMPTY));
        }
    }
    Some(value)
}

/// A store to a register. `None` if it has to be tried again.
pub(crate) fn write(host: &mut impl Host, offset: u64, value: u8) -> Option<()> {
    let output = &host.devices().serial.output;
    let tell =
        with_port(host, |_, port| port.write(offset as u8, value).is_some_and(|byte| output.push(byte)))?;
    if tell {
        host.wake_console();
    }
    Some(())
}

/// Writes what `bytes` gives (at most the length of a short line) to the debug console, as far as there is room. Returns how much that was, or `None` if it
/// has to be tried again.
pub(crate) fn print(host: &mut impl Host, bytes: impl Iterator<Item = u8>) -> Option<u64> {
    let Serial { port, output, .. } = &host.devices().serial;
    let (written, tell) = {
        let _the_only_writer = port.try_lock()?;
        output.append(bytes.take(output.room().saturating_sub(ROOM)))
    };
    if written == 0 {
        host.relieve_console();
    } else if tell {
        host.wake_console();
    }
    Some(written as u64)
}

/// Takes what was typed from the debug console, at most `most` bytes. Returns how much that was, or `None` if it has to be tried again.
pub(crate) fn scan<H: Host>(
    host: &mut H,
    most: usize,
    mut take: impl FnMut(&mut H, usize, u8),
) -> Option<u64> {
    let read = with_port(host, |host, port| {
        let mut read = 0;
        // BOUND: `most`, which is `MOST_READ` bytes at most, and the port's FIFO has no more than 16; some 60 instructions each.
        while read < most && port.read(LSR) & lsr::DATA_READY != 0 {
            take(host, read, port.read(RBR_THR_DLL));
            read += 1;
        }
        read
    })?;
    if read != 0 && host.input_waits() {
        host.wake_console();
    }
    Some(read as u64)
}
