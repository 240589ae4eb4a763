//! The memory spaces of guests, how their addresses are translated: what is behind the `System` in a description.
//!
//! It is there only if a guest hasn't two stages, or has its memory at a place that its manifest gives; and only a hypervisor that is built for that looks for it. The places are behind the
//! translations, and left out if there are none.
use super::{Error, HEADER_LEN, Header};
use crate::config::{GUEST_MEMORY_ALIGN, SHADOW_TABLES, System, Translation};
use alloc::vec::Vec;

/// How a guest's addresses are translated, and where its memory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Space {
    /// How its addresses are translated.
    pub translation: Translation,
    /// Where its memory begins, on the board and in its own eyes, if the manifest says so; a multiple of [`GUEST_MEMORY_ALIGN`].
    pub memory_at: Option<u64>,
}

/// The memory space of each guest, in the order of the [`System`] that was [decoded](super::decode) from this very `blob`.
///
/// # Errors
/// What is there can't be decoded, or breaks a limit.
pub fn spaces(blob: &[u8]) -> Result<Vec<Space>, Error> {
    let header = Header::read(blob)?;
    let description = blob.get(HEADER_LEN..HEADER_LEN + header.description).ok_or(Error::Header)?;
    let (system, rest): (System, _) =
        postcard::take_from_bytes(description).map_err(|_| Error::Description)?;
    let count = system.guests.len();
    if rest.is_empty() {
        return Ok(alloc::vec![Space::default(); count]);
    }
    let (translations, rest): (Vec<Translation>, _) =
        postcard::take_from_bytes(rest).map_err(|_| Error::Description)?;
    let places: Vec<Option<u64>> = match rest {
        [] => alloc::vec![None; count],
        rest => postcard::from_bytes(rest).map_err(|_| Error::Description)?,
    };
    if translations.len() != count || places.len() != count {
        return Err(Error::Limit("number of translations"));
    }
    let all = translations.into_iter().zip(places).zip(&system.guests);
    all.map(|((translation, memory_at), guest)| {
        let space = Space { translation, memory_at };
        space.check(guest.memory).map(|()| space)
    })
    .collect()
}

impl Space {
    /// For a guest with so many bytes of memory.
    fn check(self, memory: u64) -> Result<(), Error> {
        if self.translation.shadow().is_some_and(|shadow| !SHADOW_TABLES.contains(&shadow.tables)) {
            return Err(Error::Limit("number of shadow tables"));
        }
        if !self.translation.confines() && self.memory_at.is_none() {
            return Err(Error::Limit("a guest without protection whose memory has no place"));
        }
        let is_placed = |at: u64| at.is_multiple_of(GUEST_MEMORY_ALIGN) && at.checked_add(memory).is_some();
        if self.memory_at.is_none_or(is_placed) {
            Ok(())
        } else {
            Err(Error::Limit("a place of a guest's memory"))
        }
    }
}

/// What is put behind the `System`.
#[cfg(feature = "host")]
pub(super) fn encode(spaces: &[Space]) -> Vec<u8> {
    if spaces.iter().all(|space| *space == Space::default()) {
        return Vec::new();
    }
    let translations: Vec<Translation> = spaces.iter().map(|space| space.translation).collect();
    let mut bytes =
        postcard::to_allocvec(&translations).expect("a Translation has only types that postcard knows");
    let places: Vec<Option<u64>> = spaces.iter().map(|space| space.memory_at).collect();
    if places.iter().any(Option::is_some) {
        bytes.extend(postcard::to_allocvec(&places).expect("an address is a type that postcard knows"));
    }
    bytes
}
