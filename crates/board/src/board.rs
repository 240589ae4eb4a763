//! What the board is, learnt from the device tree that the firmware hands over.
use ainori_limits::cause::interrupt::SUPERVISOR_SOFTWARE;
use alloc::{format, string::String, vec::Vec};
use core::num::NonZeroU64;
use dtoolkit::Node;
use dtoolkit::error::FdtParseError;
use dtoolkit::fdt::{Fdt, FdtNode};

use crate::irqchip::{BoardIrqchip, Interrupt, Part, interrupts};
use crate::tree::{
    AllNodes, base, cell, cells, compatible, find, is_compatible, is_on, registers, targets, text, value,
};
use crate::{Isa, Range, Ranges};

/// Registers of a 16550.
const UART_REGISTERS: u64 = 8;

/// One hart that can run the hypervisor.
#[derive(Debug, Clone)]
pub struct BoardHart {
    /// Hart id.
    pub id: u64,
    /// What its supervisor's interrupts are sent to, in the numbering of the interrupt controller (PLIC: the context; APLIC: the hart index).
    pub irq_target: Option<u32>,
    /// Where messages for its supervisor are written to, if the controller sends such ([`BoardIrqchip::Imsic`]).
    pub messages: Option<NonZeroU64>,
    /// Its register of the supervisor software-interrupt device.
    pub sswi_index: Option<u32>,
}

/// A serial port that the kernel's `chip/uart.rs` can drive: a 16550A whose registers are a byte each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BoardUart {
    /// Address of its first register.
    pub base: u64,
    /// Its registers are `1 << shift` bytes apart.
    pub shift: usize,
    /// Its source of the interrupt controller.
    pub interrupt: Interrupt,
}

/// A device as the tree describes it.
#[derive(Debug, Clone)]
pub struct Device {
    /// Node name, e.g. `rtc@101000`.
    pub name: String,
    /// `compatible`, as it stands.
    pub compatible: Vec<u8>,
    /// Register ranges.
    pub registers: Vec<Range>,
    /// Sources of the interrupt controller.
    pub interrupts: Vec<Interrupt>,
}

/// A hart's properties with the block sizes of its cache operations (Zicbom, Zicboz, Zicbop).
const BLOCK_SIZES: [&str; 3] = ["riscv,cbom-block-size", "riscv,cboz-block-size", "riscv,cbop-block-size"];

/// The board.
#[derive(Debug, Clone)]
pub struct Board {
    /// `model`.
    pub model: String,
    /// Main memory.
    pub memory: Vec<Range>,
    /// Harts that are switched on, by id.
    pub harts: Vec<BoardHart>,
    /// Extensions that all harts have.
    pub isa: Isa,
    /// `mmu-type` of the harts, e.g. `riscv,sv48`: the least of them.
    pub mmu: String,
    /// Block sizes of the cache operations by property name (`riscv,cboz-block-size`, ...): those that all harts have in common.
    pub cache_blocks: Vec<(String, u32)>,
    /// Ticks of `time` per second.
    pub timebase_hz: u64,
    /// The interrupt controller.
    pub irqchip: Option<BoardIrqchip>,
    /// Base of the supervisor software-interrupt device (ACLINT).
    pub sswi: Option<u64>,
    /// The console.
    pub uart: Option<BoardUart>,
    /// Seed of random numbers, if the firmware gave one.
    pub seed: Option<Vec<u8>>,
}

/// Why a board can't be used.
#[derive(Debug)]
pub enum Error {
    /// The device tree can't be read.
    Tree(FdtParseError),
    /// Something is missing in it.
    Missing(&'static str),
    /// It has more ranges of memory, or of reserved memory, than [`Ranges::MOST`].
    TooManyRanges,
}

impl core::fmt::Display for Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Tree(error) => write!(f, "the firmware's device tree can't be read ({error:?})"),
            Self::Missing(what) => write!(f, "the firmware's device tree has no {what}"),
            Self::TooManyRanges => write!(
                f,
                "the firmware's device tree has more than {} ranges of memory, or reserves more than so many",
                Ranges::MOST
            ),
        }
    }
}

#[inline(never)]
fn add(range: Range, to: &mut Ranges) -> Result<(), Error> {
    if to.add(range) { Ok(()) } else { Err(Error::TooManyRanges) }
}

#[inline(never)]
fn add_registers(node: &FdtNode<'_>, to: &mut Ranges) -> Result<(), Error> {
    registers(node).try_for_each(|range| add(range, to))
}

/// The serial port that this node is, as [`Board::uart`] has it. `None` if it isn't on, or isn't one that the kernel's `chip/uart.rs` can drive: a 16550
/// whose registers are a byte each.
#[inline(never)]
fn uart(node: FdtNode<'_>, irqchip: Option<BoardIrqchip>) -> Option<BoardUart> {
    let number = |name, default| cell(&node, name).unwrap_or(default);
    let registers = registers(&node).next()?;
    let (offset, shift) = (u64::from(number("reg-offset", 0)), number("reg-shift", 0));
    let has_all = registers.size().checked_sub(offset)?.checked_shr(shift)? >= UART_REGISTERS;
    let can_be_driven = is_on(&node)
        && is_compatible(&node, &["ns16550a", "ns16550", "snps,dw-apb-uart"])
        && number("reg-io-width", 1) == 1
        && has_all;
    can_be_driven.then_some(BoardUart {
        base: registers.start + offset,
        shift: shift as usize,
        interrupt: interrupts(&node, irqchip).next()?,
    })
}

impl Board {
    /// Makes it a board without an interrupt controller.
    pub fn disregard_irqchip(&mut self) {
        self.irqchip = None;
        for hart in &mut self.harts {
            (hart.irq_target, hart.messages) = (None, None);
        }
    }

    /// Memory and reserved memory only: what the allocator needs before anything can be allocated.
    ///
    /// # Errors
    /// [`Error::TooManyRanges`].
    pub fn memory_of(tree: Fdt<'_>) -> Result<Ranges, Error> {
        let mut ranges = Ranges::new();
        for node in AllNodes::of(tree) {
            if text(&node, "device_type") == Some("memory") {
                add_registers(&node, &mut ranges)?;
            }
        }
        Ok(ranges)
    }

    /// Memory that the tree says is not free: `/reserved-memory` and the memory reservation block.
    ///
    /// # Errors
    /// [`Error::TooManyRanges`].
    pub fn reserved_of(tree: Fdt<'_>) -> Result<Ranges, Error> {
        let mut ranges = Ranges::new();
        if let Some(reserved) = tree.find_node("/reserved-memory") {
            for node in reserved.children() {
                add_registers(&node, &mut ranges)?;
            }
        }
        for block in tree.memory_reservations() {
            let start = block.address();
            add(Range { start, end: start.saturating_add(block.size()) }, &mut ranges)?;
        }
        Ok(ranges)
    }

    /// Reads the whole tree.
    ///
    /// # Errors
    /// If something that the hypervisor can't do without is missing.
    pub fn read(tree: Fdt<'_>) -> Result<Self, Error> {
        let cpus = tree.find_node("/cpus").ok_or(Error::Missing("/cpus"))?;
        let part = Part::find(tree);
        let sswi_node = compatible(tree, &["riscv,aclint-sswi"]);
        let bells = sswi_node.map_or_else(Vec::new, |n| targets(&n));

        let mut harts = Vec::new();
        let mut isa: Option<Isa> = None;
        let mut mmu: Option<&str> = None;
        let mut cache_blocks: Option<[Option<u32>; BLOCK_SIZES.len()]> = None;
        for node in cpus.children().filter(|node| text(node, "device_type") == Some("cpu")) {
            if !is_on(&node) {
                continue;
            }
            let id = value(&node, "reg")
                .and_then(|value| cells(value).last())
                .ok_or(Error::Missing("reg of a cpu"))?;
            let own = Isa::parse(value(&node, "riscv,isa-extensions"), text(&node, "riscv,isa"));
            isa = Some(isa.map_or_else(|| own.clone(), |common| common.common(&own)));
            // What harts differ in, guests get as the hart has it that can do least: each runs on any of them. (`riscv,sv39` is the first by name, too.)
            let own_mmu = text(&node, "mmu-type").unwrap_or("riscv,sv39");
            mmu = Some(mmu.map_or(own_mmu, |common| common.min(own_mmu)));
            let own_blocks = BLOCK_SIZES.map(|name| cell(&node, name));
            let common = cache_blocks.get_or_insert(own_blocks);
            for (common, own) in common.iter_mut().zip(own_blocks) {
                *common = common.filter(|_| *common == own);
            }
            let phandle = node.children().find_map(|child| cell(&child, "phandle"));
            let wire = part.as_ref().and_then(|part| part.wire(phandle?));
            let bell = bells.iter().position(|bell| Some(*bell) == phandle.zip(Some(SUPERVISOR_SOFTWARE)));
            let id = u64::from(id);
            let place = harts.iter().position(|hart: &BoardHart| hart.id > id).unwrap_or(harts.len());
            harts.push(BoardHart {
                id,
                irq_target: wire.map(|wire| wire.target),
                messages: wire.and_then(|wire| wire.messages),
                sswi_index: bell.map(|place| place as u32),
            });
            // Not `insert`: nothing else needs `memmove`, which is a kilobyte. Nor does `swap`, for what is no larger than four registers.
            for behind in place..harts.len() {
                let last = harts.len() - 1;
                harts.swap(behind, last);
            }
        }

        let chosen = tree.find_node("/chosen");
        // Behind the path there may be the line's settings, which stay as the firmware left them.
        let stdout = chosen.and_then(|node| find(tree, text(&node, "stdout-path")?.split(':').next()?));
        let irqchip = part.as_ref().map(|part| part.irqchip);
        #[cfg(feature = "uarts")]
        let uart = |node| crate::uarts::other(&node, irqchip).or_else(|| uart(node, irqchip));
        #[cfg(not(feature = "uarts"))]
        let uart = |node| uart(node, irqchip);
        let uart = stdout.and_then(uart).or_else(|| AllNodes::of(tree).find_map(uart));
        Ok(Self {
            model: String::from(text(&tree.root(), "model").unwrap_or("unknown")),
            memory: Self::memory_of(tree)?.as_slice().to_vec(),
            harts,
            isa: isa.ok_or(Error::Missing("cpu that is switched on"))?,
            mmu: String::from(mmu.unwrap_or_default()),
            cache_blocks: (BLOCK_SIZES.iter().zip(cache_blocks.unwrap_or_default()))
                .filter_map(|(name, size)| Some((String::from(*name), size?)))
                .collect(),
            timebase_hz: u64::from(
                cell(&cpus, "timebase-frequency").ok_or(Error::Missing("timebase-frequency"))?,
            ),
            irqchip,
            sswi: sswi_node.and_then(|node| base(&node)),
            uart,
            seed: chosen
                .and_then(|node| Some(value(&node, "rng-seed")?.to_vec()).filter(|seed| !seed.is_empty())),
        })
    }

    /// A device by its path. None if there is no node at this path, or it has no `compatible`.
    pub fn device(&self, tree: Fdt<'_>, path: &str) -> Option<Device> {
        let node = find(tree, path)?;
        Some(Device {
            name: String::from(node.name()),
            compatible: value(&node, "compatible")?.to_vec(),
            registers: registers(&node).collect(),
            interrupts: interrupts(&node, self.irqchip).collect(),
        })
    }

    /// What else than the device at `path` has registers or memory in these pages.
    pub fn neighbour<'a>(tree: Fdt<'a>, path: &str, pages: Range) -> Option<&'a str> {
        let is_neighbour = |node: &FdtNode<'_>| {
            !path.ends_with(node.name()) && registers(node).any(|range| range.overlaps(pages))
        };
        AllNodes::of(tree).find(is_neighbour).map(|node| node.name())
    }

    /// Bytes that the harts clear with one `cbo.zero`, if they can.
    pub fn zeroing_block(&self) -> Option<u32> {
        let mut sizes = self.cache_blocks.iter();
        let size = sizes.find(|(name, _)| name == "riscv,cboz-block-size").map(|(_, size)| *size);
        size.filter(|_| self.isa.has("zicboz"))
    }

    /// Total main memory in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.memory.iter().map(|range| range.size()).sum()
    }

    /// Names a hart for a message.
    pub fn hart_names(&self) -> String {
        let mut names = String::new();
        for hart in &self.harts {
            let separator = if names.is_empty() { "" } else { ", " };
            names += &format!("{separator}{}", hart.id);
        }
        names
    }
}
