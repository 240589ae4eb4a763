//! The board's serial port, in a kernel with the feature `uarts`: a 16550A whose registers are bytes or words, or SiFive's.
use core::ptr::{read_volatile, write_volatile};

use ainori_board::uarts::{SIFIVE, WORDS};
use ainori_devices::uart::{
    fcr, ier, lsr,
    register::{IER_DLM, IIR_FCR, LSR, RBR_THR_DLL},
};

/// How many bytes each of them can take at once.
pub const FIFO: usize = 8;

/// How often at most it is looked whether there is room for another byte. On the board the first look finds it.
const LOOKS: u32 = 1 << 16;

/// SiFive's registers (SiFive FU540-C000 Manual, chapter "Universal Asynchronous Receiver/Transmitter").
mod sifive {
    /// A byte to send, and whether there is no room for one.
    pub const TXDATA: usize = 0x00;
    pub const TXDATA_FULL: u32 = 1 << 31;
    /// A byte received, and whether there is none.
    pub const RXDATA: usize = 0x04;
    pub const RXDATA_EMPTY: u32 = 1 << 31;
    /// The transmitter: it is on, and below how many bytes in its FIFO its interrupt is pending.
    pub const TXCTRL: usize = 0x08;
    pub const TXCTRL_ON: u32 = 1 << 0;
    pub const TXCTRL_BELOW_1: u32 = 1 << 16;
    /// The receiver: it is on; and above how many bytes its interrupt is pending: none.
    pub const RXCTRL: usize = 0x0c;
    pub const RXCTRL_ON: u32 = 1 << 0;
    /// Interrupts that are enabled.
    pub const IE: usize = 0x10;
    /// Those that are pending.
    pub const IP: usize = 0x14;
    pub const TRANSMITTER: u32 = 1 << 0;
    pub const RECEIVER: u32 = 1 << 1;
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    /// Registers of `1 << shift` bytes each, of which one is read and written, or four.
    Ns16550 {
        shift: usize,
        words: bool,
    },
    SiFive,
}

/// A serial port at a physical address.
#[derive(Debug, Clone, Copy)]
pub struct Uart {
    base: usize,
    kind: Kind,
}

impl Uart {
    /// The port at `base`, of the kind that `layout` says ([`BoardUart::shift`](ainori_board::BoardUart::shift)). Line settings stay as the firmware left them.
    /// This writes few registers: FIFOs are switched on, and only received bytes interrupt from now on ([`Self::listen`]).
    ///
    /// # Safety
    /// Such a port is there. Whoever else drives it bears that letters are mixed, and that the transmitter doesn't interrupt any more.
    pub unsafe fn new(base: u64, layout: usize) -> Self {
        let kind = if layout & SIFIVE != 0 {
            Kind::SiFive
        } else {
            Kind::Ns16550 { shift: layout & (WORDS - 1), words: layout & WORDS != 0 }
        };
        let uart = Self { base: base as usize, kind };
        match kind {
            Kind::Ns16550 { .. } => uart.write(IIR_FCR, fcr::ENABLE),
            Kind::SiFive => {
                uart.write_word(sifive::TXCTRL, sifive::TXCTRL_ON | sifive::TXCTRL_BELOW_1);
                uart.write_word(sifive::RXCTRL, sifive::RXCTRL_ON);
            }
        }
        uart.listen(true, false);
        uart
    }

    fn read_word(&self, offset: usize) -> u32 {
        // SAFETY: `new` was promised that the device is here; its registers are outside of all Rust objects.
        unsafe { read_volatile((self.base + offset) as *const u32) }
    }

    fn write_word(&self, offset: usize, value: u32) {
        // SAFETY: as in `read_word`.
        unsafe { write_volatile((self.base + offset) as *mut u32, value) }
    }

    /// A register of a 16550A; of another port, nothing.
    fn read(&self, register: u8) -> u8 {
        let Kind::Ns16550 { shift, words } = self.kind else { return 0 };
        let offset = usize::from(register) << shift;
        if words {
            return self.read_word(offset) as u8;
        }
        // SAFETY: as in `read_word`.
        unsafe { read_volatile((self.base + offset) as *const u8) }
    }

    /// The same.
    fn write(&self, register: u8, value: u8) {
        let Kind::Ns16550 { shift, words } = self.kind else { return };
        let offset = usize::from(register) << shift;
        if words {
            return self.write_word(offset, value.into());
        }
        // SAFETY: as in `read_word`.
        unsafe { write_volatile((self.base + offset) as *mut u8, value) }
    }

    /// True if [`FIFO`] bytes can be sent at once.
    pub fn can_send(&self) -> bool {
        match self.kind {
            Kind::Ns16550 { .. } => self.read(LSR) & lsr::HOLDING_EMPTY != 0,
            Kind::SiFive => self.read_word(sifive::IP) & sifive::TRANSMITTER != 0 && self.has_room(),
        }
    }

    /// SiFive's has room for a byte.
    fn has_room(&self) -> bool {
        self.read_word(sifive::TXDATA) & sifive::TXDATA_FULL == 0
    }

    /// Sends at most [`FIFO`] bytes; [`Self::can_send`] was true.
    pub fn send(&self, bytes: &[u8]) {
        // BOUND: a FIFO of 8 bytes.
        for byte in bytes {
            match self.kind {
                Kind::Ns16550 { .. } => self.write(RBR_THR_DLL, *byte),
                Kind::SiFive => {
                    // QEMU's says that it is empty whatever is in it; the board's has room for all of them then.
                    // BOUND: `LOOKS`.
                    for _ in 0..LOOKS {
                        if self.has_room() {
                            break;
                        }
                    }
                    self.write_word(sifive::TXDATA, (*byte).into());
                }
            }
        }
    }

    /// Takes a received byte.
    pub fn receive(&self) -> Option<u8> {
        match self.kind {
            Kind::Ns16550 { .. } => (self.read(LSR) & lsr::DATA_READY != 0).then(|| self.read(RBR_THR_DLL)),
            Kind::SiFive => {
                let data = self.read_word(sifive::RXDATA);
                (data & sifive::RXDATA_EMPTY == 0).then_some(data as u8)
            }
        }
    }

    /// Interrupts when a byte was received, and when the transmitter is empty.
    pub fn listen(&self, received: bool, transmitter: bool) {
        match self.kind {
            Kind::Ns16550 { .. } => {
                let enable = |bit, on| if on { bit } else { 0 };
                self.write(
                    IER_DLM,
                    enable(ier::RECEIVED, received) | enable(ier::TRANSMITTER_EMPTY, transmitter),
                );
            }
            Kind::SiFive => {
                let enable = |bit, on| if on { bit } else { 0 };
                self.write_word(
                    sifive::IE,
                    enable(sifive::RECEIVER, received) | enable(sifive::TRANSMITTER, transmitter),
                );
            }
        }
    }

    /// Ends a transmitter interrupt. SiFive's ends by itself.
    pub fn acknowledge(&self) {
        self.read(IIR_FCR);
    }
}
