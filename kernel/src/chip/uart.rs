//! The board's serial port: a 16550A (or one that behaves like it).
use core::ptr::{read_volatile, write_volatile};

pub use ainori_devices::uart::FIFO;
use ainori_devices::uart::{
    fcr, ier, lsr,
    register::{IER_DLM, IIR_FCR, LSR, RBR_THR_DLL},
};

/// A 16550A at a physical address.
#[derive(Debug, Clone, Copy)]
pub struct Uart {
    base: usize,
    /// Distance of registers: 1 << shift bytes.
    shift: usize,
}

impl Uart {
    /// The port at `base`, with registers `1 << shift` bytes apart. Line settings stay as the firmware left them. This writes two
    /// registers: the FIFOs are switched on, and only received bytes interrupt from now on ([`Self::listen`]).
    ///
    /// # Safety
    /// A 16550A is there, with registers that are a byte each. Whoever else drives it bears that letters are mixed, and that the
    /// transmitter doesn't interrupt any more.
    pub unsafe fn new(base: u64, shift: usize) -> Self {
        let uart = Self { base: base as usize, shift };
        uart.write(IIR_FCR, fcr::ENABLE);
        uart.listen(true, false);
        uart
    }

    fn read(&self, register: u8) -> u8 {
        // SAFETY: `new` was promised that the device is here; its registers are outside of all Rust objects.
        unsafe { read_volatile((self.base + (usize::from(register) << self.shift)) as *const u8) }
    }

    fn write(&self, register: u8, value: u8) {
        // SAFETY: as in `read`.
        unsafe { write_volatile((self.base + (usize::from(register) << self.shift)) as *mut u8, value) }
    }

    /// True if [`FIFO`] bytes can be sent at once.
    pub fn can_send(&self) -> bool {
        self.read(LSR) & lsr::HOLDING_EMPTY != 0
    }

    /// Sends at most [`FIFO`] bytes; [`Self::can_send`] was true.
    pub fn send(&self, bytes: &[u8]) {
        // BOUND: a FIFO of 16 bytes.
        bytes.iter().for_each(|byte| self.write(RBR_THR_DLL, *byte));
    }

    /// Takes a received byte.
    pub fn receive(&self) -> Option<u8> {
        (self.read(LSR) & lsr::DATA_READY != 0).then(|| self.read(RBR_THR_DLL))
    }

    /// Interrupts when a byte was received, and when the transmitter is empty.
    pub fn listen(&self, received: bool, transmitter: bool) {
        let enable = |bit, on| if on { bit } else { 0 };
        self.write(IER_DLM, enable(ier::RECEIVED, received) | enable(ier::TRANSMITTER_EMPTY, transmitter));
    }

    /// Ends a transmitter interrupt.
    pub fn acknowledge(&self) {
        self.read(IIR_FCR);
    }
}
