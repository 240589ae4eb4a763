//! Devices of the board that a guest owns, before each of its lives: each is put to a state in which it does nothing by itself.
//! (A board has no line that resets one of them.) One that reads and writes memory is waited for, as what it has begun would land in
//! what the next life has there.
#[cfg(feature = "shadow")]
use core::ptr::read_volatile;
use core::ptr::write_volatile;

use crate::arch::fence;
use ainori_board::Device;

/// Registers to write, in order: offset and value.
type Writes = &'static [(u64, u32)];

/// By `compatible`.
const DEVICES: &[(&[u8], Writes)] = &[
    // Goldfish RTC (<https://android.googlesource.com/platform/external/qemu/+/master/docs/GOLDFISH-VIRTUAL-HARDWARE.TXT>): IRQ_ENABLED,
    // CLEAR_ALARM, CLEAR_INTERRUPT.
    (b"google,goldfish-rtc", &[(0x10, 0), (0x14, 1), (0x1c, 1)]),
    // Flash of the common interface (JEDEC JESD68): read array, for the Intel command set (two chips of 16 bits).
    (b"cfi-flash", &[(0, 0x00ff_00ff)]),
    #[cfg(feature = "shadow")]
    (VIRTIO, &[(VIRTIO_STATUS, 0)]),
];

// A device that reads and writes memory is for guests whose memory has a place (`memory_at`), and these for the builds that have such.
/// A virtio device whose registers are memory (Virtual I/O Device specification 1.2, 4.2.2): a zero in `Status` resets it, and it touches no queue any more once
/// it says zero there itself (2.4.1).
#[cfg(feature = "shadow")]
const VIRTIO: &[u8] = b"virtio,mmio";
#[cfg(feature = "shadow")]
const VIRTIO_STATUS: u64 = 0x70;

/// Is it compatible with this one?
fn is(device: &Device, name: &[u8]) -> bool {
    // `compatible` is a list of strings, each with its end.
    // BOUND: the bytes of `compatible`, some 5 instructions each.
    device.compatible.split(|byte| *byte == 0).any(|known| known == name)
}

/// Silences a device, of which it may take its time to come to rest. One that isn't known here keeps its state.
pub fn silence(device: &Device) {
    // BOUND: the devices that are known here.
    let Some((_, writes)) = DEVICES.iter().find(|(name, _)| is(device, name)) else { return };
    // BOUND: the device's ranges of registers, mostly one.
    for range in &device.registers {
        // BOUND: 3 at most.
        for (offset, value) in writes.iter().filter(|(offset, _)| offset + 4 <= range.size()) {
            // SAFETY: the board's tree says that a device of this kind is there, so that its registers are as `DEVICES` has them, and the
            // register lies within the range; to the hypervisor its address is itself (as of tables: `shadow_tables.rs`), and no Rust object lies there. The guest that owns the device doesn't
            // run, and nobody else uses it.
            unsafe { write_volatile((range.start + offset) as *mut u32, *value) };
        }
    }
    // Its interrupt is completed later, perhaps by another core: by then it must be silent.
    fence::memory_and_devices();
}

/// Has a device that was silenced come to rest: does it touch no memory any more?
#[cfg(feature = "shadow")]
pub fn is_at_rest(device: &Device) -> bool {
    if !is(device, VIRTIO) {
        return true;
    }
    // BOUND: the device's ranges of registers, one.
    device.registers.iter().filter(|range| VIRTIO_STATUS + 4 <= range.size()).all(|range| {
        // SAFETY: as in `silence`; a load of `Status` has no effect.
        unsafe { read_volatile((range.start + VIRTIO_STATUS) as *const u32) == 0 }
    })
}

/// The same where no guest has a device that touches memory.
#[cfg(not(feature = "shadow"))]
pub const fn is_at_rest(_: &Device) -> bool {
    true
}

/// Silences a device of a guest that has not lived yet, where some touch memory.
#[cfg(feature = "shadow")]
pub fn silence_at_boot(device: &Device) {
    silence(device);
    // BOUND: until the device is reset, before any guest runs. A board with one that never is doesn't boot: no memory would be anybody's own there.
    while !is_at_rest(device) {}
}
