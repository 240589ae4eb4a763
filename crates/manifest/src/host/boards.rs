//! The boards that a manifest can name.

/// What is known of a board before it boots. The hypervisor itself learns its board from the device tree.
#[derive(Debug)]
pub struct BoardKind {
    /// Value of `machine` in the manifest.
    pub machine: &'static str,
    /// The harts of the smallest and of the largest variant. Hart ids count from 0.
    pub harts: core::ops::RangeInclusive<u32>,
    /// CPU model if the manifest names none.
    pub cpu: &'static str,
    /// Devices in the board's device tree.
    pub devices: &'static [Device],
}

/// A device of a board.
#[derive(Debug)]
pub struct Device {
    /// Path in the device tree.
    pub path: &'static str,
    /// Why no guest can own it, or `None` if one can.
    pub refused: Option<&'static str>,
}

/// The boards.
pub const BOARDS: &[BoardKind] = &[BoardKind {
    machine: "qemu-virt",
    harts: 1..=ainori_limits::Room::LARGE.harts as u32,
    cpu: "rv64",
    devices: QEMU_VIRT_DEVICES,
}];

const HYPERVISORS: Option<&str> = Some("the hypervisor uses it itself");
const FIRMWARES: Option<&str> = Some("the firmware uses it");
const DMA: Option<&str> =
    Some("it reads and writes memory by itself (DMA), and nothing on the board confines it to one guest");

/// QEMU's `virt` as its device tree has it (`-M virt,aclint=on,dumpdtb=FILE`), with any of its interrupt controllers (`aia=aplic`, `aia=aplic-imsic`).
const QEMU_VIRT_DEVICES: &[Device] = &[
    Device { path: "/flash@20000000", refused: None },
    Device { path: "/soc/rtc@101000", refused: None },
    Device { path: "/soc/serial@10000000", refused: HYPERVISORS },
    Device { path: "/soc/plic@c000000", refused: HYPERVISORS },
    Device { path: "/soc/interrupt-controller@d000000", refused: HYPERVISORS },
    Device { path: "/soc/interrupt-controller@c000000", refused: FIRMWARES },
    Device { path: "/soc/sswi@2f00000", refused: HYPERVISORS },
    Device { path: "/soc/mswi@2000000", refused: FIRMWARES },
    Device { path: "/soc/mtimer@2004000", refused: FIRMWARES },
    Device { path: "/soc/test@100000", refused: FIRMWARES },
    Device { path: "/fw-cfg@10100000", refused: DMA },
    Device { path: "/soc/pci@30000000", refused: DMA },
    Device { path: "/soc/virtio_mmio@10001000", refused: DMA },
    Device { path: "/soc/virtio_mmio@10002000", refused: DMA },
    Device { path: "/soc/virtio_mmio@10003000", refused: DMA },
    Device { path: "/soc/virtio_mmio@10004000", refused: DMA },
    Device { path: "/soc/virtio_mmio@10005000", refused: DMA },
    Device { path: "/soc/virtio_mmio@10006000", refused: DMA },
    Device { path: "/soc/virtio_mmio@10007000", refused: DMA },
    Device { path: "/soc/virtio_mmio@10008000", refused: DMA },
];
