//! Putting a guest's program into its memory. The tool has taken the file apart ([`ainori_manifest::config::Image`]): here are only
//! bytes and where they go.
use alloc::vec::Vec;

use ainori_manifest::blob;
use ainori_manifest::config::GUEST_MEMORY_BASE;
use ainori_manifest::layout::Layout;

use super::Guest;
use super::program::Part;
use crate::arch::clear::Clearer;
use crate::memory::GuestPhysical;

/// (All addresses here are as if the guest's memory began at [`GUEST_MEMORY_BASE`].) Fills a guest's memory: its program and RAM disk, taken from `blob`, and zeros everywhere else, so that it finds nothing of what
/// was there before. The place of its device tree is left for the caller to fill. Returns what lies where; `None` if there is too little
/// memory for all of it.
pub fn load(guest: &Guest, blob: &'static [u8], clearer: &Clearer) -> Option<(Layout, Vec<Part>)> {
    let image = &guest.config.image;
    let initrd = guest.config.initrd.map(|payload| blob::payload(blob, payload));
    let layout = Layout::of(guest.config.memory, image.end(), initrd.map(|initrd| initrd.len() as u64))?;
    let mut end = GUEST_MEMORY_BASE;
    let parts = image.segments.iter().map(|segment| (segment.address, blob::payload(blob, segment.data)));
    let initrd = initrd.zip(layout.initrd.as_ref()).map(|(initrd, place)| (place.start, initrd));
    let mut loaded = Vec::new();
    for (address, bytes) in parts.chain(initrd) {
        clear(guest, end, address, clearer)?;
        loaded.push(write(guest, address, bytes)?);
        end = address + bytes.len() as u64;
    }
    clear(guest, end, GUEST_MEMORY_BASE + guest.config.memory, clearer)?;
    Some((layout, loaded))
}

/// Copies bytes into a guest's memory, before it runs. `None` if they don't fit.
pub fn write(guest: &Guest, address: u64, from: &'static [u8]) -> Option<Part> {
    let to = guest.space.locate(GuestPhysical(guest.space.translation.moved(address)), from.len() as u64)?;
    // SAFETY: the range lies in the guest's memory, which no Rust object shares, and no vCPU of it runs yet.
    unsafe { core::ptr::copy_nonoverlapping(from.as_ptr(), to.0 as *mut u8, from.len()) };
    Some(Part { offset: to.0 - guest.space.memory().start, bytes: from })
}

/// Writes zeros to `start..end` of a guest's memory. `None` if that isn't all its own.
fn clear(guest: &Guest, start: u64, end: u64, clearer: &Clearer) -> Option<()> {
    let size = end.checked_sub(start)?;
    let at = guest.space.locate(GuestPhysical(guest.space.translation.moved(start)), size)?;
    // SAFETY: as in `write`.
    unsafe { clearer.clear(at, size) };
    Some(())
}
