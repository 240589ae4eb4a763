//! Files that a guest finds in its memory beside its program (`[[guest.load]]`): for a boot loader its payload, for a program its tables.
use super::guest;
use crate::host::{
    Load,
    findings::Finding,
    reader::{Address, At},
    schema::LoadDraft,
};
use std::path::Path;

/// One that can be read, and where it is to go.
pub struct Opened<'a> {
    pub opened: guest::Opened,
    pub address: &'a At<Address>,
}

/// Opens those of a guest. One that can't be read is reported, and left out.
pub fn open_all<'a>(
    drafts: &'a [LoadDraft],
    directory: &Path,
    findings: &mut Vec<Finding>,
) -> Vec<Opened<'a>> {
    let opened = drafts.iter().filter_map(|draft| {
        let opened = guest::open(draft.file.as_ref()?, "file", directory, findings)?;
        Some(Opened { opened, address: draft.address.as_ref()? })
    });
    opened.collect()
}

impl Opened<'_> {
    /// As the manifest that has been checked tells of it.
    pub fn into_load(self) -> Load {
        Load { file: self.opened.path, address: self.address.value.0 }
    }
}
