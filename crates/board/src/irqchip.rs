//! The board's interrupt controller, whichever kind it is, and how devices are wired to it.
use ainori_limits::IRQ_LEVELS;
use ainori_limits::cause::interrupt::SUPERVISOR_EXTERNAL;
use alloc::vec::Vec;
use core::num::NonZeroU64;
use dtoolkit::fdt::{Fdt, FdtNode};

use crate::imsic::{self, Files};
use crate::tree::{AllNodes, base, cell, cells, is_compatible, is_on, targets, value};

/// An interrupt controller that there is a driver for (in the kernel's `chip/irqchip`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoardIrqchip {
    /// A PLIC at `base` with sources `1..=sources`.
    Plic {
        /// Its first register.
        base: u64,
        /// How many sources it has.
        sources: u32,
    },
    /// A domain of an APLIC that interrupts the harts' supervisors itself (AIA, chapter 4: direct delivery mode), with sources `1..=sources`.
    Aplic {
        /// The domain's first register.
        base: u64,
        /// How many sources it has.
        sources: u32,
    },
    /// A domain of an APLIC that sends messages to an IMSIC of each hart (AIA, chapters 3 and 4: MSI delivery mode), with sources `1..=sources`.
    Imsic {
        /// The domain's first register.
        base: u64,
        /// How many sources it has.
        sources: u32,
        /// The greatest identity in the supervisors' files, 63 to 2047.
        identities: u32,
        /// So many files of guests may follow each of these. How many there are, the harts know.
        guest_files: u8,
        /// The greatest identity in files of guests, 63 to 2047.
        guest_identities: u32,
    },
}

impl BoardIrqchip {
    /// The greatest number of a source.
    pub const fn last_source(self) -> u32 {
        match self {
            Self::Plic { sources, .. } | Self::Aplic { sources, .. } | Self::Imsic { sources, .. } => sources,
        }
    }

    /// The threshold that lets only sources above a level through, 0 to [`IRQ_LEVELS`], as the controller's registers have it. 0 lets all through, in
    /// any of them.
    #[inline]
    pub const fn threshold(self, level: u32) -> u32 {
        match self {
            Self::Plic { .. } => level,
            Self::Aplic { .. } => aplic_number(level),
            Self::Imsic { identities, .. } => imsic::threshold(level, identities),
        }
    }

    /// The level of such a [`threshold`](Self::threshold).
    #[inline]
    pub const fn level(self, threshold: u32) -> u32 {
        match self {
            Self::Plic { .. } => threshold,
            Self::Aplic { .. } => aplic_number(threshold),
            Self::Imsic { identities, .. } => imsic::level_of(threshold, identities),
        }
    }
}

/// What stands for a level in an APLIC's registers, as the priority of a source and as a threshold (AIA, sections 4.5.16.1 and 4.8.1.3). The smaller number is
/// the more urgent one. A threshold lets those below it through, which is one less than a PLIC does, and all if it is 0.
///
/// It is its own inverse: what stands for a number is the level.
#[inline]
pub const fn aplic_number(level: u32) -> u32 {
    (IRQ_LEVELS + 1).wrapping_sub(level) % (IRQ_LEVELS + 1)
}

/// When a source asks to be served: the interrupt types of device trees (Linux, `include/dt-bindings/interrupt-controller/irq.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Trigger {
    /// Its wire goes high.
    EdgeRising = 1,
    /// Its wire goes low.
    EdgeFalling = 2,
    /// Its wire is high.
    LevelHigh = 4,
    /// Its wire is low.
    LevelLow = 8,
}

impl Trigger {
    /// Of a cell of a device tree. A type that says nothing, or of which there is no such thing, is taken for what nearly all devices have.
    const fn of(cell: u32) -> Self {
        match cell {
            1 => Self::EdgeRising,
            2 => Self::EdgeFalling,
            8 => Self::LevelLow,
            _ => Self::LevelHigh,
        }
    }

    /// Does it ask for as long as its wire does?
    pub const fn is_level(self) -> bool {
        matches!(self, Self::LevelHigh | Self::LevelLow)
    }
}

/// A wire from a device to the controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interrupt {
    /// The number of the controller's source.
    pub source: u32,
    /// When it asks. A PLIC isn't told: there it is always [`Trigger::LevelHigh`].
    pub trigger: Trigger,
}

impl Interrupt {
    /// The same, asking when its wire begins to, whether it would by itself for as long as that does or not.
    #[must_use]
    pub const fn as_edge(self) -> Self {
        let is_low = matches!(self.trigger, Trigger::LevelLow | Trigger::EdgeFalling);
        let trigger = if is_low { Trigger::EdgeFalling } else { Trigger::EdgeRising };
        Self { trigger, ..self }
    }
}

/// The interrupts of a device, in the order of its node.
pub fn interrupts<'a>(
    node: &FdtNode<'a>,
    irqchip: Option<BoardIrqchip>,
) -> impl Iterator<Item = Interrupt> + use<'a> {
    let has_types = matches!(irqchip, Some(BoardIrqchip::Aplic { .. } | BoardIrqchip::Imsic { .. }));
    let mut cells = cells(value(node, "interrupts").unwrap_or_default());
    core::iter::from_fn(move || {
        let source = cells.next()?;
        let trigger = if has_types { Trigger::of(cells.next()?) } else { Trigger::LevelHigh };
        Some(Interrupt { source, trigger })
    })
}

/// How the controller interrupts the supervisor of a hart.
#[derive(Debug, Clone, Copy)]
pub struct Wire {
    /// The phandle of the hart's own interrupt controller.
    pub hart: u32,
    /// What the hart is called in the controller's registers.
    pub target: u32,
    /// Where messages for it are written to, if the controller sends such.
    pub messages: Option<NonZeroU64>,
}

/// The part of the controller that interrupts the harts' supervisors, with what is known of its wires to them.
pub struct Part {
    pub irqchip: BoardIrqchip,
    wires: Vec<Wire>,
}

impl Part {
    /// The first one in the tree that there is a driver for.
    /// Only at boot.
    #[inline(never)]
    pub fn find(tree: Fdt<'_>) -> Option<Self> {
        AllNodes::of(tree).filter(is_on).find_map(|node| match () {
            () if is_compatible(&node, &["sifive,plic-1.0.0", "riscv,plic0"]) => Self::plic(&node),
            () if is_compatible(&node, &["riscv,aplic"]) => Self::domain(tree, &node),
            () => None,
        })
    }

    fn plic(node: &FdtNode<'_>) -> Option<Self> {
        let (base, sources) = (base(node)?, cell(node, "riscv,ndev").unwrap_or(31));
        Some(Self { irqchip: BoardIrqchip::Plic { base, sources }, wires: wires(node, &[]) })
    }

    /// An APLIC is a node for each domain. Ours is the one that interrupts supervisors, or sends messages to their IMSICs; that of machine level is the
    /// firmware's, which has delegated the sources to it. One that has a parent for messages sends them (as Linux has it).
    fn domain(tree: Fdt<'_>, node: &FdtNode<'_>) -> Option<Self> {
        let (base, sources) = (base(node)?, cell(node, "riscv,num-sources")?);
        if let Some(parent) = value(node, "msi-parent") {
            let files = Files::of_parent(tree, cells(parent).next()?)?;
            let Files { identities, guest_files, guest_identities, wires } = files;
            return Some(Self {
                irqchip: BoardIrqchip::Imsic { base, sources, identities, guest_files, guest_identities },
                wires,
            });
        }
        let wires = wires(node, value(node, "riscv,hart-indexes").unwrap_or_default());
        (!wires.is_empty()).then_some(Self { irqchip: BoardIrqchip::Aplic { base, sources }, wires })
    }

    /// Its wire to the hart whose own interrupt controller has this phandle.
    pub fn wire(&self, hart: u32) -> Option<&Wire> {
        self.wires.iter().find(|wire| wire.hart == hart)
    }
}

/// The wires of a controller that drives them itself. A hart is called by its place among all wires, or, of an APLIC, as `indices` has it.
fn wires(node: &FdtNode<'_>, indices: &[u8]) -> Vec<Wire> {
    let mut wires = Vec::new();
    for (place, (hart, interrupt)) in targets(node).into_iter().enumerate() {
        let target = if indices.is_empty() { Some(place as u32) } else { cells(indices).nth(place) };
        if let Some(target) = target.filter(|_| interrupt == SUPERVISOR_EXTERNAL) {
            wires.push(Wire { hart, target, messages: None });
        }
    }
    wires
}
