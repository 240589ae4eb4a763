//! What lies where in a guest's memory when it starts: the checks on the host and the loader in the hypervisor must agree.
use core::ops::Range;

/// What follows the image starts at a multiple of this: Linux keeps its image to itself up to the end of its last large page.
pub const IMAGE_ALIGN: u64 = 2 << 20;
/// The device tree starts at a multiple of this.
pub const TREE_ALIGN: u64 = 4096;
/// Room for the guest's device tree in bytes.
pub const TREE_SIZE: u64 = 64 << 10;

/// The parts behind a guest's image, as guest-physical addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// The initial RAM disk.
    pub initrd: Option<Range<u64>>,
    /// The device tree; what comes behind it is free.
    pub tree: Range<u64>,
}

impl Layout {
    /// Places a RAM disk of so many bytes and the device tree behind an image that ends, its bss included, at
    /// `image_end`. `None` if the addresses would overflow.
    pub fn behind(image_end: u64, initrd_len: Option<u64>) -> Option<Self> {
        let start = image_end.checked_next_multiple_of(IMAGE_ALIGN)?;
        let initrd = match initrd_len {
            Some(len) => Some(start..start.checked_add(len)?),
            None => None,
        };
        let free = initrd.as_ref().map_or(start, |initrd| initrd.end);
        let tree = free.checked_next_multiple_of(TREE_ALIGN)?;
        Some(Self { initrd, tree: tree..tree.checked_add(TREE_SIZE)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_each_other() {
        let layout = Layout::behind(0x8020_0001, Some(5000)).unwrap();
        assert_eq!(layout.initrd, Some(0x8040_0000..0x8040_1388));
        assert_eq!(layout.tree, 0x8040_2000..0x8041_2000);
        assert_eq!(Layout::behind(0x8040_0000, None).unwrap().tree.start, 0x8040_0000);
        assert_eq!(Layout::behind(u64::MAX, None), None);
        assert_eq!(Layout::behind(0, Some(u64::MAX)), None);
    }
}
