//! The device tree that a guest finds: its vCPUs, its memory, its virtual devices, and devices of the board that it owns.
use alloc::{format, string::String, vec::Vec};

use ainori_devices::bus::{FINISHER, PLIC, UART, UART_SOURCE, VIRTIO, VIRTIO_SLOT_SIZE, VIRTIO_SLOTS};
use ainori_devices::finisher;
use ainori_manifest::config::GUEST_MEMORY_BASE;
use ainori_manifest::layout::Layout;
use vm_fdt::{Error, FdtWriter};

use super::Guest;
use crate::arch::hart::Features;
use crate::chip::Board;

const PLIC_PHANDLE: u32 = 1;
const FINISHER_PHANDLE: u32 = 2;
const FIRST_CPU_PHANDLE: u32 = 3;
const SUPERVISOR_EXTERNAL: u32 = 9;
const MACHINE_EXTERNAL: u32 = 11;
/// Bytes that are left free in the tree.
const ROOM: usize = 4096;
/// Sources of a guest's interrupt controller; the board's own numbers are kept for passed-through devices.
const SOURCES: u32 = 95;
/// Frequency of the virtual serial port's clock: 115,200 baud with divisor 2, as on QEMU's virt machine.
const UART_CLOCK_HZ: u32 = 3_686_400;

/// Makes the tree. Allocates: only at boot.
///
/// # Errors
/// None that a checked manifest can cause (the writer refuses e.g. names with zero bytes).
pub fn make(guest: &Guest, layout: &Layout, board: &Board, features: &Features) -> Result<Vec<u8>, Error> {
    let mut fdt = FdtWriter::new()?;
    let root = fdt.begin_node("")?;
    fdt.property_u32("#address-cells", 2)?;
    fdt.property_u32("#size-cells", 2)?;
    fdt.property_string("compatible", "riscv-virtio")?;
    fdt.property_string("model", "ainori,guest")?;

    let chosen = fdt.begin_node("chosen")?;
    fdt.property_string("bootargs", &guest.config.args)?;
    fdt.property_string("stdout-path", &format!("/soc/serial@{:x}", UART.base))?;
    fdt.property("rng-seed", &seed(board, guest.index))?;
    if let Some(initrd) = &layout.initrd {
        fdt.property_u64("linux,initrd-start", initrd.start)?;
        fdt.property_u64("linux,initrd-end", initrd.end)?;
    }
    fdt.end_node(chosen)?;

    let memory = fdt.begin_node(&format!("memory@{GUEST_MEMORY_BASE:x}"))?;
    fdt.property_string("device_type", "memory")?;
    fdt.property_array_u64("reg", &[GUEST_MEMORY_BASE, guest.config.memory])?;
    fdt.end_node(memory)?;

    cpus(&mut fdt, guest, board, features)?;

    let soc = fdt.begin_node("soc")?;
    fdt.property_u32("#address-cells", 2)?;
    fdt.property_u32("#size-cells", 2)?;
    fdt.property_string("compatible", "simple-bus")?;
    fdt.property_null("ranges")?;
    plic(&mut fdt, guest)?;
    serial(&mut fdt)?;
    virtio_slots(&mut fdt)?;
    finisher(&mut fdt)?;
    for device in &guest.devices {
        let node = fdt.begin_node(&device.name)?;
        fdt.property("compatible", &device.compatible)?;
        let registers: Vec<u64> = device.registers.iter().flat_map(|r| [r.start, r.size()]).collect();
        fdt.property_array_u64("reg", &registers)?;
        if !device.interrupts.is_empty() {
            fdt.property_u32("interrupt-parent", PLIC_PHANDLE)?;
            fdt.property_array_u32("interrupts", &device.interrupts)?;
        }
        fdt.end_node(node)?;
    }
    fdt.end_node(soc)?;
    ending(&mut fdt, "poweroff", "syscon-poweroff", finisher::POWER_OFF)?;
    ending(&mut fdt, "reboot", "syscon-reboot", finisher::REBOOT)?;
    fdt.end_node(root)?;
    Ok(with_room(fdt.finish()?))
}

/// Boot loaders add to the tree in place (U-Boot: arguments and the RAM disk), and rely on room behind its contents, as OpenSBI leaves
/// some. The size that its header tells (big-endian, at byte 4; devicetree specification 0.4, 5.2) includes that.
fn with_room(mut tree: Vec<u8>) -> Vec<u8> {
    tree.resize(tree.len() + ROOM, 0);
    let size = (tree.len() as u32).to_be_bytes();
    tree[4..8].copy_from_slice(&size);
    tree
}

fn cpus(fdt: &mut FdtWriter, guest: &Guest, board: &Board, features: &Features) -> Result<(), Error> {
    let mut extensions = String::new();
    for name in features.isa.names() {
        extensions.push_str(name);
        extensions.push('\0');
    }
    let cpus = fdt.begin_node("cpus")?;
    fdt.property_u32("#address-cells", 1)?;
    fdt.property_u32("#size-cells", 0)?;
    fdt.property_u32("timebase-frequency", board.timebase_hz as u32)?;
    for index in 0..guest.config.vcpus.len() as u32 {
        let cpu = fdt.begin_node(&format!("cpu@{index:x}"))?;
        fdt.property_string("device_type", "cpu")?;
        fdt.property_u32("reg", index)?;
        fdt.property_string("status", "okay")?;
        fdt.property_string("compatible", "riscv")?;
        fdt.property_string("riscv,isa-base", "rv64i")?;
        fdt.property("riscv,isa-extensions", extensions.as_bytes())?;
        fdt.property_string("riscv,isa", &features.isa.string())?;
        fdt.property_string("mmu-type", &board.mmu)?;
        for (name, size) in &board.cache_blocks {
            fdt.property_u32(name, *size)?;
        }
        let controller = fdt.begin_node("interrupt-controller")?;
        fdt.property_u32("#interrupt-cells", 1)?;
        fdt.property_null("interrupt-controller")?;
        fdt.property_string("compatible", "riscv,cpu-intc")?;
        fdt.property_u32("phandle", FIRST_CPU_PHANDLE + index)?;
        fdt.end_node(controller)?;
        fdt.end_node(cpu)?;
    }
    fdt.end_node(cpus)
}

fn plic(fdt: &mut FdtWriter, guest: &Guest) -> Result<(), Error> {
    let node = fdt.begin_node(&format!("plic@{:x}", PLIC.base))?;
    fdt.property("compatible", b"sifive,plic-1.0.0\0riscv,plic0\0")?;
    fdt.property_array_u64("reg", &[PLIC.base, PLIC.size])?;
    fdt.property_u32("riscv,ndev", SOURCES)?;
    fdt.property_u32("#interrupt-cells", 1)?;
    fdt.property_u32("#address-cells", 0)?;
    fdt.property_null("interrupt-controller")?;
    let contexts: Vec<u32> = (0..guest.config.vcpus.len() as u32)
        .flat_map(|i| [FIRST_CPU_PHANDLE + i, MACHINE_EXTERNAL, FIRST_CPU_PHANDLE + i, SUPERVISOR_EXTERNAL])
        .collect();
    fdt.property_array_u32("interrupts-extended", &contexts)?;
    fdt.property_u32("phandle", PLIC_PHANDLE)?;
    fdt.end_node(node)
}

fn serial(fdt: &mut FdtWriter) -> Result<(), Error> {
    let node = fdt.begin_node(&format!("serial@{:x}", UART.base))?;
    fdt.property_string("compatible", "ns16550a")?;
    fdt.property_array_u64("reg", &[UART.base, UART.size])?;
    fdt.property_u32("clock-frequency", UART_CLOCK_HZ)?;
    fdt.property_u32("interrupt-parent", PLIC_PHANDLE)?;
    fdt.property_u32("interrupts", UART_SOURCE)?;
    fdt.end_node(node)
}

fn virtio_slots(fdt: &mut FdtWriter) -> Result<(), Error> {
    for slot in 0..VIRTIO_SLOTS {
        let base = VIRTIO.base + u64::from(slot) * VIRTIO_SLOT_SIZE;
        let node = fdt.begin_node(&format!("virtio_mmio@{base:x}"))?;
        fdt.property_string("compatible", "virtio,mmio")?;
        fdt.property_array_u64("reg", &[base, VIRTIO_SLOT_SIZE])?;
        fdt.property_u32("interrupt-parent", PLIC_PHANDLE)?;
        fdt.property_u32("interrupts", slot + 1)?;
        fdt.end_node(node)?;
    }
    Ok(())
}

fn finisher(fdt: &mut FdtWriter) -> Result<(), Error> {
    let node = fdt.begin_node(&format!("test@{:x}", FINISHER.base))?;
    fdt.property("compatible", b"sifive,test1\0sifive,test0\0syscon\0")?;
    fdt.property_array_u64("reg", &[FINISHER.base, FINISHER.size])?;
    fdt.property_u32("phandle", FINISHER_PHANDLE)?;
    fdt.end_node(node)
}

/// How the finisher is told to end the guest.
fn ending(fdt: &mut FdtWriter, name: &str, compatible: &str, value: u32) -> Result<(), Error> {
    let node = fdt.begin_node(name)?;
    fdt.property_string("compatible", compatible)?;
    fdt.property_u32("regmap", FINISHER_PHANDLE)?;
    fdt.property_u32("offset", 0)?;
    fdt.property_u32("value", value)?;
    fdt.end_node(node)
}

/// 64 bytes for the guest's random number generator: without them Linux waits for entropy long and often.
/// They come from the firmware's own seed, stretched by SplitMix64, and differ between guests.
fn seed(board: &Board, guest: u8) -> [u8; 64] {
    let mut state = 0xa1_9041_u64 ^ u64::from(guest) << 56;
    for &byte in board.seed.iter().flatten() {
        state = split_mix(&mut state) ^ u64::from(byte);
    }
    let mut bytes = [0; 64];
    for chunk in bytes.chunks_exact_mut(8) {
        chunk.copy_from_slice(&split_mix(&mut state).to_le_bytes());
    }
    bytes
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}
