//! How guests' addresses are translated: what is behind the `System` in a description.
//!
//! It is there only if a guest has shadow tables, and only a hypervisor that is built for those looks for it.
use super::{Error, HEADER_LEN, Header};
use crate::config::{SHADOW_TABLES, System, Translation};
use alloc::vec::Vec;

/// The translation of each guest, in the order of the [`System`] that was [decoded](super::decode) from this very `blob`.
///
/// # Errors
/// What is there can't be decoded, or breaks a limit.
pub fn translations(blob: &[u8]) -> Result<Vec<Translation>, Error> {
    let header = Header::read(blob)?;
    let description = blob.get(HEADER_LEN..HEADER_LEN + header.description).ok_or(Error::Header)?;
    let (system, rest): (System, _) =
        postcard::take_from_bytes(description).map_err(|_| Error::Description)?;
    let count = system.guests.len();
    if rest.is_empty() {
        return Ok(alloc::vec![Translation::TwoStage; count]);
    }
    let all: Vec<Translation> = postcard::from_bytes(rest).map_err(|_| Error::Description)?;
    if all.len() != count {
        return Err(Error::Limit("number of translations"));
    }
    let are_in_range = |translation: &Translation| {
        translation.shadow().is_none_or(|shadow| SHADOW_TABLES.contains(&shadow.tables))
    };
    if all.iter().all(are_in_range) { Ok(all) } else { Err(Error::Limit("number of shadow tables")) }
}

/// What is put behind the `System`.
#[cfg(feature = "host")]
pub(super) fn encode(translations: &[Translation]) -> Vec<u8> {
    if translations.iter().all(|translation| *translation == Translation::TwoStage) {
        return Vec::new();
    }
    postcard::to_allocvec(translations).expect("a Translation has only types that postcard knows")
}
