//! The boards that a manifest can name.
use super::Interrupts;

/// What is known of a board before it boots. The hypervisor itself learns its board from the device tree.
#[derive(Debug)]
pub struct BoardKind {
    /// Value of `machine` in the manifest.
    pub machine: &'static str,
    /// The harts of the smallest and of the largest variant, of those that have a supervisor mode.
    pub harts: core::ops::RangeInclusive<u32>,
    /// The id of the first of these; the others follow it. Harts before it are the firmware's.
    pub first_hart: u32,
    /// The interrupt controllers that it can have.
    pub interrupts: &'static [Interrupts],
    /// Its serial port is one that only a hypervisor built to drive more of them does.
    pub has_other_uart: bool,
    /// CPU model if the manifest names none.
    pub cpu: &'static str,
    /// Where its main memory begins.
    pub memory_base: u64,
    /// Devices in the board's device tree.
    pub devices: &'static [Device],
    /// Those of them that are places for virtio devices, which an emulator puts there: paths in the board's device tree, by number.
    pub virtio_slots: &'static [&'static str],
}

/// A device of a board.
#[derive(Debug)]
pub struct Device {
    /// Path in the device tree.
    pub path: &'static str,
    /// Who can own it.
    pub owner: Owner,
}

/// Who can own a device of a board.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// Any guest.
    AnyGuest,
    /// It reads and writes memory by itself (DMA), and nothing on the board confines it: a guest that is trusted with that.
    TrustedGuest,
    /// No guest: why.
    Nobody(&'static str),
}

/// The boards.
pub const BOARDS: &[BoardKind] = &[
    BoardKind {
        machine: "qemu-virt",
        harts: 1..=ainori_limits::Room::LARGE.harts as u32,
        first_hart: 0,
        interrupts: &[Interrupts::Plic, Interrupts::Aplic, Interrupts::Imsic],
        has_other_uart: false,
        cpu: "rv64",
        memory_base: 0x8000_0000,
        devices: QEMU_VIRT_DEVICES,
        virtio_slots: &QEMU_VIRT_SLOTS,
    },
    BoardKind {
        machine: "sifive_u",
        harts: 1..=4,
        first_hart: 1,
        interrupts: &[Interrupts::Plic],
        has_other_uart: true,
        cpu: "sifive-u54",
        memory_base: 0x8000_0000,
        devices: SIFIVE_U_DEVICES,
        virtio_slots: &[],
    },
];

/// What is known of the board of this name.
pub fn kind_of(machine: &str) -> Option<&'static BoardKind> {
    BOARDS.iter().find(|kind| kind.machine == machine)
}

const HYPERVISORS: Owner = Owner::Nobody("the hypervisor uses it itself");
const FIRMWARES: Owner = Owner::Nobody("the firmware uses it");
const DMA: Owner = Owner::Nobody(
    "it reads and writes memory by itself (DMA), and nothing on the board confines it to one guest",
);
const BOARDS_OWN: Owner = Owner::Nobody("it acts on the whole board");
const UNKNOWN: Owner =
    Owner::Nobody("the hypervisor doesn't know how to silence it when its guest is started again");

/// The places for virtio devices of QEMU's `virt`: number *n* is QEMU's `virtio-mmio-bus.n`.
const QEMU_VIRT_SLOTS: [&str; 8] = [
    "/soc/virtio_mmio@10001000",
    "/soc/virtio_mmio@10002000",
    "/soc/virtio_mmio@10003000",
    "/soc/virtio_mmio@10004000",
    "/soc/virtio_mmio@10005000",
    "/soc/virtio_mmio@10006000",
    "/soc/virtio_mmio@10007000",
    "/soc/virtio_mmio@10008000",
];

/// QEMU's `virt` as its device tree has it (`-M virt,aclint=on,dumpdtb=FILE`), with any of its interrupt controllers (`aia=aplic`, `aia=aplic-imsic`).
const QEMU_VIRT_DEVICES: &[Device] = &[
    Device { path: "/flash@20000000", owner: Owner::AnyGuest },
    Device { path: "/soc/rtc@101000", owner: Owner::AnyGuest },
    Device { path: "/soc/serial@10000000", owner: HYPERVISORS },
    Device { path: "/soc/plic@c000000", owner: HYPERVISORS },
    Device { path: "/soc/interrupt-controller@d000000", owner: HYPERVISORS },
    Device { path: "/soc/interrupt-controller@c000000", owner: FIRMWARES },
    Device { path: "/soc/sswi@2f00000", owner: HYPERVISORS },
    Device { path: "/soc/mswi@2000000", owner: FIRMWARES },
    Device { path: "/soc/mtimer@2004000", owner: FIRMWARES },
    Device { path: "/soc/test@100000", owner: FIRMWARES },
    Device { path: "/fw-cfg@10100000", owner: DMA },
    Device { path: "/soc/pci@30000000", owner: DMA },
    Device { path: QEMU_VIRT_SLOTS[0], owner: Owner::TrustedGuest },
    Device { path: QEMU_VIRT_SLOTS[1], owner: Owner::TrustedGuest },
    Device { path: QEMU_VIRT_SLOTS[2], owner: Owner::TrustedGuest },
    Device { path: QEMU_VIRT_SLOTS[3], owner: Owner::TrustedGuest },
    Device { path: QEMU_VIRT_SLOTS[4], owner: Owner::TrustedGuest },
    Device { path: QEMU_VIRT_SLOTS[5], owner: Owner::TrustedGuest },
    Device { path: QEMU_VIRT_SLOTS[6], owner: Owner::TrustedGuest },
    Device { path: QEMU_VIRT_SLOTS[7], owner: Owner::TrustedGuest },
];

/// QEMU's `sifive_u` (HiFive Unleashed) as its device tree has it (`-M sifive_u,dumpdtb=FILE`).
const SIFIVE_U_DEVICES: &[Device] = &[
    Device { path: "/soc/serial@10010000", owner: HYPERVISORS },
    Device { path: "/soc/interrupt-controller@c000000", owner: HYPERVISORS },
    Device { path: "/soc/clint@2000000", owner: FIRMWARES },
    Device { path: "/soc/dma@3000000", owner: DMA },
    Device { path: "/soc/ethernet@10090000", owner: DMA },
    Device { path: "/soc/cache-controller@2010000", owner: BOARDS_OWN },
    Device { path: "/soc/clock-controller@10000000", owner: BOARDS_OWN },
    // One of its lines resets the board.
    Device { path: "/soc/gpio@10060000", owner: BOARDS_OWN },
    Device { path: "/soc/otp@10070000", owner: BOARDS_OWN },
    Device { path: "/soc/serial@10011000", owner: UNKNOWN },
    Device { path: "/soc/spi@10040000", owner: UNKNOWN },
    Device { path: "/soc/spi@10050000", owner: UNKNOWN },
    Device { path: "/soc/pwm@10020000", owner: UNKNOWN },
    Device { path: "/soc/pwm@10021000", owner: UNKNOWN },
];
