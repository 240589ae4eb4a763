//! A guest that looks before it writes is made to wait, and told when there is room.
use ainori_devices::bus::Device;

use super::host::{TestHost, Wish};
use crate::bus::{load, store};
use crate::serial::OUTPUT;

const THR: u64 = 0;
const LSR: u64 = 5;
const THRE: u64 = 1 << 5;

fn status(host: &mut TestHost) -> u64 {
    load(host, Device::Uart, LSR, 1).expect("the port is free")
}

#[test]
fn a_full_port_is_busy_until_half_of_its_output_is_sent() {
    let mut host = TestHost::new(1);
    let mut written = 0;
    while status(&mut host) & THRE != 0 {
        store(&mut host, Device::Uart, THR, 1, b'.'.into()).expect("the port is free");
        written += 1;
    }
    assert!(written > OUTPUT - 64, "{written} bytes fit");
    assert_eq!(host.take().last(), Some(&Wish::RelieveConsole));
    assert_eq!(host.devices.serial.output.lost(), 0, "nothing is lost by who looks first");

    let mut sent = 0;
    while !host.devices.serial.has_awaited_room() {
        sent += host.send().len();
        assert!(sent < 2 * OUTPUT, "it is told in time");
    }
    assert!(host.devices.serial.output.room() >= OUTPUT / 2);
    assert_eq!(host.devices.tell_of_room(), Some(0), "no hart has enabled the interrupt");
    assert!(!host.devices.serial.has_awaited_room(), "it is told once");
    assert_ne!(status(&mut host) & THRE, 0);
}

#[test]
fn the_console_is_told_of_a_line_once() {
    let mut host = TestHost::new(1);
    let told: Vec<usize> = b"one line\nab"
        .iter()
        .map(|byte| {
            store(&mut host, Device::Uart, THR, 1, (*byte).into());
            host.take().len()
        })
        .collect();
    assert_eq!(
        told,
        [1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0],
        "its first byte, which nobody may be looking for, and its end"
    );
}

#[test]
fn a_reset_port_is_new() {
    let mut host = TestHost::new(1);
    store(&mut host, Device::Uart, 7, 1, 0x5a);
    assert_eq!(load(&mut host, Device::Uart, 7, 1), Some(0x5a));
    let devices = host.devices;
    assert_eq!(devices.with_port(|_| devices.reset_port()), Some((None, 0)), "not while somebody has it");
    assert_eq!(devices.reset_port(), Some(()));
    assert_eq!(load(&mut host, Device::Uart, 7, 1), Some(0));
}
