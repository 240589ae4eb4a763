//! The board's serial port: a 16550A (or one that behaves like it).
use core::ptr::{read_volatile, write_volatile};

/// A 16550A at a physical address.
#[derive(Debug, Clone, Copy)]
pub struct Uart {
    base: usize,
    /// Distance of registers: 1 << shift bytes.
    shift: usize,
}

const DATA: usize = 0;
const INTERRUPT_ENABLE: usize = 1;
const INTERRUPT_ID: usize = 2;
const FIFO_CONTROL: usize = 2;
const LINE_STATUS: usize = 5;
const ENABLE_RECEIVED: u8 = 1 << 0;
const ENABLE_TRANSMITTED: u8 = 1 << 1;
const DATA_READY: u8 = 1 << 0;
const TRANSMITTER_EMPTY: u8 = 1 << 5;
/// Bytes that an empty transmitter takes.
pub const FIFO: usize = 16;

impl Uart {
    /// The port at `base`, with registers `1 << shift` bytes apart. Line settings stay as the firmware left them.
    ///
    /// # Safety
    /// A 16550A is there, and nothing else drives it.
    pub unsafe fn new(base: u64, shift: usize) -> Self {
        let uart = Self { base: base as usize, shift };
        uart.write(FIFO_CONTROL, 1);
        uart.listen(true, false);
        uart
    }

    fn read(&self, register: usize) -> u8 {
        // SAFETY: `new` was promised that the device is here; its registers are outside of all Rust objects.
        unsafe { read_volatile((self.base + (register << self.shift)) as *const u8) }
    }

    fn write(&self, register: usize, value: u8) {
        // SAFETY: as in `read`.
        unsafe { write_volatile((self.base + (register << self.shift)) as *mut u8, value) }
    }

    /// True if [`FIFO`] bytes can be sent at once.
    pub fn can_send(&self) -> bool {
        self.read(LINE_STATUS) & TRANSMITTER_EMPTY != 0
    }

    /// Sends at most [`FIFO`] bytes; [`Self::can_send`] was true.
    pub fn send(&self, bytes: &[u8]) {
        // BOUND: a FIFO of 16 bytes.
        bytes.iter().for_each(|byte| self.write(DATA, *byte));
    }

    /// Takes a received byte.
    pub fn receive(&self) -> Option<u8> {
        (self.read(LINE_STATUS) & DATA_READY != 0).then(|| self.read(DATA))
    }

    /// Interrupts when a byte was received, and when the transmitter is empty.
    pub fn listen(&self, received: bool, transmitter: bool) {
        let enable = |bit, on| if on { bit } else { 0 };
        self.write(
            INTERRUPT_ENABLE,
            enable(ENABLE_RECEIVED, received) | enable(ENABLE_TRANSMITTED, transmitter),
        );
    }

    /// Ends a transmitter interrupt.
    pub fn acknowledge(&self) {
        self.read(INTERRUPT_ID);
    }
}
