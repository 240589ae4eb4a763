//! IMSICs (*The RISC-V Advanced Interrupt Architecture* 1.0, chapter 3): in a file that each hart has for its supervisor, a message (MSI) makes an
//! identity pending, which is the number that is written. The lower an identity, the more urgent it is.
use alloc::vec::Vec;
use core::num::NonZeroU64;
use core::ops::Range;

use ainori_limits::IRQ_LEVELS;
use ainori_limits::cause::interrupt::SUPERVISOR_EXTERNAL;
use dtoolkit::fdt::{Fdt, FdtNode};

use crate::irqchip::Wire;
use crate::tree::{AllNodes, cell, is_compatible, is_on, registers, targets};

/// The identity of what cores send to each other, ahead of all sources. A store of 1 is what the supervisor software-interrupt device (ACLINT) takes, too.
pub const IPI_IDENTITY: u32 = 1;
/// The numbers of identities that a file may have (section 3.1).
const IDENTITIES: Range<u32> = 63..2048;
/// Bytes of a file.
const FILE: u64 = 0x1000;

/// How many identities each level has, of files with so many.
const fn per_level(identities: u32) -> u32 {
    identities.saturating_sub(IPI_IDENTITY) / IRQ_LEVELS
}

/// The identities of the sources of a level, 1 to [`IRQ_LEVELS`], in files with so many. The more urgent levels come first.
pub const fn identities_of(level: u32, identities: u32) -> Range<u32> {
    let each = per_level(identities);
    let first = IRQ_LEVELS.saturating_sub(level) * each + IPI_IDENTITY + 1;
    first..first + each
}

/// The threshold (`eithreshold`, section 3.8.2) that lets only sources above a level through, 0 to [`IRQ_LEVELS`]. Identities from it on are held back; 0
/// lets all through.
pub const fn threshold(level: u32, identities: u32) -> u32 {
    if level == 0 { 0 } else { identities_of(level, identities).start }
}

/// The level of a [`threshold`].
pub const fn level_of(threshold: u32, identities: u32) -> u32 {
    match threshold.saturating_sub(IPI_IDENTITY + 1).checked_div(per_level(identities)) {
        Some(above) if threshold != 0 => IRQ_LEVELS.saturating_sub(above),
        _ => 0,
    }
}

/// The files of all harts' supervisors.
pub struct Files {
    /// The greatest identity in each, 63 to 2047.
    pub identities: u32,
    /// Behind each there is room for so many files of guests.
    pub guest_files: u8,
    /// The greatest identity in each of these, 63 to 2047.
    pub guest_identities: u32,
    /// Whose they are, and where.
    pub wires: Vec<Wire>,
}

impl Files {
    /// Those to which a controller with this `msi-parent` sends messages. None if they aren't the supervisors', or what is told of them isn't enough.
    ///
    /// The properties are those by which the firmware tells the APLIC where they are (Linux,
    /// `Documentation/devicetree/bindings/interrupt-controller/riscv,imsics.yaml`).
    #[inline(never)]
    pub fn of_parent(tree: Fdt<'_>, parent: u32) -> Option<Self> {
        let is_parent = |node: &FdtNode<'_>| {
            cell(node, "phandle") == Some(parent) && is_on(node) && is_compatible(node, &["riscv,imsics"])
        };
        let node = AllNodes::of(tree).find(is_parent)?;
        let targets = targets(&node);
        let bits = |name, default| cell(&node, name).unwrap_or(default);
        let count = |name| cell(&node, name).filter(|count| IDENTITIES.contains(count));
        let identities = count("riscv,num-ids")?;
        let guest_identities = count("riscv,num-guest-ids").unwrap_or(identities);
        let needed = targets.len().checked_next_power_of_two()?.ilog2();
        let fields = Fields {
            guest_bits: bits("riscv,guest-index-bits", 0),
            hart_bits: bits("riscv,hart-index-bits", needed),
            group_bits: bits("riscv,group-index-bits", 0),
            group_shift: bits("riscv,group-index-shift", 24),
        };
        // Each is followed by those of the hart's guests.
        let each = FILE.checked_shl(fields.guest_bits).filter(|each| *each != 0)?;
        let mut ranges = registers(&node);
        let mut range = ranges.next()?;
        let mut wires = Vec::new();
        for (hart, interrupt) in targets {
            while range.size() < each {
                range = ranges.next()?;
            }
            if interrupt == SUPERVISOR_EXTERNAL {
                let target = fields.hart_index(range.start)?;
                wires.push(Wire { hart, target, messages: NonZeroU64::new(range.start) });
            }
            range.start += each;
        }
        // What is behind them is the next hart's.
        let guest_files = u8::try_from(each / FILE - 1).unwrap_or(u8::MAX);
        (!wires.is_empty()).then_some(Self { identities, guest_files, guest_identities, wires })
    }
}

/// Where the numbers of harts, of their guests and of groups of harts are in the addresses of files, in bits.
struct Fields {
    guest_bits: u32,
    hart_bits: u32,
    group_bits: u32,
    group_shift: u32,
}

impl Fields {
    /// The hart index by which an APLIC finds this file (section 4.9.1).
    fn hart_index(&self, address: u64) -> Option<u32> {
        let field =
            |shift, bits| Some(address.checked_shr(shift)? & 1_u64.checked_shl(bits)?.wrapping_sub(1));
        let hart = field(FILE.ilog2() + self.guest_bits, self.hart_bits)?;
        let group = field(self.group_shift, self.group_bits)?;
        u32::try_from(group.checked_shl(self.hart_bits)? | hart).ok()
    }
}
