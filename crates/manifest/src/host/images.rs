//! Guests' programs: what a file is, what of it goes where in the guest's memory, and where the guest starts.
//!
//! All formats end here: the hypervisor gets a list of segments and an entry, and knows none of them.
mod elf;
mod linux;
mod machine_mode;
mod raw;
mod relocations;

use super::units::show_size;
use crate::{
    config::{self, GUEST_MEMORY_ALIGN, GUEST_MEMORY_BASE, Kind, Payload},
    layout::Layout,
};
use serde::Serialize;
use std::{borrow::Cow, ops::Range};

/// Where in a guest's memory a program is put that could be anywhere: where OpenSBI hands over to its payload on QEMU's `virt`, whose memory begins at [`GUEST_MEMORY_BASE`].
const DEFAULT_LOAD_OFFSET: u64 = 0x20_0000;

/// What a manifest says of where a program goes, beside the file itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Places {
    /// `load_address`: where its first byte goes.
    pub load: Option<u64>,
    /// `entry`: its first instruction.
    pub entry: Option<u64>,
    /// `memory_at`: where its guest's memory begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_at: Option<u64>,
}

impl Places {
    /// Where its guest's memory begins, in the guest's eyes.
    #[must_use]
    pub fn memory_base(self) -> u64 {
        self.memory_at.unwrap_or(GUEST_MEMORY_BASE)
    }

    /// The guest's `memory` bytes.
    pub(super) fn memory(self, memory: u64) -> Range<u64> {
        self.memory_base()..self.memory_base().saturating_add(memory)
    }

    /// Where a program goes that could be anywhere, and of which nothing is said.
    fn usual_load_address(self) -> u64 {
        self.memory_base().saturating_add(DEFAULT_LOAD_OFFSET)
    }
}

/// A program as it lies in a guest's memory before it starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program<'a> {
    /// Guest-physical address of its first instruction.
    pub entry: u64,
    /// Its parts, by address. They don't overlap.
    pub segments: Vec<Segment<'a>>,
}

/// A part of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment<'a> {
    /// Guest-physical address.
    pub address: u64,
    /// What it holds at the start.
    pub bytes: Cow<'a, [u8]>,
    /// Its length in memory, at least that of `bytes`: the rest is zeros.
    pub memory: u64,
}
/// Longest image in bytes that is read though its guest has less memory: most of an ELF file can be symbols for a debugger.
pub const MAX_FILE: u64 = 256 << 20;

/// Why a file is not a usable image, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What is wrong; follows the file's name, e.g. "is not a Linux Image".
    pub what: String,
    /// What would be right.
    pub help: String,
}

impl Problem {
    fn new(what: impl Into<String>, help: impl Into<String>) -> Self {
        Self { what: what.into(), help: help.into() }
    }
}

/// One past the guest-physical addresses that a guest can have (Sv39x4: 41 bits, privileged specification 19.5).
const ADDRESSES_END: u64 = 1 << 41;

/// Reads a file of this kind for a guest with `memory` bytes and a RAM disk of `initrd_len`.
pub fn read(
    kind: Kind,
    file: &[u8],
    memory: u64,
    initrd_len: Option<u64>,
    places: Places,
) -> Result<Program<'_>, Problem> {
    let mut program = match kind {
        Kind::Linux => linux::read(file, places),
        Kind::Elf => elf::read(file, memory, places),
        Kind::Raw => raw::read(file, places),
    }?;
    program.segments.sort_by_key(|segment| segment.address);
    program.check(places.memory(memory), initrd_len)?;
    match machine_mode::find(&program) {
        None => Ok(program),
        Some(found) => Err(Problem::new(
            format!("is a program for machine mode: {found}, which only a machine's own firmware may"),
            "a guest starts in supervisor mode, on the SBI: build it for that (S-mode)",
        )),
    }
}

/// The least memory that a manifest can give a guest whose image ends so many bytes behind the memory's begin, in words.
pub fn least_memory(image_end: u64, initrd_len: Option<u64>) -> String {
    let needed = Layout::least_memory(GUEST_MEMORY_BASE.saturating_add(image_end), initrd_len);
    show_size(needed.div_ceil(GUEST_MEMORY_ALIGN).saturating_mul(GUEST_MEMORY_ALIGN))
}

impl<'a> Program<'a> {
    /// Puts a file beside it into its guest's memory, as it is, at this guest-physical address. `memory` is all that the guest has.
    ///
    /// # Errors
    /// The file is empty, doesn't lie in the guest's memory, or where something else is.
    pub fn add(&mut self, address: u64, bytes: &'a [u8], memory: Range<u64>) -> Result<(), Problem> {
        if bytes.is_empty() {
            return Err(Problem::new("is empty", "name a file that has something to load"));
        }
        let end = address.checked_add(bytes.len() as u64).filter(|end| *end <= memory.end);
        let Some(end) = end.filter(|_| address >= memory.start) else {
            return Err(Problem::new(
                format!(
                    "has {} bytes: at {address:#x} it would lie outside the guest's memory {:#x}..{:#x}",
                    bytes.len(),
                    memory.start,
                    memory.end
                ),
                "choose another address, or give the guest more memory",
            ));
        };
        let place = self.segments.partition_point(|segment| segment.address < address);
        let ends_before = |segment: &Segment<'_>| segment.address + segment.memory <= address;
        let is_free = self.segments[..place].last().is_none_or(ends_before)
            && self.segments.get(place).is_none_or(|next| end <= next.address);
        if !is_free {
            return Err(Problem::new(
                format!("would lie at {address:#x}..{end:#x}, where the guest's program or another file is"),
                format!("all of that ends at {:#x}", self.end()),
            ));
        }
        let segment = Segment { address, bytes: Cow::Borrowed(bytes), memory: bytes.len() as u64 };
        self.segments.insert(place, segment);
        Ok(())
    }
}

impl Program<'_> {
    /// One past its last byte; 0 if it has none.
    pub fn end(&self) -> u64 {
        self.segments.last().map_or(0, |last| last.address.saturating_add(last.memory))
    }

    /// As the hypervisor is told of it, for a guest whose memory begins at `base`; the payloads have their lengths, but no offsets yet.
    pub fn describe(&self, base: u64) -> config::Image {
        // As if the memory began where it does for most guests.
        let moved = |address: u64| address.wrapping_sub(base).wrapping_add(GUEST_MEMORY_BASE);
        let segments = self.segments.iter().map(|segment| config::Segment {
            address: moved(segment.address),
            data: Payload { offset: 0, len: segment.bytes.len() as u64 },
            memory: segment.memory,
        });
        config::Image { entry: moved(self.entry), segments: segments.collect() }
    }

    /// The bytes of the program from an address on, as far as its segment goes.
    fn bytes_at(&self, address: u64) -> &[u8] {
        self.segments
            .iter()
            .find_map(|segment| {
                let offset = usize::try_from(address.checked_sub(segment.address)?).ok()?;
                segment.bytes.get(offset..)
            })
            .unwrap_or_default()
    }

    /// The segments lie in the guest's memory, and the guest starts in one of them.
    fn check(&self, memory: Range<u64>, initrd_len: Option<u64>) -> Result<(), Problem> {
        let mut last_end = memory.start;
        for segment in &self.segments {
            let start = segment.address;
            let end = start.checked_add(segment.memory);
            if start < memory.start || end.is_none_or(|end| end > memory.end) {
                let help = match end {
                    Some(end) if start >= memory.start && end <= ADDRESSES_END => format!(
                        "link or load it inside the guest's memory, or give the guest at least {}",
                        least_memory(self.end() - memory.start, initrd_len)
                    ),
                    _ => "link or load it inside the guest's memory".into(),
                };
                let end = end.unwrap_or(u64::MAX);
                return Err(Problem::new(
                    format!(
                        "takes {start:#x}..{end:#x}, outside the guest's memory {:#x}..{:#x}",
                        memory.start, memory.end
                    ),
                    help,
                ));
            }
            if start < last_end {
                return Err(Problem::new(
                    format!("has segments that overlap at {start:#x}"),
                    "correct the linker script",
                ));
            }
            last_end = end.unwrap_or(u64::MAX);
        }
        let holds_entry = |segment: &Segment<'_>| {
            self.entry.checked_sub(segment.address).is_some_and(|offset| offset < segment.memory)
        };
        if !self.entry.is_multiple_of(2) {
            return Err(Problem::new(
                format!("starts at {:#x}, an odd address, where no instruction can be", self.entry),
                "give an even address: as the key `entry`, as `load_address` if it starts with its first byte, or with ENTRY in the linker script",
            ));
        }
        if !self.segments.iter().any(holds_entry) {
            return Err(Problem::new(
                format!("starts at {:#x}, where it has no code", self.entry),
                "set ENTRY in the linker script, or the key `entry`, to the address of its first instruction",
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod tests;
