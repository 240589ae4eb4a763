//! A virtual 16550A serial port: byte-wide registers without a shift, 16-byte FIFOs, a line of infinite speed.
//!
//! Source: National Semiconductor *PC16550D* data sheet. Where it leaves something open, this does what Linux's
//! `drivers/tty/serial/8250` probes for; `tests/uart_linux.rs` replays those probes.
//!
//! A byte that is written has left at once, so the transmitter is always empty. Reception has no timing either: bytes
//! below the FIFO's trigger level raise the time-out interrupt immediately, since a guest that waits for more would see
//! it four character times later anyway.

/// Offsets of the registers.
pub mod register {
    /// Receive buffer (read), transmit holding (write); divisor latch, low byte, with DLAB.
    pub const RBR_THR_DLL: u8 = 0;
    /// Interrupt enable; divisor latch, high byte, with DLAB.
    pub const IER_DLM: u8 = 1;
    /// Interrupt identification (read), FIFO control (write).
    pub const IIR_FCR: u8 = 2;
    /// Line control.
    pub const LCR: u8 = 3;
    /// Modem control.
    pub const MCR: u8 = 4;
    /// Line status, read only.
    pub const LSR: u8 = 5;
    /// Modem status, read only.
    pub const MSR: u8 = 6;
    /// Scratch.
    pub const SCR: u8 = 7;
}

/// Interrupt enable register.
pub mod ier {
    /// A byte has been received.
    pub const RECEIVED: u8 = 0x01;
    /// The transmitter takes bytes.
    pub const TRANSMITTER_EMPTY: u8 = 0x02;
    /// Something went wrong with a byte.
    pub const LINE_STATUS: u8 = 0x04;
    /// A line of the modem has changed.
    pub const MODEM_STATUS: u8 = 0x08;
    /// All of them.
    pub const MASK: u8 = 0x0f;
}

/// Interrupt identification register, bits 3:0 by falling priority, and the FIFO bits.
mod iir {
    pub const LINE_STATUS: u8 = 0x06;
    pub const RECEIVED: u8 = 0x04;
    pub const TIME_OUT: u8 = 0x0c;
    pub const TRANSMITTER_EMPTY: u8 = 0x02;
    pub const MODEM_STATUS: u8 = 0x00;
    pub const NONE: u8 = 0x01;
    pub const FIFOS_ENABLED: u8 = 0xc0;
}

/// FIFO control register. Bit 2 clears the transmit FIFO, which is always empty; bit 3 concerns DMA pins.
pub mod fcr {
    /// Both FIFOs are used.
    pub const ENABLE: u8 = 0x01;
    /// Empties the receive FIFO.
    pub const CLEAR_RECEIVER: u8 = 0x02;
}

/// Line control register. Word length, parity, stop bits and break have no meaning here and are only kept.
mod lcr {
    pub const EIGHT_BITS: u8 = 0x03;
    pub const DLAB: u8 = 0x80;
}

/// Modem control register.
mod mcr {
    pub const DTR: u8 = 0x01;
    pub const RTS: u8 = 0x02;
    pub const OUT1: u8 = 0x04;
    pub const OUT2: u8 = 0x08;
    pub const LOOPBACK: u8 = 0x10;
    pub const MASK: u8 = 0x1f;
}

/// Line status register.
pub mod lsr {
    /// A byte has been received.
    pub const DATA_READY: u8 = 0x01;
    /// One was lost, as the FIFO was full.
    pub const OVERRUN: u8 = 0x02;
    /// The FIFO (or the holding register) takes bytes.
    pub const HOLDING_EMPTY: u8 = 0x20;
    /// So it does, and the shift register is empty too: all has been sent.
    pub const TRANSMITTER_EMPTY: u8 = 0x60;
}

/// Modem status register: the lines in bits 7:4, what changed since the last read in bits 3:0.
mod msr {
    pub const CTS: u8 = 0x10;
    pub const DSR: u8 = 0x20;
    pub const RI: u8 = 0x40;
    pub const DCD: u8 = 0x80;
    pub const RING_ENDED: u8 = 0x04;
}

/// Bytes that a FIFO holds.
pub const FIFO: usize = 16;

/// Bytes that wait for the guest.
struct Fifo {
    bytes: [u8; FIFO],
    first: usize,
    length: usize,
}

impl Fifo {
    const fn new() -> Self {
        Self { bytes: [0; FIFO], first: 0, length: 0 }
    }

    fn push(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut((self.first + self.length) % FIFO) {
            *place = byte;
        }
        self.length += 1;
    }

    fn pop(&mut self) -> Option<u8> {
        if self.length == 0 {
            return None;
        }
        let byte = self.bytes.get(self.first % FIFO).copied();
        self.first = (self.first + 1) % FIFO;
        self.length -= 1;
        byte
    }

    fn clear(&mut self) {
        self.length = 0;
    }
}

/// A virtual 16550A. Every operation takes constant time.
pub struct Uart {
    received: Fifo,
    /// Received bytes from which on the interrupt is "data available" rather than "time-out".
    trigger: usize,
    fifos_enabled: bool,
    /// The transmitter became empty, or its interrupt was enabled, and the guest has not been told yet.
    transmitter_empty: bool,
    /// A byte was lost in loopback, and the guest has not read it from LSR yet.
    overrun: bool,
    /// Bits 3:0 of MSR.
    modem_changes: u8,
    ier: u8,
    lcr: u8,
    mcr: u8,
    scr: u8,
    divisor: [u8; 2],
}

impl Uart {
    /// A UART as the firmware of a machine leaves it to who boots there: FIFOs on, interrupts off, 8n1, and a divisor that stands for
    /// 115,200 baud at the 3.6864 MHz that QEMU's `virt` states. So what is typed before a guest is ready waits for it in the FIFO, and a
    /// driver that only switches that on, which clears it if it was off, loses nothing.
    #[allow(
        clippy::new_without_default,
        reason = "statics need a const constructor; one way to build it is enough"
    )]
    pub const fn new() -> Self {
        Self {
            received: Fifo::new(),
            trigger: 1,
            fifos_enabled: true,
            transmitter_empty: false,
            overrun: false,
            modem_changes: 0,
            ier: 0,
            lcr: lcr::EIGHT_BITS,
            mcr: 0,
            scr: 0,
            divisor: [2, 0],
        }
    }

    /// The guest loads register `reg` (0 to 7; others read as zero). Look at [`Uart::interrupt`] afterwards.
    pub fn read(&mut self, reg: u8) -> u8 {
        match reg {
            register::RBR_THR_DLL if self.dlab() => self.divisor[0],
            register::RBR_THR_DLL => self.received.pop().unwrap_or(0),
            register::IER_DLM if self.dlab() => self.divisor[1],
            register::IER_DLM => self.ier,
            register::IIR_FCR => self.read_iir(),
            register::LCR => self.lcr,
            register::MCR => self.mcr,
            register::LSR => self.read_lsr(),
            register::MSR => self.modem_lines() | core::mem::take(&mut self.modem_changes),
            register::SCR => self.scr,
            _ => 0,
        }
    }

    /// The guest stores `value` to register `reg` (0 to 7; others are ignored). Returns the byte to transmit, if it was
    /// one. Look at [`Uart::interrupt`] afterwards.
    pub fn write(&mut self, reg: u8, value: u8) -> Option<u8> {
        match reg {
            register::RBR_THR_DLL if self.dlab() => self.divisor[0] = value,
            register::RBR_THR_DLL => return self.transmit(value),
            register::IER_DLM if self.dlab() => self.divisor[1] = value,
            register::IER_DLM => self.write_ier(value & ier::MASK),
            register::IIR_FCR => self.write_fcr(value),
            register::LCR => self.lcr = value,
            register::MCR => self.write_mcr(value & mcr::MASK),
            register::SCR => self.scr = value,
            _ => {}
        }
        None
    }

    /// A byte arrives from outside. False if it can't be taken now, because the FIFO is full or the guest has put the port
    /// into loopback: keep it and offer it again later. Look at [`Uart::interrupt`] afterwards.
    pub fn receive(&mut self, byte: u8) -> bool {
        let taken = !self.loopback() && self.received.length < self.capacity();
        if taken {
            self.received.push(byte);
        }
        taken
    }

    /// The level of the interrupt line.
    pub fn interrupt(&self) -> bool {
        self.cause() != iir::NONE
    }

    fn dlab(&self) -> bool {
        self.lcr & lcr::DLAB != 0
    }

    fn loopback(&self) -> bool {
        self.mcr & mcr::LOOPBACK != 0
    }

    /// Bytes the receiver holds: without FIFOs there is one register.
    fn capacity(&self) -> usize {
        if self.fifos_enabled { FIFO } else { 1 }
    }

    /// The pending interrupt of the highest priority, as in bits 3:0 of IIR.
    fn cause(&self) -> u8 {
        let enabled = |bit| self.ier & bit != 0;
        if enabled(ier::LINE_STATUS) && self.overrun {
            iir::LINE_STATUS
        } else if enabled(ier::RECEIVED) && self.received.length > 0 {
            if self.received.length >= self.trigger { iir::RECEIVED } else { iir::TIME_OUT }
        } else if enabled(ier::TRANSMITTER_EMPTY) && self.transmitter_empty {
            iir::TRANSMITTER_EMPTY
        } else if enabled(ier::MODEM_STATUS) && self.modem_changes != 0 {
            iir::MODEM_STATUS
        } else {
            iir::NONE
        }
    }

    /// Reading IIR acknowledges the transmitter's interrupt, if that is the one that it names.
    fn read_iir(&mut self) -> u8 {
        let cause = self.cause();
        if cause == iir::TRANSMITTER_EMPTY {
            self.transmitter_empty = false;
        }
        cause | if self.fifos_enabled { iir::FIFOS_ENABLED } else { 0 }
    }

    fn read_lsr(&mut self) -> u8 {
        let ready = if self.received.length > 0 { lsr::DATA_READY } else { 0 };
        let overrun = if core::mem::take(&mut self.overrun) { lsr::OVERRUN } else { 0 };
        lsr::TRANSMITTER_EMPTY | ready | overrun
    }

    /// The transmitter, which was shown to the guest as busy, is empty again: raises its interrupt.
    pub fn empty_transmitter(&mut self) {
        self.transmitter_empty = true;
    }

    fn transmit(&mut self, byte: u8) -> Option<u8> {
        self.transmitter_empty = true;
        if !self.loopback() {
            return Some(byte);
        }
        if self.received.length < self.capacity() {
            self.received.push(byte);
        } else {
            self.overrun = true;
            if !self.fifos_enabled {
                // There is one place, which the newer byte takes. A full FIFO keeps what it has.
                self.received.clear();
                self.received.push(byte);
            }
        }
        None
    }

    /// Enabling the transmitter's interrupt while it is empty raises it: drivers start a transmission in this way.
    fn write_ier(&mut self, value: u8) {
        if (value & !self.ier) & ier::TRANSMITTER_EMPTY != 0 {
            self.transmitter_empty = true;
        }
        self.ier = value;
    }

    fn write_fcr(&mut self, value: u8) {
        let enable = value & fcr::ENABLE != 0;
        if enable != self.fifos_enabled || value & fcr::CLEAR_RECEIVER != 0 {
            self.received.clear();
        }
        self.fifos_enabled = enable;
        self.trigger = match value >> 6 {
            1 if enable => 4,
            2 if enable => 8,
            3 if enable => 14,
            _ => 1,
        };
    }

    fn write_mcr(&mut self, value: u8) {
        let before = self.modem_lines();
        self.mcr = value;
        let after = self.modem_lines();
        // Bits 3:0 have the order of the lines; the ring indicator reports only its end.
        let changed = (before ^ after) >> 4 & !msr::RING_ENDED;
        let ring_ended = if before & !after & msr::RI != 0 { msr::RING_ENDED } else { 0 };
        self.modem_changes |= changed | ring_ended;
    }

    /// Bits 7:4 of MSR: in loopback the port's own outputs, otherwise a peer that is always there.
    fn modem_lines(&self) -> u8 {
        if !self.loopback() {
            return msr::DCD | msr::DSR | msr::CTS;
        }
        // BOUND: 4.
        [(mcr::DTR, msr::DSR), (mcr::RTS, msr::CTS), (mcr::OUT1, msr::RI), (mcr::OUT2, msr::DCD)]
            .into_iter()
            .filter(|(output, _)| self.mcr & output != 0)
            .fold(0, |lines, (_, input)| lines | input)
    }
}
