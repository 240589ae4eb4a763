//! What lies where in a guest's memory when it starts: the checks on the host and the loader in the hypervisor must agree.
//!
//! As on QEMU's `virt` (`riscv_compute_fdt_addr` and `riscv_load_initrd` in its hw/riscv/boot.c), the device tree lies at the top of memory, and the
//! RAM disk in the middle, or [`INITRD_AT`] behind the start of more memory. Programs that were made for that machine let their early heap grow right behind their
//! image, or move to the top of memory themselves (U-Boot).
use crate::config::GUEST_MEMORY_BASE;
use core::ops::Range;

/// The parts start at a multiple of this if there is room: Linux maps its tree with large pages.
pub const ALIGN: u64 = 2 << 20;
/// In a guest too small for that, at a multiple of this.
pub const SMALL_ALIGN: u64 = ainori_limits::PAGE;
/// A RAM disk lies no further behind the start of memory than this, in bytes, if it has room there.
pub const INITRD_AT: u64 = 512 << 20;
/// Room for the guest's device tree in bytes.
pub const TREE_SIZE: u64 = 64 << 10;

/// The parts above a guest's image, as guest-physical addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// The initial RAM disk.
    pub initrd: Option<Range<u64>>,
    /// The device tree.
    pub tree: Range<u64>,
}

impl Layout {
    /// Places the device tree at the top of a guest's `memory` bytes, and a RAM disk of so many bytes in the middle, or right below the tree if there is no room
    /// for it there. The image ends, its bss included, at `image_end`. `None` if there is no room at all.
    pub fn of(memory: u64, image_end: u64, initrd_len: Option<u64>) -> Option<Self> {
        let memory_end = GUEST_MEMORY_BASE.checked_add(memory)?;
        // First with as much room for the image as `virt` leaves, then as little as it takes.
        [ALIGN, SMALL_ALIGN].into_iter().find_map(|align| {
            let below = |end: u64, len: u64| {
                let start = end.checked_sub(len)? / align * align;
                (start >= image_end).then(|| start..start + len)
            };
            let tree = below(memory_end, TREE_SIZE)?;
            let in_middle = |len: u64| {
                let start = GUEST_MEMORY_BASE + (memory / 2).min(INITRD_AT) / align * align;
                let end = start.checked_add(len)?;
                (start >= image_end && end <= tree.start).then_some(start..end)
            };
            let initrd = match initrd_len {
                Some(len) => Some(in_middle(len).or_else(|| below(tree.start, len))?),
                None => None,
            };
            Some(Self { initrd, tree })
        })
    }

    /// Least memory, in bytes and before any rounding, that image, RAM disk and device tree take; `u64::MAX` if there is none.
    pub fn least_memory(image_end: u64, initrd_len: Option<u64>) -> u64 {
        let parts = [image_end.saturating_sub(GUEST_MEMORY_BASE), initrd_len.unwrap_or(0), TREE_SIZE];
        parts.into_iter().fold(0, |sum: u64, part| {
            sum.saturating_add(part.checked_next_multiple_of(SMALL_ALIGN).unwrap_or(u64::MAX))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: u64 = GUEST_MEMORY_BASE;
    const MIB: u64 = 1 << 20;

    #[test]
    fn the_tree_lies_where_virt_has_it() {
        // QEMU 10.0: -m 512M puts it at 0x9fe0_0000, -m 4G at 0x1_7fe0_0000.
        assert_eq!(Layout::of(512 * MIB, BASE, None).unwrap().tree.start, 0x9fe0_0000);
        assert_eq!(Layout::of(4096 * MIB, BASE, None).unwrap().tree.start, 0x1_7fe0_0000);
    }

    #[test]
    fn the_initrd_lies_in_the_middle_as_on_virt() {
        let initrd = |memory, image_end, len| Layout::of(memory, BASE + image_end, Some(len)).unwrap().initrd;
        assert_eq!(initrd(64 * MIB, 20 * MIB, 5 * MIB + 1), Some(BASE + 32 * MIB..BASE + 37 * MIB + 1));
        assert_eq!(initrd(8192 * MIB, 20 * MIB, MIB), Some(BASE + 512 * MIB..BASE + 513 * MIB));
    }

    #[test]
    fn an_initrd_without_room_in_the_middle_lies_below_the_tree() {
        let initrd = |image_end, len| Layout::of(64 * MIB, BASE + image_end, Some(len)).unwrap().initrd;
        let (below, large) = (BASE + 56 * MIB..BASE + 61 * MIB + 1, BASE + 22 * MIB..BASE + 62 * MIB);
        assert_eq!(initrd(32 * MIB + 1, 5 * MIB + 1), Some(below), "the image is there");
        assert_eq!(initrd(20 * MIB, 40 * MIB), Some(large), "it is too large");
    }

    #[test]
    fn a_small_guest_has_them_closer_together() {
        let layout = Layout::of(2 * MIB, BASE + MIB + 1, Some(5000)).unwrap();
        assert_eq!(layout.tree, BASE + 2 * MIB - TREE_SIZE..BASE + 2 * MIB);
        assert_eq!(layout.initrd, Some(layout.tree.start - 8192..layout.tree.start - 8192 + 5000));
        let roomy = Layout::of(2 * MIB, BASE + MIB, Some(5000)).unwrap();
        assert_eq!(roomy.initrd, Some(BASE + MIB..BASE + MIB + 5000));
        assert_eq!(Layout::of(2 * MIB, BASE + 2 * MIB - TREE_SIZE + 1, None), None);
    }

    #[test]
    fn the_least_memory_is_enough_and_nothing_less_is() {
        for (image, initrd) in [(1, None), (MIB, Some(1)), (3 * MIB + 7, Some(4096)), (0, Some(0))] {
            let least = Layout::least_memory(BASE + image, initrd);
            assert!(Layout::of(least, BASE + image, initrd).is_some());
            assert_eq!(Layout::of(least - 1, BASE + image, initrd), None);
        }
    }

    #[test]
    fn numbers_that_make_no_sense_have_no_place() {
        assert_eq!(Layout::of(u64::MAX, BASE, None), None);
        assert_eq!(Layout::of(64 * MIB, u64::MAX, None), None);
        assert_eq!(Layout::of(64 * MIB, BASE, Some(u64::MAX)), None);
        assert_eq!(Layout::least_memory(BASE, Some(u64::MAX)), u64::MAX);
    }
}
