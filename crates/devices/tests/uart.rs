//! The UART's registers, interrupts and FIFOs, and its behaviour under arbitrary guests.
#![cfg(not(loom))]

use ainori_devices::uart::Uart;
use proptest::prelude::*;
use std::collections::VecDeque;

const DATA: u8 = 0;
const IER: u8 = 1;
const IIR_FCR: u8 = 2;
const LCR: u8 = 3;
const MCR: u8 = 4;
const LSR: u8 = 5;
const MSR: u8 = 6;
const SCR: u8 = 7;

/// A UART with its FIFOs on and a trigger level of 8.
fn with_fifos() -> Uart {
    let mut uart = Uart::new();
    uart.write(IIR_FCR, 0x81);
    uart
}

#[test]
fn a_written_byte_leaves_at_once() {
    let mut uart = Uart::new();
    assert_eq!(uart.write(DATA, b'x'), Some(b'x'));
    assert_eq!(uart.read(LSR), 0x60);
}

#[test]
fn the_divisor_latch_hides_data_and_interrupt_enable() {
    let mut uart = Uart::new();
    uart.write(IER, 0x05);
    uart.write(LCR, 0x83);
    assert_eq!(uart.write(DATA, 0x12), None);
    uart.write(IER, 0x34);
    assert_eq!((uart.read(DATA), uart.read(IER)), (0x12, 0x34));
    uart.write(LCR, 0x03);
    assert_eq!((uart.read(DATA), uart.read(IER)), (0, 0x05));
}

#[test]
fn unused_bits_read_as_zero() {
    let mut uart = Uart::new();
    for (register, kept) in [(IER, 0x0f), (LCR, 0xff), (MCR, 0x1f), (SCR, 0xff)] {
        uart.write(LCR, 0);
        uart.write(register, 0xff);
        assert_eq!(uart.read(register), kept, "register {register}");
    }
    assert_eq!(uart.read(8), 0);
    assert_eq!(uart.write(8, 0xff), None);
}

#[test]
fn the_transmitter_interrupts_when_enabled_and_after_each_byte_until_acknowledged() {
    let mut uart = with_fifos();
    uart.write(IER, 0x02);
    assert!(uart.interrupt());
    assert_eq!(uart.read(IIR_FCR), 0xc2);
    assert!(!uart.interrupt());
    assert_eq!(uart.read(IIR_FCR), 0xc1);
    uart.write(DATA, b'x');
    assert!(uart.interrupt());
    uart.write(IER, 0);
    assert!(!uart.interrupt());
}

#[test]
fn a_received_byte_hides_the_transmitter_interrupt_without_acknowledging_it() {
    let mut uart = with_fifos();
    uart.write(IER, 0x03);
    assert!(uart.receive(b'x'));
    assert_eq!(uart.read(IIR_FCR), 0xcc, "time-out: below the trigger level");
    assert_eq!(uart.read(DATA), b'x');
    assert_eq!(uart.read(IIR_FCR), 0xc2);
    assert!(!uart.interrupt());
}

#[test]
fn reception_reaches_the_trigger_level() {
    let mut uart = with_fifos();
    uart.write(IER, 0x01);
    for _ in 0..8 {
        uart.receive(b'x');
    }
    assert_eq!(uart.read(IIR_FCR), 0xc4);
}

#[test]
fn the_receiver_takes_one_byte_without_fifos_and_sixteen_with_them() {
    for (fcr, capacity) in [(0x00, 1), (0x01, 16)] {
        let mut uart = Uart::new();
        uart.write(IIR_FCR, fcr);
        assert_eq!((0..20).take_while(|&byte| uart.receive(byte)).count(), capacity);
        assert_eq!(uart.read(LSR), 0x61, "flow control: nothing was lost");
        assert_eq!(uart.read(DATA), 0);
        assert!(uart.receive(20));
    }
}

/// Before a guest has opened its port, too: a driver that only switches the FIFOs on finds what was typed so far.
#[test]
fn what_comes_before_the_port_is_opened_waits_there() {
    let mut uart = Uart::new();
    assert_eq!((b'a'..=b'z').take_while(|&byte| uart.receive(byte)).count(), 16);
    uart.write(IIR_FCR, 0x01);
    uart.write(IER, 0x01);
    assert!(uart.interrupt());
    assert_eq!((uart.read(DATA), uart.read(DATA)), (b'a', b'b'));
}

#[test]
fn switching_or_clearing_the_fifos_drops_what_they_hold() {
    for fcr in [0x00, 0x03] {
        let mut uart = with_fifos();
        uart.receive(b'x');
        uart.write(IIR_FCR, fcr);
        assert_eq!(uart.read(LSR), 0x60);
    }
}

#[test]
fn loopback_returns_bytes_and_reports_the_lost_one() {
    let mut uart = with_fifos();
    uart.write(MCR, 0x10);
    uart.write(IER, 0x05);
    assert!(!uart.receive(b'x'), "the outside is cut off");
    for byte in 0..17 {
        assert_eq!(uart.write(DATA, byte), None);
    }
    assert_eq!(uart.read(IIR_FCR), 0xc6, "the overrun comes first");
    assert_eq!(uart.read(LSR), 0x63);
    assert_eq!(uart.read(LSR), 0x61, "once");
    assert_eq!((0..16).map(|_| uart.read(DATA)).collect::<Vec<_>>(), (0..16).collect::<Vec<_>>());
}

/// As a 16450, and QEMU's port, do.
#[test]
fn without_fifos_the_newest_byte_in_loopback_is_kept() {
    let mut uart = Uart::new();
    uart.write(IIR_FCR, 0x00);
    uart.write(MCR, 0x10);
    for byte in [b'a', b'b', b'c'] {
        assert_eq!(uart.write(DATA, byte), None);
    }
    assert_eq!(uart.read(LSR), 0x63);
    assert_eq!((uart.read(DATA), uart.read(LSR)), (b'c', 0x60));
}

#[test]
fn loopback_connects_the_modem_lines_and_reports_changes() {
    let mut uart = Uart::new();
    uart.write(IER, 0x08);
    assert_eq!(uart.read(MSR), 0xb0);
    uart.write(MCR, 0x14); // OUT1 drives RI; CTS, DSR and DCD fall.
    assert!(uart.interrupt());
    assert_eq!(uart.read(IIR_FCR), 0xc0);
    assert_eq!(uart.read(MSR), 0x4b);
    assert!(!uart.interrupt());
    uart.write(MCR, 0x10);
    assert_eq!(uart.read(MSR), 0x04, "the trailing edge of RI");
}

proptest! {
    /// Bytes from outside reach the guest in order and whole, whatever else the guest reads meanwhile.
    #[test]
    fn received_bytes_keep_their_order(steps in prop::collection::vec((any::<bool>(), any::<u8>()), 0..200)) {
        let mut uart = with_fifos();
        uart.write(IER, 0x01);
        let mut expected = VecDeque::new();
        for (arrives, byte) in steps {
            if arrives {
                prop_assert_eq!(uart.receive(byte), expected.len() < 16);
                if expected.len() < 16 {
                    expected.push_back(byte);
                }
            } else if let Some(byte) = expected.pop_front() {
                prop_assert_eq!(uart.read(DATA), byte);
            }
            prop_assert_eq!(uart.interrupt(), !expected.is_empty());
            prop_assert_eq!(uart.read(LSR) & 1 != 0, !expected.is_empty());
        }
    }

    /// A guest that does anything at all meets no panic, an always empty transmitter, and an IIR that agrees with the line.
    #[test]
    fn no_guest_upsets_it(steps in prop::collection::vec((any::<bool>(), 0u8..10, any::<u8>()), 0..200)) {
        let mut uart = Uart::new();
        for (store, register, value) in steps {
            if store {
                uart.write(register, value);
            } else {
                uart.read(register);
            }
            uart.receive(value);
            let line = uart.interrupt();
            prop_assert_eq!(uart.read(IIR_FCR) & 1 == 0, line);
            prop_assert_eq!(uart.read(LSR) & 0x60, 0x60);
        }
    }
}
