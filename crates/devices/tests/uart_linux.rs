//! What Linux's 8250 driver probes for, step by step (drivers/tty/serial/8250/8250_port.c: `autoconfig`,
//! `autoconfig_16550a`, `size_fifo`, `serial8250_do_startup`): it must find a plain 16550A whose interrupts work.
#![cfg(not(loom))]

use ainori_devices::uart::Uart;

const RX_TX_DLL: u8 = 0;
const IER_DLM: u8 = 1;
/// Also EFR and EXCR1 of other chips, which the driver looks for.
const IIR_FCR: u8 = 2;
const LCR: u8 = 3;
const MCR: u8 = 4;
const LSR: u8 = 5;
const MSR: u8 = 6;

const IIR_NO_INTERRUPT: u8 = 0x01;
const LSR_DATA_READY: u8 = 0x01;
const MCR_LOOP: u8 = 0x10;
const DLAB: u8 = 0x80;

#[test]
fn the_interrupt_enable_register_exists() {
    let mut uart = Uart::new();
    uart.write(IER_DLM, 0);
    assert_eq!(uart.read(IER_DLM) & 0x0f, 0);
    uart.write(IER_DLM, 0x0f);
    assert_eq!(uart.read(IER_DLM) & 0x0f, 0x0f);
}

#[test]
fn the_loopback_test_finds_a_port() {
    let mut uart = Uart::new();
    uart.write(MCR, MCR_LOOP | 0x0a);
    assert_eq!(uart.read(MSR) & 0xf0, 0x90);
}

#[test]
fn the_chip_is_a_16550a() {
    let mut uart = Uart::new();
    uart.write(LCR, 0xbf);
    uart.write(IIR_FCR, 0);
    uart.write(LCR, 0);
    uart.write(IIR_FCR, 0x01);
    assert_eq!(uart.read(IIR_FCR) >> 6, 3);
}

#[test]
fn the_chip_is_none_of_the_16550a_s_relatives() {
    let mut uart = Uart::new();
    uart.write(IIR_FCR, 0x01);
    // ST16C650 and kin have an extended features register (EFR), at reset zero, behind one of two values of LCR.
    for mode in [DLAB, 0xbf] {
        uart.write(LCR, mode);
        assert_ne!(uart.read(IIR_FCR), 0);
    }
    // National's SuperIO chips show MCR's loop bit in EXCR1.
    uart.write(LCR, 0);
    let mcr = uart.read(MCR);
    uart.write(MCR, mcr ^ MCR_LOOP);
    uart.write(LCR, 0xe0);
    let excr1 = uart.read(IIR_FCR);
    uart.write(LCR, 0);
    uart.write(MCR, mcr);
    assert_eq!((excr1 ^ mcr) & MCR_LOOP, 0);
    // The TI16750 has a FIFO of 64 bytes, which it admits in bit 5 of IIR.
    for mode in [0, DLAB] {
        uart.write(LCR, mode);
        uart.write(IIR_FCR, 0x21);
        assert_eq!(uart.read(IIR_FCR) >> 5, 6);
    }
    // The XScale's UART has a unit enable bit in IER.
    uart.write(LCR, 0);
    uart.write(IER_DLM, 0x40);
    assert_eq!(uart.read(IER_DLM) & 0x40, 0);
}

#[test]
fn the_fifo_holds_sixteen_bytes() {
    let mut uart = Uart::new();
    let (old_fcr, old_mcr) = (uart.read(IIR_FCR), uart.read(MCR));
    uart.write(IIR_FCR, 0x07);
    uart.write(MCR, MCR_LOOP);
    uart.write(LCR, DLAB);
    uart.write(RX_TX_DLL, 1);
    uart.write(IER_DLM, 0);
    uart.write(LCR, 0x03);
    for byte in 0..=255 {
        assert_eq!(uart.write(RX_TX_DLL, byte), None, "probing prints nothing");
    }
    let mut count = 0;
    while uart.read(LSR) & LSR_DATA_READY != 0 {
        uart.read(RX_TX_DLL);
        count += 1;
    }
    assert_eq!(count, 16);
    uart.write(IIR_FCR, old_fcr);
    uart.write(MCR, old_mcr);
    assert!(!uart.interrupt());
}

/// Else the driver sets UART_BUG_THRE and polls with a timer.
#[test]
fn the_transmitter_interrupt_is_raised_again_when_it_is_enabled_again() {
    let mut uart = Uart::new();
    for _ in 0..2 {
        uart.write(IER_DLM, 0x02);
        assert_eq!(uart.read(IIR_FCR) & IIR_NO_INTERRUPT, 0);
        uart.write(IER_DLM, 0);
    }
}

/// Else the driver sets UART_BUG_TXEN and starts each transmission itself.
#[test]
fn enabling_the_transmitter_interrupt_raises_it() {
    let mut uart = Uart::new();
    uart.write(IER_DLM, 0x02);
    assert_eq!(uart.read(LSR), 0x60);
    assert_eq!(uart.read(IIR_FCR) & IIR_NO_INTERRUPT, 0);
}
