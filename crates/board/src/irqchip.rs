//! The board's interrupt controller, whichever kind it is, and how devices are wired to it.
use ainori_limits::IRQ_LEVELS;
use ainori_limits::cause::interrupt::SUPERVISOR_EXTERNAL;
use alloc::vec::Vec;
use dtoolkit::Node;
use dtoolkit::fdt::{Fdt, FdtNode};

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
}

impl BoardIrqchip {
    /// The greatest number of a source.
    pub const fn last_source(self) -> u32 {
        match self {
            Self::Plic { sources, .. } | Self::Aplic { sources, .. } => sources,
        }
    }

    /// What stands for a level, 1 to [`IRQ_LEVELS`], as the priority of a source in the controller's registers; and as the threshold that lets only
    /// sources above the level through, for which the level may be 0: then it lets all through.
    ///
    /// It is its own inverse: what stands for a number is the level.
    #[inline]
    pub const fn number(self, level: u32) -> u32 {
        match self {
            Self::Plic { .. } => level,
            Self::Aplic { .. } => aplic_number(level),
        }
    }
}

/// [`BoardIrqchip::number`] of an APLIC (AIA, sections 4.5.16.1 and 4.8.1.3). The smaller number is the more urgent one. A threshold lets those below
/// it through, which is one less than a PLIC does, and all if it is 0.
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
}

/// A wire from a device to the controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interrupt {
    /// The number of the controller's source.
    pub source: u32,
    /// When it asks. A PLIC isn't told: there it is always [`Trigger::LevelHigh`].
    pub trigger: Trigger,
}

/// The interrupts of a device, in the order of its node.
pub fn interrupts<'a>(
    node: &FdtNode<'a>,
    irqchip: Option<BoardIrqchip>,
) -> impl Iterator<Item = Interrupt> + use<'a> {
    let has_types = matches!(irqchip, Some(BoardIrqchip::Aplic { .. }));
    let mut cells = cells(value(node, "interrupts").unwrap_or_default());
    core::iter::from_fn(move || {
        let source = cells.next()?;
        let trigger = if has_types { Trigger::of(cells.next()?) } else { Trigger::LevelHigh };
        Some(Interrupt { source, trigger })
    })
}

/// The part of the controller that interrupts the harts' supervisors, with what is known of its wires to them.
pub struct Part {
    pub irqchip: BoardIrqchip,
    /// The hart interrupts that it drives, in the order of its node.
    pub targets: Vec<(u32, u32)>,
    /// Of an APLIC whose harts have other indices than their places in that order: these.
    hart_indices: Vec<u32>,
}

impl Part {
    /// The first one in the tree that there is a driver for.
    ///
    /// An APLIC is a node for each domain. Ours is one that names the supervisors' interrupt; that of machine level is the firmware's, which has
    /// delegated the sources to it. One that has a parent for messages can't interrupt harts itself: there is no driver for that yet. Only at boot.
    pub fn find(tree: Fdt<'_>) -> Option<Self> {
        AllNodes::of(tree).filter(is_on).find_map(|node| {
            let (targets, base) = (targets(&node), base(&node)?);
            let irqchip = if is_compatible(&node, &["sifive,plic-1.0.0", "riscv,plic0"]) {
                BoardIrqchip::Plic { base, sources: cell(&node, "riscv,ndev").unwrap_or(31) }
            } else if is_compatible(&node, &["riscv,aplic"])
                && node.property("msi-parent").is_none()
                && targets.iter().any(|(_, interrupt)| *interrupt == SUPERVISOR_EXTERNAL)
            {
                BoardIrqchip::Aplic { base, sources: cell(&node, "riscv,num-sources")? }
            } else {
                return None;
            };
            let indices = value(&node, "riscv,hart-indexes").unwrap_or_default();
            Some(Self { irqchip, targets, hart_indices: cells(indices).collect() })
        })
    }

    /// What the wire at this place is called in the controller's registers. Only at boot.
    pub fn target(&self, place: usize) -> Option<u32> {
        match self.irqchip {
            BoardIrqchip::Aplic { .. } if !self.hart_indices.is_empty() => {
                self.hart_indices.get(place).copied()
            }
            _ => Some(place as u32),
        }
    }
}
