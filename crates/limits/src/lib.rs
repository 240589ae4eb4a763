//! The numbers that several parts agree on, each in one place: how many of each thing there can be, and numbers of
//! RISC-V ([`cause`]).
//!
//! What must fit together among them is asserted here. Whoever packs some of them into words of its own (a set of vCPUs, a word with a bit for
//! each guest) asserts there that they fit, so that a limit that is raised too far doesn't compile. Where programs in C or documents have a
//! number too, `tests/tests/headers.rs` and `tests/tests/docs.rs` compare.
#![no_std]
#![forbid(unsafe_code)]

pub mod bits;
pub mod cause;

/// How much a build of the hypervisor has room for. There are two: what few need would take time and memory from all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Most harts that it runs on.
    pub harts: usize,
    /// Most vCPUs in one system.
    pub vcpus: usize,
    /// Most vCPUs of one guest.
    pub guest_vcpus: usize,
}

impl Room {
    /// Of the usual build. A set of vCPUs is one word.
    pub const USUAL: Self = Self { harts: 16, vcpus: 63, guest_vcpus: 16 };
    /// Of the build with the feature `large`.
    pub const LARGE: Self = Self { harts: 64, vcpus: 255, guest_vcpus: 64 };
    /// Of this build.
    pub const BUILT: Self = if cfg!(feature = "large") { Self::LARGE } else { Self::USUAL };

    /// Is it enough for what needs so much?
    #[must_use]
    pub const fn holds(self, needs: Self) -> bool {
        needs.harts <= self.harts && needs.vcpus <= self.vcpus && needs.guest_vcpus <= self.guest_vcpus
    }
}

/// So many microseconds in ticks of a clock of so many hertz, rounded down. For a day at most, the longest time that a manifest can name, of which a
/// clock of up to 32 bits' hertz, the fastest that the hypervisor takes, has fewer ticks than a word counts.
///
/// In two parts, as the product of a day in microseconds and a fast clock wouldn't fit.
#[must_use]
pub const fn ticks(us: u64, hz: u64) -> u64 {
    us / 1_000_000 * hz + us % 1_000_000 * hz / 1_000_000
}

/// A number of a vCPU, or one that stands for a list of vCPUs: a byte where both fit.
#[cfg(not(feature = "large"))]
pub type Place = u8;
/// A number of a vCPU, or one that stands for a list of vCPUs.
#[cfg(feature = "large")]
pub type Place = u16;

/// Most vCPUs in one system: all numbers but [`NO_VCPU`].
pub const MAX_VCPUS: usize = Room::BUILT.vcpus;
/// Numbers of vCPUs: each is below this. A power of two, so that a table by number needs no check.
pub const VCPU_SLOTS: usize = MAX_VCPUS + 1;
/// Words of a set with a bit for each number of a vCPU.
pub const VCPU_WORDS: usize = VCPU_SLOTS / u64::BITS as usize;
/// The number that no vCPU has. It stands for the machine as a whole.
pub const NO_VCPU: u8 = MAX_VCPUS as u8;
/// Most vCPUs of one guest.
pub const MAX_GUEST_VCPUS: usize = Room::BUILT.guest_vcpus;

/// Most harts that the hypervisor runs on: each is a core, and their numbers are below this. A power of two, as [`VCPU_SLOTS`] is.
pub const MAX_HARTS: usize = Room::BUILT.harts;
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

/// Interrupt levels of the board: 1 to this one, which is the most urgent; so many as the boards' controllers that we know can tell apart.
pub const IRQ_LEVELS: u32 = 7;
/// Sources of a guest's interrupt controller, whichever kind it is, the non-existent source 0 included: as many as on QEMU's `virt`.
pub const IRQ_SOURCES: usize = 96;
/// Contexts of a guest's PLIC: one for machine mode and one for supervisor mode of each of its vCPUs, as on `virt`.
pub const PLIC_CONTEXTS: usize = 2 * MAX_GUEST_VCPUS;
/// Most channels of one guest: each is a device with a source of its own.
pub const GUEST_CHANNELS: usize = 4;
/// Most bytes of a channel's memory: so far apart they lie in a guest.
pub const CHANNEL_SIZE: u64 = 128 << 20;
/// Most channels in one system.
pub const MAX_CHANNELS: usize = 16;
/// The highest priority of a source of a guest's PLIC. The lowest is 1; 0 is never.
pub const PLIC_PRIORITY: u32 = 7;

const _: () = {
    assert!(VCPU_SLOTS.is_power_of_two() && MAX_HARTS.is_power_of_two());
    assert!(VCPU_WORDS * u64::BITS as usize == VCPU_SLOTS, "the words are whole");
    assert!(NO_VCPU as usize == MAX_VCPUS, "a number is a byte");
    assert!(MAX_GUEST_VCPUS <= MAX_VCPUS && MAX_GUESTS <= MAX_VCPUS);
    assert!(MAX_HARTS as u32 <= HART_IDS);
    assert!(PRIORITIES < u8::MAX, "above all levels is the one of a core that idles");
    assert!(IRQ_SOURCES.is_multiple_of(32), "the controller's words are whole");
};

#[cfg(test)]
mod tests {
    use super::ticks;

    #[test]
    fn microseconds_are_ticks_rounded_down_for_a_day_of_any_clock() {
        assert_eq!(ticks(5, 10_000_000), 50);
        assert_eq!(ticks(1, 999_999), 0);
        assert_eq!(ticks(2_500_001, 1_000_000_000), 2_500_001_000);
        let day = 24 * 3600 * 1_000_000;
        for hz in [1, 32_768, 10_000_000, u64::from(u32::MAX)] {
            assert_eq!(u128::from(ticks(day + 1, hz)), u128::from(day + 1) * u128::from(hz) / 1_000_000);
        }
    }
}
