//! A place for a virtio device in which there is none (Virtual I/O Device specification 1.2, 4.2.2): drivers look at it and go on.

/// "virt", little-endian.
const MAGIC: u32 = 0x7472_6976;
/// That of QEMU's `virt` unless it is asked for another.
const VERSION: u32 = 1;

/// A guest's load of `width` bytes at `offset` of an empty slot. All its registers are 32 bits wide; device id 0 says that it is
/// empty. Stores have no effect.
pub fn read_empty(offset: u64, width: u8) -> u32 {
    match (offset, width) {
        (0, 4) => MAGIC,
        (4, 4) => VERSION,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_find_an_empty_slot() {
        assert_eq!(read_empty(0, 4).to_le_bytes(), *b"virt");
        assert_eq!(read_empty(4, 4), 1);
        for offset in (8..0x1000).step_by(4) {
            assert_eq!(read_empty(offset, 4), 0);
        }
        assert_eq!(read_empty(0, 1), 0);
    }
}
