//! The device tree that a guest finds: its vCPUs, its memory, its virtual devices, and devices of the board that it owns.
use alloc::{format, string::String, vec::Vec};

use ainori_devices::aia::Aia;
use ainori_devices::bus::{
    APLIC, FINISHER, GIVE_WAY, IMSIC_BASE, PCI_CONFIG, PCI_MEMORY, PLIC, UART, UART_SOURCE, VIRTIO,
    VIRTIO_SLOT_SIZE, VIRTIO_SLOTS, channel_source, virtio_source,
};
use ainori_devices::finisher;
use ainori_devices::imsic::IDENTITIES;
use ainori_devices::irqchip::Irqchip;
use ainori_limits::cause::interrupt::{MACHINE_EXTERNAL, SUPERVISOR_EXTERNAL};
use ainori_manifest::config::GUEST_MEMORY_BASE;
use ainori_manifest::layout::Layout;

use super::Guest;
use crate::arch::hart::Features;
use ainori_board::{Board, INTERRUPT_FILE, Interrupt, Isa, Range, Trigger};

const IRQCHIP_PHANDLE: u32 = 1;
const FINISHER_PHANDLE: u32 = 2;
const IMSIC_PHANDLE: u32 = 3;
const FIRST_CPU_PHANDLE: u32 = 4;
// The flattened format: tokens, and what its header holds.
const BEGIN_NODE: u32 = 1;
const END_NODE: u32 = 2;
const PROPERTY: u32 = 3;
const END: u32 = 9;
const MAGIC: usize = 0xd00d_feed;
const VERSION: usize = 17;
const OLDEST_READER: usize = 16;
/// Behind the header of ten words.
const RESERVED_AT: usize = 40;
/// Behind the one entry that ends the list of reserved memory.
const STRUCTURE_AT: usize = RESERVED_AT + 16;
/// Bytes that are left free in the tree.
const ROOM: usize = 4096;
/// Sources of a guest's interrupt controller; the board's own numbers are kept for passed-through devices.
const SOURCES: u32 = Irqchip::SOURCES as u32 - 1;
/// Frequency of the virtual serial port's clock: 115,200 baud with divisor 2, as on QEMU's virt machine.
const UART_CLOCK_HZ: u32 = 3_686_400;

/// A tree that is being written, flattened (devicetree specification 0.4, chapter 5). By no library: docs/decisions.md says why.
struct Tree {
    structure: Vec<u8>,
    /// The properties' names, each with a zero behind it.
    names: Vec<u8>,
}

impl Tree {
    fn new() -> Self {
        Self { structure: Vec::new(), names: Vec::new() }
    }

    #[inline(never)]
    fn word(&mut self, word: u32) {
        self.structure.extend_from_slice(&word.to_be_bytes());
    }

    #[inline(never)]
    fn aligned(&mut self, bytes: &[u8]) {
        self.structure.extend_from_slice(bytes);
        self.structure.resize(self.structure.len().next_multiple_of(4), 0);
    }

    #[inline(never)]
    fn begin(&mut self, name: &str) {
        self.word(BEGIN_NODE);
        self.aligned(&with_zero(name));
    }

    /// A node with a unit address.
    #[inline(never)]
    fn begin_at(&mut self, name: &str, address: u64) {
        self.begin(&format!("{name}@{address:x}"));
    }

    #[inline(never)]
    fn end(&mut self) {
        self.word(END_NODE);
    }

    #[inline(never)]
    fn property(&mut self, name: &str, value: &[u8]) {
        let name_at = self.name(name);
        self.word(PROPERTY);
        self.word(value.len() as u32);
        self.word(name_at);
        self.aligned(value);
    }

    /// Where a property's name is among the names.
    fn name(&mut self, name: &str) -> u32 {
        let mut at = 0;
        for known in self.names.split(|byte| *byte == 0) {
            if known == name.as_bytes() {
                return at;
            }
            at += known.len() as u32 + 1;
        }
        let at = self.names.len() as u32;
        self.names.extend_from_slice(&with_zero(name));
        at
    }

    #[inline(never)]
    fn flag(&mut self, name: &str) {
        self.property(name, &[]);
    }

    #[inline(never)]
    fn number(&mut self, name: &str, value: u32) {
        self.property(name, &value.to_be_bytes());
    }

    #[inline(never)]
    fn cells(&mut self, name: &str, values: &[u32]) {
        let mut bytes = Vec::new();
        for value in values {
            bytes.extend_from_slice(&value.to_be_bytes());
        }
        self.property(name, &bytes);
    }

    #[inline(never)]
    fn address(&mut self, name: &str, value: u64) {
        self.property(name, &value.to_be_bytes());
    }

    #[inline(never)]
    fn addresses(&mut self, name: &str, values: &[u64]) {
        let mut bytes = Vec::new();
        for value in values {
            bytes.extend_from_slice(&value.to_be_bytes());
        }
        self.property(name, &bytes);
    }

    #[inline(never)]
    fn text(&mut self, name: &str, value: &str) {
        self.property(name, &with_zero(value));
    }

    /// The whole: header, an empty list of reserved memory, nodes, names. Boot loaders add to the tree in place (U-Boot: arguments and
    /// the RAM disk), and rely on room behind its contents, as OpenSBI leaves some. The size that the header tells includes that.
    fn finish(mut self) -> Vec<u8> {
        self.word(END);
        let names_at = STRUCTURE_AT + self.structure.len();
        let size = names_at + self.names.len() + ROOM;
        let (structure_size, names_size) = (self.structure.len(), self.names.len());
        let header = [
            MAGIC,
            size,
            STRUCTURE_AT,
            names_at,
            RESERVED_AT,
            VERSION,
            OLDEST_READER,
            0,
            names_size,
            structure_size,
        ];
        let mut tree = Vec::with_capacity(size);
        for word in header {
            tree.extend_from_slice(&(word as u32).to_be_bytes());
        }
        tree.resize(STRUCTURE_AT, 0);
        tree.extend_from_slice(&self.structure);
        tree.extend_from_slice(&self.names);
        tree.resize(size, 0);
        tree
    }
}

fn with_zero(text: &str) -> Vec<u8> {
    let mut bytes = Vec::from(text.as_bytes());
    bytes.push(0);
    bytes
}

/// Makes the tree. Allocates: only at boot.
pub fn make(guest: &Guest, layout: &Layout, board: &Board, features: &Features) -> Vec<u8> {
    let mut tree = Tree::new();
    tree.begin("");
    tree.number("#address-cells", 2);
    tree.number("#size-cells", 2);
    tree.text("compatible", "riscv-virtio");
    tree.text("model", "ainori,guest");

    let console = format!("/soc/serial@{:x}", UART.base);
    if guest.space.translation.confines() {
        tree.begin("aliases");
        tree.text("serial0", &console);
        tree.end();
    }

    tree.begin("chosen");
    tree.text("bootargs", &guest.config.args);
    if guest.space.translation.confines() {
        tree.text("stdout-path", &console);
    }
    if let Some(seed) = &board.seed {
        tree.property("rng-seed", &stretched(seed, guest.index));
    }
    if let Some(initrd) = &layout.initrd {
        tree.address("linux,initrd-start", guest.space.translation.moved(initrd.start));
        tree.address("linux,initrd-end", guest.space.translation.moved(initrd.end));
    }
    tree.end();

    let memory_at = guest.space.translation.moved(GUEST_MEMORY_BASE);
    tree.begin_at("memory", memory_at);
    tree.text("device_type", "memory");
    tree.addresses("reg", &[memory_at, guest.config.memory]);
    tree.end();

    cpus(&mut tree, guest, board, features);
    if !guest.space.translation.confines() {
        // No access to a virtual device would come to the hypervisor. The SBI is left: timer, IPIs, console, end.
        tree.end();
        return tree.finish();
    }

    tree.begin("soc");
    tree.number("#address-cells", 2);
    tree.number("#size-cells", 2);
    tree.text("compatible", "simple-bus");
    tree.flag("ranges");
    let irqchip = &guest.devices.irqchip;
    match irqchip {
        Irqchip::Plic(_) => plic(&mut tree, guest),
        Irqchip::Aia(aia) => {
            if aia.file_bytes() > 0 {
                imsic(&mut tree, guest, aia);
            }
            aplic(&mut tree, guest, aia);
        }
    }
    serial(&mut tree, irqchip);
    virtio_slots(&mut tree, guest);
    finisher(&mut tree);
    give_way(&mut tree);
    #[cfg(feature = "watchdog")]
    if guest.watchdog.is_some() {
        watchdog(&mut tree);
    }
    if !guest.devices.channels.is_empty() {
        pci(&mut tree, guest);
    }
    for device in &guest.owned_devices {
        tree.begin(&device.name);
        tree.property("compatible", &device.compatible);
        let registers: Vec<u64> = device.registers.iter().flat_map(|r| [r.start, r.size()]).collect();
        tree.addresses("reg", &registers);
        if !device.interrupts.is_empty() {
            interrupts(&mut tree, irqchip, &device.interrupts);
        }
        tree.end();
    }
    tree.end();
    ending(&mut tree, "poweroff", "syscon-poweroff", finisher::POWER_OFF);
    ending(&mut tree, "reboot", "syscon-reboot", finisher::REBOOT);
    tree.end();
    tree.finish()
}

/// What the guest's harts have: what all guests are told of, and the registers of an interrupt file if there is one.
fn guest_isa(guest: &Guest, features: &Features) -> Isa {
    match &guest.devices.irqchip {
        irqchip if irqchip.has_files() => features.isa.with(INTERRUPT_FILE),
        _ => features.isa.clone(),
    }
}

fn cpus(tree: &mut Tree, guest: &Guest, board: &Board, features: &Features) {
    let mut isa = guest_isa(guest, features);
    guest.space.translation.extend(&mut isa);
    let mut extensions = String::new();
    for name in isa.names() {
        extensions.push_str(name);
        extensions.push('\0');
    }
    tree.begin("cpus");
    tree.number("#address-cells", 1);
    tree.number("#size-cells", 0);
    tree.number("timebase-frequency", board.timebase_hz as u32);
    for index in 0..guest.config.vcpus.len() as u32 {
        tree.begin_at("cpu", index.into());
        tree.text("device_type", "cpu");
        tree.number("reg", index);
        tree.text("status", "okay");
        tree.text("compatible", "riscv");
        tree.text("riscv,isa-base", "rv64i");
        tree.property("riscv,isa-extensions", extensions.as_bytes());
        tree.text("riscv,isa", &isa.string());
        tree.text("mmu-type", guest.space.translation.mmu(board));
        for (name, size) in &board.cache_blocks {
            tree.number(name, *size);
        }
        tree.begin("interrupt-controller");
        tree.number("#interrupt-cells", 1);
        tree.flag("interrupt-controller");
        tree.text("compatible", "riscv,cpu-intc");
        tree.number("phandle", FIRST_CPU_PHANDLE + index);
        tree.end();
        tree.end();
    }
    tree.end();
}

fn plic(tree: &mut Tree, guest: &Guest) {
    tree.begin_at("plic", PLIC.base);
    tree.property("compatible", b"sifive,plic-1.0.0\0riscv,plic0\0");
    tree.addresses("reg", &[PLIC.base, PLIC.size]);
    tree.number("riscv,ndev", SOURCES);
    tree.number("#interrupt-cells", 1);
    tree.number("#address-cells", 0);
    tree.flag("interrupt-controller");
    let contexts: Vec<u32> = (0..guest.config.vcpus.len() as u32)
        .flat_map(|i| [FIRST_CPU_PHANDLE + i, MACHINE_EXTERNAL, FIRST_CPU_PHANDLE + i, SUPERVISOR_EXTERNAL])
        .collect();
    tree.cells("interrupts-extended", &contexts);
    tree.number("phandle", IRQCHIP_PHANDLE);
    tree.end();
}

/// The domain that QEMU's `virt` has for supervisors. For a guest it is the root, and its harts' only one.
fn aplic(tree: &mut Tree, guest: &Guest, aia: &Aia) {
    tree.begin_at("interrupt-controller", APLIC.base);
    tree.text("compatible", "riscv,aplic");
    tree.addresses("reg", &[APLIC.base, APLIC.size]);
    tree.number("riscv,num-sources", SOURCES);
    tree.number("#interrupt-cells", 2);
    tree.number("#address-cells", 0);
    tree.flag("interrupt-controller");
    if aia.file_bytes() > 0 {
        tree.number("msi-parent", IMSIC_PHANDLE);
    } else {
        supervisors(tree, guest);
    }
    tree.number("phandle", IRQCHIP_PHANDLE);
    tree.end();
}

/// The interrupt files of its harts: a page each, one behind the other.
fn imsic(tree: &mut Tree, guest: &Guest, aia: &Aia) {
    tree.begin_at("interrupt-controller", IMSIC_BASE);
    tree.text("compatible", "riscv,imsics");
    tree.addresses("reg", &[IMSIC_BASE, aia.file_bytes()]);
    tree.number("riscv,num-ids", IDENTITIES);
    tree.number("#interrupt-cells", 0);
    tree.number("#msi-cells", 0);
    tree.flag("interrupt-controller");
    tree.flag("msi-controller");
    supervisors(tree, guest);
    tree.number("phandle", IMSIC_PHANDLE);
    tree.end();
}

/// Whom a controller interrupts: each hart's supervisor.
fn supervisors(tree: &mut Tree, guest: &Guest) {
    let harts: Vec<u32> = (0..guest.config.vcpus.len() as u32)
        .flat_map(|i| [FIRST_CPU_PHANDLE + i, SUPERVISOR_EXTERNAL])
        .collect();
    tree.cells("interrupts-extended", &harts);
}

/// How a device is wired to the controller.
fn interrupts(tree: &mut Tree, irqchip: &Irqchip, wires: &[Interrupt]) {
    tree.number("interrupt-parent", IRQCHIP_PHANDLE);
    let mut cells = Vec::new();
    wires.iter().for_each(|wire| push_wire(&mut cells, irqchip, *wire));
    tree.cells("interrupts", &cells);
}

/// How the controller names a wire. Only an APLIC is told how it asks.
fn push_wire(cells: &mut Vec<u32>, irqchip: &Irqchip, wire: Interrupt) {
    cells.push(wire.source);
    if let Irqchip::Aia(_) = irqchip {
        cells.push(wire.trigger as u32);
    }
}

/// As all virtual devices ask.
fn high(source: u32) -> [Interrupt; 1] {
    [Interrupt { source, trigger: Trigger::LevelHigh }]
}

fn serial(tree: &mut Tree, irqchip: &Irqchip) {
    tree.begin_at("serial", UART.base);
    tree.text("compatible", "ns16550a");
    tree.addresses("reg", &[UART.base, UART.size]);
    tree.number("clock-frequency", UART_CLOCK_HZ);
    interrupts(tree, irqchip, &high(UART_SOURCE));
    tree.end();
}

/// The empty ones. What is in others is a device of the board, as all that the guest owns.
fn virtio_slots(tree: &mut Tree, guest: &Guest) {
    for slot in 0..VIRTIO_SLOTS {
        let base = VIRTIO.base + u64::from(slot) * VIRTIO_SLOT_SIZE;
        let is_there = |range: &Range| range.start == base;
        if cfg!(feature = "shadow")
            && guest.owned_devices.iter().any(|device| device.registers.first().is_some_and(is_there))
        {
            continue;
        }
        tree.begin_at("virtio_mmio", base);
        tree.text("compatible", "virtio,mmio");
        tree.addresses("reg", &[base, VIRTIO_SLOT_SIZE]);
        interrupts(tree, &guest.devices.irqchip, &high(virtio_source(slot)));
        tree.end();
    }
}

/// The PCI bus with the ends of its channels (Open Firmware's PCI Bus Binding; Linux's host-generic-pci.yaml). All else of them is in their configuration
/// space.
fn pci(tree: &mut Tree, guest: &Guest) {
    /// In an address of the bus: memory of 32 bits that isn't prefetchable; where the number of a device is.
    const MEMORY_32: u32 = 2 << 24;
    const DEVICE_SHIFT: u32 = 11;
    /// The pin that all of them have.
    const INTA: u32 = 1;
    tree.begin_at("pci", PCI_CONFIG.base);
    tree.text("compatible", "pci-host-ecam-generic");
    tree.text("device_type", "pci");
    tree.addresses("reg", &[PCI_CONFIG.base, PCI_CONFIG.size]);
    tree.cells("bus-range", &[0, 0]);
    tree.number("#address-cells", 3);
    tree.number("#size-cells", 2);
    tree.number("#interrupt-cells", 1);
    let (base, size) = (PCI_MEMORY.base as u32, PCI_MEMORY.size as u32);
    tree.cells("ranges", &[MEMORY_32, 0, base, 0, base, 0, size]);
    tree.cells("interrupt-map-mask", &[0x1f << DEVICE_SHIFT, 0, 0, 7]);
    let mut map = Vec::new();
    for slot in 0..guest.devices.channels.len() {
        map.extend([(slot as u32) << DEVICE_SHIFT, 0, 0, INTA, IRQCHIP_PHANDLE]);
        let edge = Interrupt { source: channel_source(slot), trigger: Trigger::EdgeRising };
        push_wire(&mut map, &guest.devices.irqchip, edge);
    }
    tree.cells("interrupt-map", &map);
    tree.end();
}

fn finisher(tree: &mut Tree) {
    tree.begin_at("test", FINISHER.base);
    tree.property("compatible", b"sifive,test1\0sifive,test0\0syscon\0");
    tree.addresses("reg", &[FINISHER.base, FINISHER.size]);
    tree.number("phandle", FINISHER_PHANDLE);
    tree.end();
}

/// The word with which a program gives way.
fn give_way(tree: &mut Tree) {
    tree.begin_at("give-way", GIVE_WAY.base);
    tree.text("compatible", "ainori,give-way");
    tree.addresses("reg", &[GIVE_WAY.base, GIVE_WAY.size]);
    tree.end();
}

/// That of Allwinner's A31 (Linux's binding allwinner,sun4i-a10-wdt.yaml), without its clock and interrupt, which aren't driven.
#[cfg(feature = "watchdog")]
fn watchdog(tree: &mut Tree) {
    use ainori_devices::bus::WATCHDOG;
    tree.begin_at("watchdog", WATCHDOG.base);
    tree.text("compatible", "allwinner,sun6i-a31-wdt");
    tree.addresses("reg", &[WATCHDOG.base, WATCHDOG.size]);
    tree.end();
}

/// How the finisher is told to end the guest.
fn ending(tree: &mut Tree, name: &str, compatible: &str, value: u32) {
    tree.begin(name);
    tree.text("compatible", compatible);
    tree.number("regmap", FINISHER_PHANDLE);
    tree.number("offset", 0);
    tree.number("value", value);
    tree.end();
}

/// 64 bytes for the guest's random number generator: without them Linux waits for entropy long and often.
/// They come from the firmware's own seed, stretched by SplitMix64, and differ between guests. Where the firmware has none, guests get none: what
/// isn't random must not be taken for it.
fn stretched(seed: &[u8], guest: u8) -> [u8; 64] {
    let mut state = 0xa1_9041_u64 ^ u64::from(guest) << 56;
    for &byte in seed {
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
