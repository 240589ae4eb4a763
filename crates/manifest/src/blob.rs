//! The blob: the part of a bootable image that describes the system and carries its guests.
//!
//! It begins on a page boundary behind the hypervisor's own image (`__image_end`):
//!
//! ```text
//! offset            length
//! 0                 8       magic, "AINORI\0\x01"
//! 8                 4       version of this format, little-endian
//! 12                4       length of the system description, little-endian
//! 16                8       length of the whole blob, little-endian; a multiple of the page size
//! 24                ...     the system description: a `System` in postcard's encoding, and what `spaces` says
//! page-aligned      ...     payloads (parts of programs, RAM disks), each on a page boundary, zeros between
//! ```
//!
//! Equal payloads are there once, so a payload must be copied out, never run in place.
use crate::config::{
    GUEST_MEMORY_ALIGN, GUEST_MEMORY_BASE, Guest, MAX_ADVANCE_US, MAX_GRACE_US, MIN_QUANTUM_US, Payload,
    System,
};
use ainori_limits::{
    CHANNEL_SIZE, GUEST_CHANNELS, HART_IDS, MAX_CHANNELS, MAX_GUEST_VCPUS, MAX_GUESTS, MAX_VCPUS, PRIORITIES,
};
use core::fmt;

/// First bytes of a blob.
pub const MAGIC: [u8; 8] = *b"AINORI\0\x01";
/// Version of the format. It changes with the format and with [`System`].
pub const VERSION: u32 = 7;
/// Length of the header in bytes: what [`length`] needs.
pub const HEADER_LEN: usize = 24;
/// Payloads start at multiples of this many bytes, and the blob's length is one.
pub const PAGE: usize = ainori_limits::PAGE as usize;

/// Why bytes are not a blob that can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Error {
    /// Fewer bytes than the header, or than the header says.
    Truncated,
    /// The first bytes are not [`MAGIC`].
    Magic,
    /// Written by a tool with another format version (the one found is in the value).
    Version(u32),
    /// The header's lengths contradict each other.
    Header,
    /// The system description can't be decoded.
    Description,
    /// A payload of this guest (index) lies outside the blob or is not page-aligned.
    Payload(usize),
    /// The description breaks a limit; the text says which.
    Limit(&'static str),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("the blob is cut off"),
            Self::Magic => f.write_str("no blob here: build the image with `ainori build`"),
            Self::Version(found) => {
                write!(
                    f,
                    "blob format {found}, but this hypervisor reads {VERSION}: build both from one version"
                )
            }
            Self::Header => f.write_str("the lengths in the blob's header contradict each other"),
            Self::Description => f.write_str("the system description can't be decoded"),
            Self::Payload(guest) => write!(f, "a file of guest {guest} lies outside the blob"),
            Self::Limit(what) => write!(f, "the system description breaks a limit: {what}"),
        }
    }
}

impl core::error::Error for Error {}

/// Length of the whole blob in bytes as its header says; reads no more than [`HEADER_LEN`] bytes.
///
/// For a loader that knows where a blob starts but not how long it is.
pub fn length(header: &[u8]) -> Result<usize, Error> {
    Header::read(header).map(|header| header.total)
}

/// Decodes and checks the description in a blob. Bytes behind the blob's own length are ignored.
///
/// What is returned can be relied on: every payload lies inside the blob, and the kernel's limits hold (numbers of guests and vCPUs, priorities,
/// times, homes, each image's place in its guest's memory). Lengths of names and counts of restarts are as the tool wrote them.
pub fn decode(blob: &[u8]) -> Result<System, Error> {
    let header = Header::read(blob)?;
    let blob = blob.get(..header.total).ok_or(Error::Truncated)?;
    let description = blob.get(HEADER_LEN..HEADER_LEN + header.description).ok_or(Error::Header)?;
    let system: System = postcard::from_bytes(description).map_err(|_| Error::Description)?;
    check_limits(&system)?;
    for (index, guest) in system.guests.iter().enumerate() {
        for payload in payloads_of(guest) {
            if payload.offset % PAGE as u64 != 0 || range(blob, payload).is_none() {
                return Err(Error::Payload(index));
            }
        }
    }
    Ok(system)
}

fn payloads_of(guest: &Guest) -> impl Iterator<Item = Payload> {
    guest.image.segments.iter().map(|segment| segment.data).chain(guest.initrd)
}

/// The bytes of a payload of the [`System`] that was decoded from this very `blob`.
///
/// # Panics
/// If the payload lies outside `blob`, which [`decode`] has excluded.
#[expect(clippy::expect_used, reason = "only at boot, with payloads that were checked")]
pub fn payload(blob: &[u8], payload: Payload) -> &[u8] {
    range(blob, payload).expect("a payload of another blob")
}

fn range(blob: &[u8], payload: Payload) -> Option<&[u8]> {
    let start = usize::try_from(payload.offset).ok()?;
    let end = start.checked_add(usize::try_from(payload.len).ok()?)?;
    blob.get(start..end)
}

struct Header {
    /// Length of the description in bytes.
    description: usize,
    /// Length of the blob in bytes.
    total: usize,
}

impl Header {
    #[expect(clippy::expect_used, reason = "the parts are as long as the whole")]
    fn read(bytes: &[u8]) -> Result<Self, Error> {
        let bytes: &[u8; HEADER_LEN] = bytes.first_chunk().ok_or(Error::Truncated)?;
        let (magic, rest) = bytes.split_first_chunk().expect("a part of HEADER_LEN");
        let (version, rest) = rest.split_first_chunk().expect("a part of HEADER_LEN");
        let (description, rest) = rest.split_first_chunk().expect("a part of HEADER_LEN");
        let total = rest.first_chunk().expect("a part of HEADER_LEN");
        if *magic != MAGIC {
            return Err(Error::Magic);
        }
        let version = u32::from_le_bytes(*version);
        if version != VERSION {
            return Err(Error::Version(version));
        }
        let description = u32::from_le_bytes(*description) as usize;
        let total = usize::try_from(u64::from_le_bytes(*total)).map_err(|_| Error::Header)?;
        let fits = description.checked_add(HEADER_LEN).is_some_and(|end| end <= total);
        if fits { Ok(Self { description, total }) } else { Err(Error::Header) }
    }
}

// The harts of a vCPU are a word with a bit for each id.
const _: () = assert!(HART_IDS == u64::BITS);

/// The limits that the rest of the hypervisor is built on. The manifest's checks give better messages; these only
/// make sure that no blob, however made, breaks what the kernel assumes.
fn check_limits(system: &System) -> Result<(), Error> {
    let require = |holds: bool, what| if holds { Ok(()) } else { Err(Error::Limit(what)) };
    require((1..=MAX_GUESTS).contains(&system.guests.len()), "number of guests")?;
    let vcpus: usize = system.guests.iter().map(|guest| guest.vcpus.len()).sum();
    require(vcpus <= MAX_VCPUS, "number of vCPUs")?;
    require(system.policy.quantum_us >= MIN_QUANTUM_US, "quantum too short")?;
    require((1..=MAX_GRACE_US).contains(&system.policy.grace_us), "grace out of range")?;
    require(system.policy.advance_us <= MAX_ADVANCE_US, "advance out of range")?;
    let in_list = |index: u32| usize::try_from(index).is_ok_and(|index| index < system.guests.len());
    require(system.windows.iter().all(|window| in_list(window.guest)), "a window is no guest's")?;
    let input = system.console_input.map_or(Some(0), |index| usize::try_from(index).ok());
    require(input.is_some_and(|index| index < system.guests.len()), "console input goes to no guest")?;
    let records = system.trace.records;
    require(records == 0 || records.is_power_of_two(), "trace records not a power of two")?;
    require(system.channels.len() <= MAX_CHANNELS, "number of channels")?;
    for channel in &system.channels {
        let [first, second] = channel.ends.map(|end| end as usize);
        let known = first.max(second) < system.guests.len();
        require(known && first != second, "a channel that isn't between two guests")?;
        let fits = channel.size.is_multiple_of(PAGE as u64) && (1..=CHANNEL_SIZE).contains(&channel.size);
        require(fits, "size of a channel")?;
    }
    let channels = (0..system.guests.len()).map(|guest| system.channels_of(guest).count());
    require(channels.max() <= Some(GUEST_CHANNELS), "number of a guest's channels")?;
    system.guests.iter().try_for_each(|guest: &Guest| {
        require(!guest.vcpus.is_empty(), "a guest without vCPU")?;
        require(guest.vcpus.len() <= MAX_GUEST_VCPUS, "number of a guest's vCPUs")?;
        let others = guest.priority_on.iter().map(|there| there.priority);
        require(others.chain([guest.priority]).all(|one| one < PRIORITIES), "priority out of range")?;
        let aligned = guest.memory != 0 && guest.memory.is_multiple_of(GUEST_MEMORY_ALIGN);
        require(aligned, "guest memory not a multiple of 2 MiB")?;
        require(is_placed(guest), "an image that doesn't fit its guest's memory")?;
        let at_home = guest.vcpus.iter().all(|vcpu| vcpu.may_run_on(vcpu.home.into()));
        require(at_home, "a vCPU's home is not in its harts")
    })
}

/// The segments lie one behind the other in the guest's memory, none with more bytes than room, and the guest starts in it.
fn is_placed(guest: &Guest) -> bool {
    let Some(memory_end) = GUEST_MEMORY_BASE.checked_add(guest.memory) else { return false };
    let mut end = GUEST_MEMORY_BASE;
    let in_order = guest.image.segments.iter().all(|segment| {
        let follows = segment.address >= end && segment.data.len <= segment.memory;
        let segment_end = segment.address.checked_add(segment.memory);
        end = segment_end.unwrap_or(u64::MAX);
        follows && end <= memory_end
    });
    in_order
        && (GUEST_MEMORY_BASE..memory_end).contains(&guest.image.entry)
        && guest.image.entry.is_multiple_of(2)
}

/// The bytes of one guest, to be put into a blob.
#[cfg(feature = "host")]
#[derive(Debug, Clone, Default)]
pub struct GuestFiles<'a> {
    /// Those of its program's segments, in their order.
    pub segments: alloc::vec::Vec<&'a [u8]>,
    /// Initial RAM disk.
    pub initrd: Option<&'a [u8]>,
}

/// Makes a blob of a system, and for each guest in the same order its memory space, and its bytes. The payload
/// fields of `system` are filled in.
///
/// # Panics
/// If `spaces` or `files` has another length than `system.guests`, or one of them not as many segments as its guest.
#[cfg(feature = "host")]
pub fn encode(mut system: System, spaces: &[Space], files: &[GuestFiles<'_>]) -> alloc::vec::Vec<u8> {
    assert_eq!(system.guests.len(), spaces.len(), "one space per guest");
    assert_eq!(system.guests.len(), files.len(), "one entry of files per guest");
    let mut payloads = Payloads::default();
    for (guest, files) in system.guests.iter_mut().zip(files) {
        assert_eq!(guest.image.segments.len(), files.segments.len(), "one entry for each segment");
        for (segment, bytes) in guest.image.segments.iter_mut().zip(&files.segments) {
            segment.data = payloads.add(bytes);
        }
        guest.initrd = files.initrd.map(|initrd| payloads.add(initrd));
    }

    // The offsets count from the blob's start, so they depend on the description's length, which depends, as
    // integers have variable length, on the offsets. One step up or two settle it.
    let mut start = PAGE;
    let description = loop {
        let mut placed = system.clone();
        for guest in &mut placed.guests {
            let segments = guest.image.segments.iter_mut().map(|segment| &mut segment.data);
            segments.chain(&mut guest.initrd).for_each(|payload| payload.offset += start as u64);
        }
        let mut bytes = postcard::to_allocvec(&placed).expect("a System has only types that postcard knows");
        bytes.extend(spaces::encode(spaces));
        let needed = (HEADER_LEN + bytes.len()).next_multiple_of(PAGE);
        if needed <= start {
            break bytes;
        }
        start = needed;
    };

    let total = start + payloads.end;
    let mut blob = alloc::vec::Vec::with_capacity(total);
    blob.extend(MAGIC);
    blob.extend(VERSION.to_le_bytes());
    blob.extend(u32::try_from(description.len()).expect("a description is small").to_le_bytes());
    blob.extend((total as u64).to_le_bytes());
    blob.extend(description);
    for (payload, bytes) in payloads.placed {
        blob.resize(start + usize::try_from(payload.offset).expect("sizes on the host"), 0);
        blob.extend(bytes);
    }
    blob.resize(total, 0);
    blob
}

/// Payloads to be placed one behind the other; offsets count from the first. Equal ones are placed once.
#[cfg(feature = "host")]
#[derive(Default)]
struct Payloads<'a> {
    placed: alloc::vec::Vec<(Payload, &'a [u8])>,
    end: usize,
}

#[cfg(feature = "host")]
impl<'a> Payloads<'a> {
    fn add(&mut self, bytes: &'a [u8]) -> Payload {
        if let Some((payload, _)) = self.placed.iter().find(|(_, known)| *known == bytes) {
            return *payload;
        }
        let payload = Payload { offset: self.end as u64, len: bytes.len() as u64 };
        self.placed.push((payload, bytes));
        self.end += bytes.len().next_multiple_of(PAGE);
        payload
    }
}

#[cfg(feature = "shadow")]
mod spaces;
#[cfg(feature = "shadow")]
pub use spaces::{Space, spaces};

#[cfg(all(test, feature = "host"))]
mod tests;
