//! The numbers that several parts agree on, each in one place: how many of each thing there can be, and numbers of
//! RISC-V ([`cause`]).
//!
//! What must fit together among them is asserted here. Whoever packs some of them into words of its own (a set of vCPUs, a word with a bit for
//! each guest) asserts there that they fit, so that a limit that is raised too far doesn't compile. Where programs in C or documents have a
//! number too, `tests/tests/headers.rs` and `tests/tests/docs.rs` compare.
#![no_std]
#![forbid(unsafe_code)]

pub mod cause;

/// Numbers of vCPUs: each is below this. A power of two, so that a table by number needs no check.
pub const VCPU_SLOTS: usize = 64;
/// Most vCPUs in one system: all numbers but [`NO_VCPU`].
pub const MAX_VCPUS: usize = VCPU_SLOTS - 1;
/// The number that no vCPU has. It stands for the machine as a whole.
pub const NO_VCPU: u8 = MAX_VCPUS as u8;
/// Most vCPUs of one guest.
pub const MAX_GUEST_VCPUS: usize = 16;

/// Most harts that the hypervisor runs on: each is a core, and their numbers are below this. A power of two, as [`VCPU_SLOTS`] is.
pub const MAX_HARTS: usize = 16;
/// Ids of harts that a manifest can name: each is below this. A board's ids may have gaps.
pub const HART_IDS: u32 = 64;
/// Bytes of a page of memory.
pub const PAGE: u64 = 4096;
/// Bytes of a core's stack.
pub const STACK_SIZE: usize = 32 * 1024;

/// Most guests in one system.
pub const MAX_GUESTS: usize = 16;
/// Priorities of vCPUs are `0..PRIORITIES`; the higher one goes first.
pub const PRIORITIES: u8 = 32;

/// Sources of a guest's interrupt controller, the non-existent source 0 included: as many as on QEMU's `virt`.
pub const PLIC_SOURCES: usize = 96;
/// Contexts of a guest's interrupt controller: one for machine mode and one for supervisor mode of each of its vCPUs, as on `virt`.
pub const PLIC_CONTEXTS: usize = 2 * MAX_GUEST_VCPUS;
/// The highest priority of an interrupt source, of a guest's controller and of those of the boards that we know. The lowest is 1; 0 is never.
pub const PLIC_PRIORITY: u32 = 7;

const _: () = {
    assert!(VCPU_SLOTS.is_power_of_two() && MAX_HARTS.is_power_of_two());
    assert!(VCPU_SLOTS <= u8::MAX as usize, "a number is a byte");
    assert!(MAX_GUEST_VCPUS <= MAX_VCPUS && MAX_GUESTS <= MAX_VCPUS);
    assert!(MAX_HARTS as u32 <= HART_IDS);
    assert!(PRIORITIES < u8::MAX, "above all levels is the one of a core that idles");
    assert!(PLIC_SOURCES.is_multiple_of(32), "the controller's words are whole");
};
