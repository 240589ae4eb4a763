//! The system description as the kernel reads it: [`System`] is made from a checked manifest by `ainori build` and
//! decoded once at boot.
pub use ainori_lifecycle::{MAX_LIMIT as MAX_RESTART_LIMIT, Restart};
use alloc::{string::String, vec::Vec};
use core::num::NonZeroU8;
use serde::{Deserialize, Serialize};

/// Where a guest's memory starts in its own physical address space, as on most RISC-V boards.
pub const GUEST_MEMORY_BASE: u64 = 0x8000_0000;
/// A guest's memory is a multiple of this many bytes: one leaf of the second level of its stage-2 table.
pub const GUEST_MEMORY_ALIGN: u64 = 2 << 20;
/// Shortest round-robin quantum in microseconds: below it, switching would take a noticeable share.
pub const MIN_QUANTUM_US: u32 = 100;
/// Shortest window in time, and frame of such windows, in microseconds: below it, switching would take a noticeable share.
pub const MIN_WINDOW_US: u32 = 100;
/// Longest grace in microseconds. A longer one is hardly meant: an RTOS would be shut out for so long.
pub const MAX_GRACE_US: u32 = 100_000;
/// Longest advance in microseconds. The core does nothing in what is left of it after the switch.
pub const MAX_ADVANCE_US: u32 = 100;

/// Longest interval in which a guest's restarts are counted, in microseconds: a day.
pub const MAX_RESTART_INTERVAL_US: u64 = 24 * 3600 * 1_000_000;

/// Longest time for which a guest that has a watchdog may be silent, in microseconds: a day.
pub const MAX_WATCHDOG_US: u64 = 24 * 3600 * 1_000_000;
/// Shortest, in microseconds: it is looked at by housework, which can be late by 10 ms.
pub const MIN_WATCHDOG_US: u64 = 20_000;

/// One system: everything that runs on a board together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct System {
    /// Name for people.
    pub name: String,
    /// Scheduling policy.
    pub policy: Policy,
    /// The guests, in the order of the manifest.
    pub guests: Vec<Guest>,
    /// Channels between two of them, in the order of the manifest.
    pub channels: Vec<Channel>,
    /// Index in [`Self::guests`] of the one that gets what is typed on the console.
    pub console_input: Option<u32>,
    /// Windows in time, under a policy that has them, by hart and time. Those of a hart don't overlap.
    pub windows: Vec<Window>,
    /// What is traced.
    pub trace: Trace,
}

/// Memory that two guests see, and no other, and a bell at each end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Channel {
    /// The guests at its ends 0 and 1, by their indices in [`System::guests`]. They are different.
    pub ends: [u32; 2],
    /// Bytes of its memory; a multiple of the page size, at most [`CHANNEL_SIZE`](ainori_limits::CHANNEL_SIZE).
    pub size: u64,
}

impl System {
    /// The channels of a guest, by its index: in each slot of its PCI bus the number of the channel, and which of its ends that is.
    pub fn channels_of(&self, guest: usize) -> impl Iterator<Item = (usize, usize)> {
        self.channels.iter().enumerate().filter_map(move |(number, channel)| {
            Some((number, channel.ends.iter().position(|&end| end as usize == guest)?))
        })
    }
}

/// A scheduling policy: a preset of the scheduler crate by name, with its parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Policy {
    /// One of the scheduler crate's presets.
    pub preset: String,
    /// Round-robin quantum among vCPUs of equal priority, in microseconds. At least [`MIN_QUANTUM_US`].
    pub quantum_us: u32,
    /// For how long a preemption may be deferred, in microseconds, 1 to [`MAX_GRACE_US`]. Only some presets do that.
    pub grace_us: u32,
    /// How long before its timer a vCPU gets the core that it takes from others, in microseconds, 0 to [`MAX_ADVANCE_US`].
    pub advance_us: u32,
    /// The length of a frame of windows in time, in microseconds, at least [`MIN_WINDOW_US`]; 0 under policies that have none.
    pub frame_us: u32,
}

/// A window in time: in each frame a hart is so long one guest's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// Board hart id, home of one of the guest's vCPUs.
    pub hart: u32,
    /// Index in [`System::guests`].
    pub guest: u32,
    /// When it begins, in microseconds from the frame's begin.
    pub start_us: u32,
    /// How long it is, in microseconds, at least [`MIN_WINDOW_US`]. It ends within the frame.
    pub length_us: u32,
}

/// Tracing of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// Bit mask of record kinds (see the trace crate); 0 records nothing.
    pub mask: u32,
    /// Records that each core's ring holds. A power of two, or 0 for no ring.
    pub records: u32,
}

/// What the file of a guest's program is. The hypervisor doesn't care: it gets an [`Image`] of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A RISC-V Linux `Image` (it starts with the boot header of the kernel's `Documentation/arch/riscv/boot-image-header.rst`).
    Linux,
    /// A statically linked ELF for S-mode.
    Elf,
    /// A flat binary.
    Raw,
}

/// What becomes of a load, store or fetch where a guest has neither memory nor a device, or with which a device can do nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnWildAccess {
    /// The guest gets an access fault, as on a machine of its own.
    Trap,
    /// The guest is stopped and reported.
    Stop,
}

/// A guest's program as it lies in memory before it starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// Guest-physical address of its first instruction; even.
    ///
    /// This address and those of the segments are as if the guest's memory began at [`GUEST_MEMORY_BASE`]. Where it begins elsewhere (`memory_at`), they move with it.
    pub entry: u64,
    /// Its parts, by address. They lie in the guest's memory and don't overlap; what is between them is zeros.
    pub segments: Vec<Segment>,
}

/// A part of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// Guest-physical address.
    pub address: u64,
    /// What it holds at the start.
    pub data: Payload,
    /// Its length in memory in bytes, at least that of `data`; the rest is zeros.
    pub memory: u64,
}

impl Image {
    /// One past its last byte as a guest-physical address.
    pub fn end(&self) -> u64 {
        self.segments.last().map_or(GUEST_MEMORY_BASE, |last| last.address.saturating_add(last.memory))
    }

    /// Bytes that it takes in a bootable image.
    pub fn stored(&self) -> u64 {
        self.segments.iter().map(|segment| segment.data.len).fold(0, u64::saturating_add)
    }
}

/// Bytes of a file in the bootable image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Payload {
    /// Offset from the start of the blob; a multiple of 4096.
    pub offset: u64,
    /// Length in bytes.
    pub len: u64,
}

/// One guest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Guest {
    /// Name for people; marks its console lines. `[a-z0-9-]+`, at most 16 characters.
    pub name: String,
    /// What the file of its program is.
    pub kind: Kind,
    /// Its program.
    pub image: Image,
    /// Initial RAM disk.
    pub initrd: Option<Payload>,
    /// Kernel command line, given as `/chosen/bootargs`.
    pub args: String,
    /// Size of its memory in bytes; a multiple of [`GUEST_MEMORY_ALIGN`]. It starts at [`GUEST_MEMORY_BASE`] in the guest's eyes, unless the manifest gives it a place.
    pub memory: u64,
    /// Its vCPUs; the index is the guest's hart id.
    pub vcpus: Vec<Vcpu>,
    /// Priority of its vCPUs, below [`PRIORITIES`](ainori_limits::PRIORITIES); the higher goes first.
    pub priority: u8,
    /// Where it is another one, under policies that rank guests hart by hart.
    pub priority_on: Vec<HartPriority>,
    /// How many quanta of the policy a turn of each of its vCPUs has among vCPUs of equal priority.
    pub weight: NonZeroU8,
    /// Devices of the board that this guest alone uses: paths in the board's device tree.
    pub devices: Vec<String>,
    /// The run does not wait for this guest to finish.
    pub background: bool,
    /// Whether it is started again when it has stopped.
    pub restart: Restarts,
    /// What becomes of accesses outside its memory.
    pub on_wild_access: OnWildAccess,
    /// For how long it may be silent before its watchdog has it stopped, in microseconds, at most [`MAX_WATCHDOG_US`]; 0: it has none.
    pub watchdog_us: u64,
}

impl Guest {
    /// The priority of its vCPUs on a hart (board hart id), under a policy that ranks by hart.
    pub fn priority_on(&self, hart: u64) -> u8 {
        let there = self.priority_on.iter().find(|there| u64::from(there.hart) == hart);
        there.map_or(self.priority, |there| there.priority)
    }
}

/// A guest's priority on one hart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HartPriority {
    /// Board hart id.
    pub hart: u32,
    /// Below [`PRIORITIES`](ainori_limits::PRIORITIES).
    pub priority: u8,
}

/// Whether a guest that has stopped is started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restarts {
    /// After which ends.
    pub when: Restart,
    /// At most so many times within [`Self::interval_us`], then it is given up; 1 to [`MAX_RESTART_LIMIT`].
    pub limit: u32,
    /// In microseconds, 1 to [`MAX_RESTART_INTERVAL_US`].
    pub interval_us: u64,
}

impl Default for Restarts {
    /// Never; and if a manifest says otherwise, as often as systemd does.
    fn default() -> Self {
        Self { when: Restart::Never, limit: 5, interval_us: 10_000_000 }
    }
}

/// One vCPU: where it may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vcpu {
    /// Hart (board hart id) that owns it at the start.
    pub home: u32,
    /// Set of board hart ids ([`HART_IDS`](ainori_limits::HART_IDS)) that it may move to, a bit each; contains `home`.
    pub harts: u64,
}

impl Vcpu {
    /// May it run on the hart with this board hart id? A board may have harts whose ids no manifest can name.
    pub fn may_run_on(&self, hart: u64) -> bool {
        u32::try_from(hart).is_ok_and(|hart| self.harts.checked_shr(hart).is_some_and(|rest| rest & 1 != 0))
    }
}

/// How a hart translates a guest's addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Translation {
    /// By the guest's tables, and then by those of the hypervisor: two stages.
    #[default]
    TwoStage,
    /// By tables that the hypervisor makes of both.
    Shadow(Shadow),
    /// By the guest's tables alone: its addresses are the board's, and nothing keeps it from any of them. Its memory has a place that the manifest gives.
    None,
}

/// The shadow tables of each vCPU of a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shadow {
    /// For how many address spaces of the guest.
    pub spaces: ShadowSpaces,
    /// How many tables; one of [`SHADOW_TABLES`].
    pub tables: u16,
    /// Whose tables are taken when all are in use.
    pub reclaim: ShadowReclaim,
    /// Breakpoints stand for privileged instructions that have trapped. Never on harts with the H extension, where they don't trap.
    pub breakpoints: bool,
}

/// For how many address spaces a vCPU has shadow tables at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShadowSpaces {
    /// For the one that it is in: they are emptied when it goes to another one.
    Single,
    /// For the last [`MOST_SHADOW_SPACES`] that it was in.
    Multi,
}

/// Whose shadow tables are taken when all are in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShadowReclaim {
    /// The one that has been in use for longest.
    #[default]
    Fifo,
    /// All of the address space that was in use least recently.
    PageDirectoryLru,
}

/// Most address spaces that a vCPU has shadow tables for.
pub const MOST_SHADOW_SPACES: usize = 16;
/// How many shadow tables a vCPU can have. With fewer, an instruction that needs four pages at once could fault for ever
/// (`tables_needed` of the shadow crate); with more, they are hardly meant.
pub const SHADOW_TABLES: core::ops::RangeInclusive<u16> = 36..=8192;
/// The fewest of a vCPU that has them for several address spaces on harts without the H extension: each has a root for what a program sees of it, and two for its kernel.
pub const FEWEST_SHADOW_TABLES_WITHOUT_H: u16 = 68;
/// How many it has if nobody says.
pub const DEFAULT_SHADOW_TABLES: u16 = 256;
/// Bytes that the hypervisor needs for a shadow table: a page, and what it knows of it.
pub const SHADOW_TABLE_SIZE: u64 = 4096 + 128;

impl Shadow {
    /// Address spaces that a vCPU has tables for.
    #[must_use]
    pub const fn space_count(self) -> usize {
        match self.spaces {
            ShadowSpaces::Single => 1,
            ShadowSpaces::Multi => MOST_SHADOW_SPACES,
        }
    }
}

impl Translation {
    /// The shadow tables, if there are any.
    #[must_use]
    pub const fn shadow(self) -> Option<Shadow> {
        match self {
            Self::TwoStage | Self::None => None,
            Self::Shadow(shadow) => Some(shadow),
        }
    }

    /// Is the guest confined to what is its own? If not, no access of it comes to the hypervisor either: it can have no virtual device.
    #[must_use]
    pub const fn confines(self) -> bool {
        !matches!(self, Self::None)
    }
}
