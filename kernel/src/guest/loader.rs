//! Putting a guest's program into its memory.
use ainori_manifest::config::{GUEST_MEMORY_BASE, Kind, Payload};
use ainori_manifest::layout::{Layout, TREE_SIZE};

use alloc::{vec, vec::Vec};

use super::Guest;
use super::program::Part;
use crate::memory::GuestPhysical;

/// A guest's program in its memory.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// Address of its first instruction.
    pub entry: u64,
    /// Where the parts behind its image are.
    pub layout: Layout,
    /// What was copied.
    pub parts: Vec<Part>,
}

/// Why a guest can't be loaded. The command-line tool checks all of it before; a blob from elsewhere may still be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Error {
    /// The image isn't what the manifest says.
    NotAnImage,
    /// Its parts don't fit into its memory.
    TooSmall,
}

impl core::fmt::Display for Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::NotAnImage => {
                "its image is not of the kind that the manifest says; check it with `ainori check`"
            }
            Self::TooSmall => "its memory is too small for its image; give it more in the manifest",
        })
    }
}

/// Copies image and RAM disk of a guest from `blob` into its memory.
///
/// # Errors
/// See [`Error`].
pub fn load(guest: &Guest, blob: &'static [u8]) -> Result<Loaded, Error> {
    let image = bytes(blob, guest.config.image).ok_or(Error::NotAnImage)?;
    let (entry, end, mut parts) = match guest.config.kind {
        Kind::Linux => load_linux(guest, image)?,
        Kind::Elf => load_elf(guest, image)?,
    };
    let initrd = match guest.config.initrd {
        None => None,
        Some(payload) => Some(bytes(blob, payload).ok_or(Error::NotAnImage)?),
    };
    let layout = Layout::behind(end, initrd.map(|initrd| initrd.len() as u64)).ok_or(Error::TooSmall)?;
    if let (Some(initrd), Some(place)) = (initrd, &layout.initrd) {
        parts.push(write(guest, place.start, initrd)?);
    }
    guest.locate(GuestPhysical(layout.tree.start), TREE_SIZE).ok_or(Error::TooSmall)?;
    Ok(Loaded { entry, layout, parts })
}

fn bytes(blob: &'static [u8], payload: Payload) -> Option<&'static [u8]> {
    blob.get(payload.offset as usize..)?.get(..payload.len as usize)
}

/// Copies bytes into a guest's memory, before it runs.
///
/// # Errors
/// [`Error::TooSmall`] if they don't fit.
pub fn write(guest: &Guest, address: u64, from: &'static [u8]) -> Result<Part, Error> {
    let to = guest.locate(GuestPhysical(address), from.len() as u64).ok_or(Error::TooSmall)?;
    // SAFETY: the range lies in the guest's memory, which no Rust object shares, and no vCPU of it runs yet.
    unsafe { core::ptr::copy_nonoverlapping(from.as_ptr(), to.0 as *mut u8, from.len()) };
    Ok(Part { offset: to.0 - guest.memory.0, bytes: from })
}

fn zero(guest: &Guest, address: u64, size: u64) -> Result<(), Error> {
    let to = guest.locate(GuestPhysical(address), size).ok_or(Error::TooSmall)?;
    // SAFETY: as in `write`.
    unsafe { core::ptr::write_bytes(to.0 as *mut u8, 0, size as usize) };
    Ok(())
}

fn field(image: &[u8], offset: usize, size: usize) -> Option<u64> {
    let mut value = [0; 8];
    value[..size].copy_from_slice(image.get(offset..offset + size)?);
    Some(u64::from_le_bytes(value))
}

/// Linux's `Image`: header of Documentation/arch/riscv/boot-image-header.rst.
fn load_linux(guest: &Guest, image: &'static [u8]) -> Result<(u64, u64, Vec<Part>), Error> {
    const MAGIC: u64 = u32::from_le_bytes(*b"RSC\x05") as u64;
    let header = |offset, size| field(image, offset, size).ok_or(Error::NotAnImage);
    if header(56, 4)? != MAGIC {
        return Err(Error::NotAnImage);
    }
    let entry = GUEST_MEMORY_BASE.checked_add(header(8, 8)?).ok_or(Error::NotAnImage)?;
    let size = header(16, 8)?.max(image.len() as u64);
    let part = write(guest, entry, image)?;
    Ok((entry, entry.checked_add(size).ok_or(Error::TooSmall)?, vec![part]))
}

/// A static ELF for riscv64: loadable segments at their physical addresses.
fn load_elf(guest: &Guest, image: &'static [u8]) -> Result<(u64, u64, Vec<Part>), Error> {
    const LOAD: u64 = 1;
    const ENTRY: usize = 24;
    const PROGRAM_HEADERS: usize = 32;
    const PROGRAM_HEADER_SIZE: usize = 54;
    const PROGRAM_HEADER_COUNT: usize = 56;
    let header = |offset, size| field(image, offset, size).ok_or(Error::NotAnImage);
    if image.get(..5) != Some(b"\x7fELF\x02") {
        return Err(Error::NotAnImage);
    }
    let table = header(PROGRAM_HEADERS, 8)? as usize;
    let size = header(PROGRAM_HEADER_SIZE, 2)? as usize;
    let mut end = 0;
    let mut parts = Vec::new();
    for index in 0..header(PROGRAM_HEADER_COUNT, 2)? as usize {
        let at = table.checked_add(index * size).ok_or(Error::NotAnImage)?;
        if header(at, 4)? != LOAD {
            continue;
        }
        let (offset, address) = (header(at + 8, 8)?, header(at + 24, 8)?);
        let (in_file, in_memory) = (header(at + 32, 8)?, header(at + 40, 8)?);
        let data = bytes(image, Payload { offset, len: in_file }).ok_or(Error::NotAnImage)?;
        parts.push(write(guest, address, data)?);
        zero(guest, address + in_file, in_memory.checked_sub(in_file).ok_or(Error::NotAnImage)?)?;
        end = end.max(address + in_memory);
    }
    Ok((header(ENTRY, 8)?, end, parts))
}
