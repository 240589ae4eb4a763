//! Fences for memory, devices and instructions.
use core::arch::asm;

/// What this hart has written to memory is seen by others before what it then writes to a device.
#[inline]
pub fn before_device() {
    // SAFETY: orders accesses, nothing else.
    unsafe { asm!("fence w, o", options(nostack)) }
}

/// What this hart then reads of memory, it reads after what it has written to a device, or to a CSR, which is the same to a FENCE (unprivileged
/// specification, "Zicsr").
#[inline]
pub fn after_device() {
    // SAFETY: orders accesses, nothing else.
    unsafe { asm!("fence o, r", options(nostack)) }
}

/// What this hart then reads of memory, it reads after what it has read of a device.
#[inline]
pub fn after_device_read() {
    // SAFETY: orders accesses, nothing else.
    unsafe { asm!("fence i, r", options(nostack)) }
}

/// What this hart has read and written so far, of memory and of devices, comes before all that it then does, as memory, other harts and devices see
/// it.
#[inline(always)]
pub fn memory_and_devices() {
    // SAFETY: orders accesses, nothing else.
    unsafe { asm!("fence iorw, iorw", options(nostack)) }
}

/// Makes this hart fetch instructions as they stand in memory.
pub fn instructions() {
    // SAFETY: has no effect but on instruction fetch.
    unsafe { asm!("fence.i", options(nostack)) }
}
