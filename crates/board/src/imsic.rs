//! IMSICs (*The RISC-V Advanced Interrupt Architecture* 1.0, chapter 3): in a file that each hart has for its supervisor, a message (MSI) makes an
//! identity pending, which is the number that is written. The lower an identity, the more urgent it is.
use alloc::vec::Vec;
use core::ops::Range;

use ainori_limits::IRQ_LEVELS;
use ainori_limits::cause::interrupt::SUPERVISOR_EXTERNAL;
use dtoolkit::fdt::{Fdt, FdtNode};

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

/// The files of all harts' supervisors, in the order of their node.
pub struct Files {
    /// How many identities each has.
    pub identities: u32,
    /// The hart interrupts that they drive.
    pub targets: Vec<(u32, u32)>,
    /// Where they are.
    pub addresses: Vec<u64>,
    /// The hart indices by which an APLIC finds them: fields of their addresses (section 4.9.1).
    pub hart_indices: Vec<u32>,
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
        if targets.iter().all(|(_, interrupt)| *interrupt != SUPERVISOR_EXTERNAL) {
            return None;
        }
        let identities = cell(&node, "riscv,num-ids").filter(|count| IDENTITIES.contains(count))?;
        let bits = |name, default| cell(&node, name).unwrap_or(default);
        let guest_bits = bits("riscv,guest-index-bits", 0);
        let hart_bits = bits("riscv,hart-index-bits", targets.len().checked_next_power_of_two()?.ilog2());
        let group_bits = bits("riscv,group-index-bits", 0);
        let group_shift = bits("riscv,group-index-shift", 24);
        // Each is followed by those of the hart's guests.
        let each = FILE.checked_shl(guest_bits).filter(|each| *each != 0)?;
        let places =
            registers(&node).flat_map(|range| (0..range.size() / each).map(move |n| range.start + n * each));
        let addresses: Vec<u64> = places.take(targets.len()).collect();
        let field = |address: u64, shift, bits| {
            Some(address.checked_shr(shift)? & 1_u64.checked_shl(bits)?.wrapping_sub(1))
        };
        let hart_index = |address: &u64| {
            let hart = field(*address, FILE.ilog2() + guest_bits, hart_bits)?;
            let group = field(*address, group_shift, group_bits)?;
            u32::try_from(group.checked_shl(hart_bits)? | hart).ok()
        };
        let hart_indices: Vec<u32> = addresses.iter().map_while(hart_index).collect();
        let is_whole = hart_indices.len() == targets.len();
        is_whole.then_some(Self { identities, targets, addresses, hart_indices })
    }
}
