//! Devices of the board that a guest owns, when that guest is started again: each is put to a state in which it does nothing by itself.
//! (A board has no line that resets one of them.)
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
];

/// Silences a device. One that isn't known here keeps its state.
pub fn silence(device: &Device) {
    // `compatible` is a list of strings, each with its end.
    // BOUND: the bytes of `compatible`, some 5 instructions each.
    let is = |name: &[u8]| device.compatible.split(|byte| *byte == 0).any(|known| known == name);
    // BOUND: the devices that are known here.
    let Some((_, writes)) = DEVICES.iter().find(|(name, _)| is(name)) else { return };
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
