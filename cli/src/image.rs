//! One bootable image: the hypervisor, flattened, and behind it the [blob] with the system and
//! its guests. A boot loader needs to know nothing of its parts: it is one RISC-V `Image` (as Linux is).
mod kernel;

pub use kernel::{Build, Kernel, Sections};

use crate::checkout;
use ainori_manifest::{
    Manifest, Problem,
    blob::{self, GuestFiles},
};
use miette::{Result, miette};
use serde::Serialize;
use std::path::Path;

/// Byte offset of the field `image_size` in the header of a RISC-V `Image`.
const IMAGE_SIZE_AT: usize = 16;

/// A bootable image.
#[derive(Debug)]
pub struct Image {
    /// Its bytes, to be loaded at [`Kernel::LOAD_ADDRESS`].
    pub bytes: Vec<u8>,
    /// What takes how much of it.
    pub sizes: Sizes,
}

/// Sizes of an image's parts in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Sizes {
    /// The hypervisor's sections.
    #[serde(flatten)]
    pub sections: Sections,
    /// The blob: description and guests.
    pub payload: usize,
    /// Everything, with bss and padding.
    pub image: usize,
}

/// Puts a system behind the hypervisor.
pub fn build(manifest: &Manifest, kernel: Kernel) -> Result<Image> {
    let mut contents = Vec::new();
    for files in &manifest.files {
        let initrd = files.initrd.as_deref().map(checkout::read).transpose()?;
        let loads: Result<Vec<_>> = files.loads.iter().map(|load| checkout::read(&load.file)).collect();
        contents.push((checkout::read(&files.image)?, initrd, loads?));
    }
    let mut system = manifest.system.clone();
    let mut programs = Vec::new();
    for (index, (image, _, loads)) in contents.iter().enumerate() {
        // They were good when the manifest was checked, a moment ago.
        let changed = |path: &Path, problem: Problem| {
            miette!(help = problem.help, "{} has changed: it {}", path.display(), problem.what)
        };
        let files = &manifest.files[index];
        let mut program = manifest.program(index, image).map_err(|problem| changed(&files.image, problem))?;
        for (load, bytes) in files.loads.iter().zip(loads) {
            let added = manifest.add_load(index, load, bytes, &mut program);
            added.map_err(|problem| changed(&load.file, problem))?;
        }
        system.guests[index].image = program.describe(manifest.files[index].places.memory_base());
        programs.push(program);
    }
    let files: Vec<_> = programs
        .iter()
        .zip(&contents)
        .map(|(program, (_, initrd, _))| GuestFiles {
            segments: program.segments.iter().map(|segment| &*segment.bytes).collect(),
            initrd: initrd.as_deref(),
        })
        .collect();
    let payload = blob::encode(system, &manifest.spaces(), &files);

    let mut bytes = kernel.bytes;
    bytes.extend_from_slice(&payload);
    // A boot loader puts its device tree and RAM disk where the header says that the image has ended.
    let size = bytes.len() as u64;
    bytes[IMAGE_SIZE_AT..IMAGE_SIZE_AT + 8].copy_from_slice(&size.to_le_bytes());
    let sizes = Sizes { sections: kernel.sections, payload: payload.len(), image: bytes.len() };
    Ok(Image { bytes, sizes })
}
