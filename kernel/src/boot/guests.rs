//! The guests: their memory, their vCPUs, and what is in their memory at the start.
use alloc::{boxed::Box, format, string::String, vec::Vec};
use core::fmt;

use ainori_board::{Board, BoardHart, BoardIrqchip, Device, Range};
use ainori_devices::aia::Aia;
use ainori_devices::bus;
use ainori_devices::irqchip::Irqchip;
use ainori_devices::plic::Plic;
use ainori_guest::{Devices, serial::Serial};
use ainori_handover::Seats;
use ainori_limits::{MAX_GUESTS, PAGE};
use ainori_manifest::config::{self, System};
use ainori_manifest::layout::TREE_SIZE;
use dtoolkit::fdt::Fdt;

use super::channels::Channels;
use crate::arch::clear::Clearer;
use crate::arch::hart::Features;
use crate::cpu::SourceOwner;
use crate::guest::program::Program;
use crate::guest::space::Space;
use crate::guest::vcpu::Vcpu;
use crate::guest::{Guest, device_tree, loader, translation::GuestTranslation};
use crate::panic::refuse;

/// The guests in their places.
pub struct Placed {
    pub guests: Vec<Guest>,
    /// Their vCPUs, in the order of their numbers.
    pub vcpus: Vec<Vcpu>,
    /// By source of the board's controller: whose it is.
    pub source_owner: Vec<Option<SourceOwner>>,
}

/// Makes the guests, with their programs loaded, and their vCPUs. `harts` are the ids of the cores' harts.
pub fn place(
    tree: Fdt<'_>,
    board: &Board,
    harts: &[u64],
    system: &System,
    features: &Features,
    blob: &'static [u8],
) -> Placed {
    let sources = board.irqchip.map_or(0, |chip| chip.last_source() as usize + 1);
    let mut placed = Placed { guests: Vec::new(), vcpus: Vec::new(), source_owner: Vec::new() };
    placed.source_owner.resize_with(sources, || None);
    let clearer = Clearer::new(board.zeroing_block());
    let channels = Channels::new(system, &clearer);
    for (index, config) in system.guests.iter().enumerate().take(MAX_GUESTS) {
        let index = index as u8;
        let first = placed.vcpus.len();
        add_vcpus(index, config, board, harts, &mut placed.vcpus);
        let hart = &board.harts[placed.vcpus[first].home as usize];
        let wanted = Wanted { config, translation: GuestTranslation::of(blob, index) };
        let mut guest = with_space(tree, index, wanted, first as u8, board, hart, &channels);
        guest.program = load(&guest, board, features, blob, &clearer);
        for interrupt in guest.owned_devices.iter().flat_map(|device| &device.interrupts) {
            if let Some(target) = hart.irq_target
                && let Some(owner) = placed.source_owner.get_mut(interrupt.source as usize)
            {
                *owner = Some(SourceOwner::new(index, target, *interrupt));
            }
        }
        placed.guests.push(guest);
    }
    placed
}

fn add_vcpus(guest: u8, config: &config::Guest, board: &Board, harts: &[u64], to: &mut Vec<Vcpu>) {
    let seats = Box::leak(Box::new(Seats::new()));
    for (index, vcpu) in config.vcpus.iter().enumerate() {
        let Some(home) = harts.iter().position(|&id| id == u64::from(vcpu.home)) else {
            refuse(format_args!(
                "guest `{}` wants hart {}, which is not among this board's: {}",
                config.name,
                vcpu.home,
                board.hart_names()
            ))
        };
        let cores = (0..harts.len())
            .filter(|&core| vcpu.may_run_on(harts[core]))
            .fold(0, |set, core| set | 1 << core);
        to.push(Vcpu::new(guest, index as u32, home as u32, cores, seats));
    }
}

/// A guest as the system describes it.
struct Wanted<'a> {
    config: &'a config::Guest,
    translation: GuestTranslation,
}

/// Takes memory for a guest and builds its translation.
// Not within `place`, whose frame would be so large that each access to a local takes several instructions.
#[inline(never)]
fn with_space(
    tree: Fdt<'_>,
    index: u8,
    Wanted { config, translation }: Wanted<'_>,
    first_vcpu: u8,
    board: &Board,
    hart: &BoardHart,
    channels: &Channels<'_>,
) -> Guest {
    let name = &config.name;
    let Some(mut space) = Space::new(config.memory, translation) else {
        refuse(format_args!(
            "not enough memory on this board for guest `{name}` ({} MiB)",
            config.memory >> 20
        ))
    };
    let devices: Vec<Device> =
        config.devices.iter().map(|path| device(tree, board, hart, name, path)).collect();
    let (channels, peers) = channels.give(usize::from(index), &mut space);
    let can_reach = space.translation.confines();
    let irqchip = irqchip(board, config.vcpus.len(), &devices, channels.len(), can_reach);
    for (device, path) in devices.iter().zip(&config.devices) {
        for range in &device.registers {
            let pages = Range { start: range.start & !(PAGE - 1), end: range.end.next_multiple_of(PAGE) };
            if bus::is_used(&irqchip, pages.start, pages.end) || !space.add_device(pages) {
                refuse_device(name, path, format_args!("that address isn't free in its space"))
            }
            if let Some(other) = Board::neighbour(tree, path, pages) {
                refuse_device(name, path, format_args!("`{other}` has registers in the same page of 4 KiB"))
            }
        }
    }
    let virtual_devices = Devices { irqchip, serial: Serial::new(name), channels };
    super::clear_stack();
    let hz = board.timebase_hz;
    let mut guest = Guest::new(index, config.clone(), first_vcpu, space, devices, virtual_devices, hz);
    guest.peers = peers;
    guest
}

/// A guest's interrupt controller: of the board's kind, as drivers of devices that it owns then find there what they know from the board.
// As above.
#[inline(never)]
fn irqchip(board: &Board, harts: usize, owned: &[Device], channels: usize, can_reach: bool) -> Irqchip {
    // Where the guest's accesses don't come here, it is the simplest.
    let aia = match board.irqchip.filter(|_| can_reach) {
        None | Some(BoardIrqchip::Plic { .. }) => return Irqchip::Plic(Plic::new()),
        Some(BoardIrqchip::Aplic { .. }) => Aia::direct(),
        Some(BoardIrqchip::Imsic { .. }) => Aia::with_files(harts),
    };
    // Of the other virtual devices none is more than an empty slot.
    aia.add(bus::UART_SOURCE, false);
    (0..channels).for_each(|slot| aia.add(bus::channel_source(slot), false));
    let relayed = owned.iter().flat_map(|device| &device.interrupts);
    relayed.for_each(|interrupt| aia.add(interrupt.source, true));
    Irqchip::Aia(aia)
}

/// A device for a guest whose interrupts this hart takes.
fn device(tree: Fdt<'_>, board: &Board, hart: &BoardHart, guest: &str, path: &str) -> Device {
    let device = board
        .device(tree, path)
        .unwrap_or_else(|| refuse_device(guest, path, format_args!("this board doesn't have it")));
    // First, as nobody knows what numbers mean to a controller that there is no driver for.
    if hart.irq_target.is_none() && !device.interrupts.is_empty() {
        refuse_device(guest, path, format_args!("no interrupts of devices reach its hart {}", hart.id))
    }
    let mut sources = device.interrupts.iter().map(|interrupt| interrupt.source);
    if let Some(source) = sources.find(|source| !bus::is_free_source(*source)) {
        refuse_device(guest, path, format_args!("interrupt {source} isn't free in the guest's controller"))
    }
    // Whoever ran before the hypervisor may have left it at work in what becomes guests' memory.
    #[cfg(feature = "shadow")]
    crate::chip::quiet::silence_at_boot(&device);
    device
}

#[cold]
#[inline(never)]
fn refuse_device(guest: &str, path: &str, why: fmt::Arguments<'_>) -> ! {
    refuse(format_args!("guest `{guest}` can't own device `{path}`: {why}"))
}

// As `with_space`.
#[inline(never)]
fn load(
    guest: &Guest,
    board: &Board,
    features: &Features,
    blob: &'static [u8],
    clearer: &Clearer,
) -> Program {
    let fail = |why: String| -> ! { refuse(format_args!("guest `{}`: {why}", guest.config.name)) };
    let (layout, mut parts) = loader::load(guest, blob, clearer)
        .unwrap_or_else(|| fail("its memory is too small for its image, RAM disk and device tree".into()));
    let tree = device_tree::make(guest, &layout, board, features);
    let tree = Some(tree).filter(|tree| tree.len() as u64 <= TREE_SIZE);
    let tree = tree.and_then(|tree| loader::write(guest, layout.tree.start, tree.leak()));
    parts.push(tree.unwrap_or_else(|| fail(format!("its device tree is larger than {TREE_SIZE} bytes"))));
    let [entry, tree] =
        [guest.config.image.entry, layout.tree.start].map(|at| guest.space.translation.moved(at));
    Program { entry, tree, parts }
}
