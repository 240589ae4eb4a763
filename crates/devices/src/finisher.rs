//! The device with which programs switch QEMU's `virt` off (`sifive,test0` in its device tree; QEMU's hw/misc/sifive_test.c). It has one
//! register, which is only written.

/// What a guest asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Switch off: all is well.
    PowerOff,
    /// Switch off: it has failed.
    Failure,
    /// Start again.
    Reboot,
}

/// Value that switches off, as a device tree's `syscon-poweroff` has it.
pub const POWER_OFF: u32 = 0x5555;
/// Value that starts again (`syscon-reboot`).
pub const REBOOT: u32 = 0x7777;
/// Value that says that something has failed; an exit code stands above it.
const FAILURE: u32 = 0x3333;

/// A guest's store of `value`, `width` bytes wide, at `offset`. `None` if it asks for nothing.
pub fn write(offset: u64, width: u8, value: u64) -> Option<End> {
    if offset != 0 || !matches!(width, 2 | 4) {
        return None;
    }
    match value as u32 & 0xffff {
        POWER_OFF => Some(End::PowerOff),
        REBOOT => Some(End::Reboot),
        FAILURE => Some(End::Failure),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_mean_what_they_mean_on_virt() {
        assert_eq!(write(0, 4, 0x5555), Some(End::PowerOff));
        assert_eq!(write(0, 2, 0x5555), Some(End::PowerOff));
        assert_eq!(write(0, 4, 0xffff_ffff_0000_7777), Some(End::Reboot));
        assert_eq!(write(0, 4, 0x0001_3333), Some(End::Failure), "with the exit code 1");
        for (offset, width, value) in
            [(0, 4, 0), (0, 4, 0x5556), (4, 4, 0x5555), (0, 8, 0x5555), (0, 1, 0x55)]
        {
            assert_eq!(write(offset, width, value), None);
        }
    }
}
