//! What a guest is, and what it sees of its machine.
mod caller;
pub mod device_tree;
pub mod fault;
pub mod interrupt_file;
pub mod loader;
pub mod mmio;
pub mod program;
pub mod sbi;
pub mod space;
pub mod stop;
#[cfg(feature = "no-h")]
pub mod text;
#[cfg_attr(not(feature = "shadow"), path = "two_stage.rs")]
pub mod translation;
pub mod vcpu;
#[cfg(feature = "watchdog")]
pub mod watchdog;

use alloc::vec::Vec;
use core::ops::Range;

use ainori_guest::Devices;
use ainori_handover::Pace;
use ainori_lifecycle::{Lifecycle, Rules};
use ainori_limits::MAX_GUEST_VCPUS;
use ainori_manifest::config;
use ainori_sched::{VcpuId, VcpuSet};
use spin::Mutex;

use ainori_board::Device;
use program::Program;
use space::Space;

// A set of a guest's vCPUs is a word with a bit for each.
const _: () = assert!(MAX_GUEST_VCPUS <= u64::BITS as usize);

/// The other end of a channel.
#[derive(Debug, Clone, Copy)]
pub struct Peer {
    /// Index of the guest there.
    pub guest: u8,
    /// The slot of the channel on that guest's bus.
    pub slot: u8,
    /// Bells for it that are rung from here have turns. Not if this guest's first vCPU can be wherever that one's can, and is more urgent there: it can
    /// keep that one waiting anyhow. Nor under windows in time: in its window the hearer's core is the hearer's alone, and a bell that waits for its turn would be handed on in somebody else's.
    pub has_turns: bool,
}

/// A bell that is a guest interrupt file: the one that rings has its page.
#[derive(Debug)]
pub struct BellFile {
    /// Whose hart's.
    pub core: u32,
    /// By which the hart knows it.
    pub number: u8,
    /// The first vCPU of the guest that hears it: none of that guest's leaves the core.
    pub hearer: VcpuId,
    /// The slot of the channel on that guest's bus.
    pub slot: u8,
}

/// A guest: everything that its vCPUs share.
pub struct Guest {
    /// Index in the system; the number that the scheduler knows.
    pub index: u8,
    /// What the manifest says.
    pub config: config::Guest,
    /// What it sees at which address.
    pub space: Space,
    /// Devices of the board that it drives itself.
    pub owned_devices: Vec<Device>,
    /// Its virtual devices.
    pub devices: Devices,
    /// Whom it reaches by its channels, by their slots.
    pub peers: Vec<Peer>,
    /// When interrupts of the board's devices that are its own are handed on (`cpu/devices.rs`), in ticks of `time`.
    pub device_turns: Pace,
    /// The same of [its bells](crate::cpu::Cpu::hand_on_bell).
    pub bell_turns: Pace,
    /// How it stopped, for the report. Nobody waits for this lock: first the core that stops the guest has it, then the
    /// housekeeping core.
    pub record: Mutex<Option<stop::Record>>,
    /// Where it is in its life.
    pub lifecycle: Lifecycle,
    /// Its watchdog, if it has one.
    #[cfg(feature = "watchdog")]
    pub watchdog: Option<ainori_devices::watchdog::Watchdog>,
    /// What its memory holds when a life begins.
    pub program: Program,
    first_vcpu: u8,
}

impl Guest {
    /// A guest with its memory in place and nothing started, that reaches nobody. Allocates: only at boot.
    pub fn new(
        index: u8,
        config: config::Guest,
        first_vcpu: u8,
        space: Space,
        owned_devices: Vec<Device>,
        devices: Devices,
        timebase_hz: u64,
    ) -> Self {
        let restart = &config.restart;
        let interval = ainori_limits::ticks(restart.interval_us, timebase_hz);
        #[cfg(feature = "watchdog")]
        let watchdog = (config.watchdog_us != 0).then(|| {
            let interval = ainori_limits::ticks(config.watchdog_us, timebase_hz);
            ainori_devices::watchdog::Watchdog::new(interval, timebase_hz)
        });
        let rules = Rules { restart: restart.when, limit: restart.limit, interval };
        Self {
            index,
            space,
            owned_devices,
            devices,
            peers: Vec::new(),
            device_turns: Pace::new(),
            bell_turns: Pace::new(),
            record: Mutex::new(None),
            lifecycle: Lifecycle::new(config.vcpus.len() as u32, rules),
            #[cfg(feature = "watchdog")]
            watchdog,
            program: Program::default(),
            first_vcpu,
            config,
        }
    }

    /// Its vCPUs in the numbering of the system.
    pub fn vcpus(&self) -> Range<u8> {
        self.first_vcpu..self.first_vcpu + self.config.vcpus.len() as u8
    }

    /// The hart ids of its vCPUs in its own eyes, a bit each.
    #[inline]
    pub fn harts(&self) -> u64 {
        u64::MAX >> (u64::BITS as usize - self.config.vcpus.len())
    }

    /// Those of its vCPUs whose hart ids in the guest's eyes are in `harts`, a bit each. Others are left out.
    pub fn vcpu_set(&self, harts: u64) -> VcpuSet {
        VcpuSet::from_bits_at(harts & self.harts(), self.first_vcpu)
    }

    /// The vCPU with this hart id of the guest.
    pub fn vcpu(&self, hart: u64) -> Option<VcpuId> {
        (hart < self.config.vcpus.len() as u64).then(|| VcpuId(self.first_vcpu + hart as u8))
    }
}
