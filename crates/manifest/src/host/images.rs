//! Looks into guest images: is this file what the manifest says it is, and does it fit the guest's memory?
use crate::config::GUEST_MEMORY_BASE;
use elf::{
    ElfBytes,
    abi::{EM_RISCV, ET_DYN, ET_EXEC, PF_X, PT_INTERP, PT_LOAD},
    endian::LittleEndian,
    file::Class,
    segment::ProgramHeader,
};

/// Length of the boot header of a Linux `Image`.
pub const LINUX_HEADER_LEN: usize = 64;
/// Longest ELF file in bytes that is read though its guest has less memory: most of one can be symbols for a debugger.
pub const MAX_ELF: u64 = 256 << 20;

/// Why a file is not a usable image, and what to do.
#[derive(Debug, PartialEq, Eq)]
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

/// Reads the boot header of a RISC-V Linux `Image` (Documentation/arch/riscv/boot-image-header.rst in the kernel's
/// source) from the file's first bytes; `len` is the whole file's. Returns the kernel's end in the guest's memory: it asks to be loaded `text_offset`
/// behind the start, and `image_size` includes its bss.
pub fn linux_end(start: &[u8], len: u64) -> Result<u64, Problem> {
    let not_image =
        |found: &str, help: &str| Err(Problem::new(format!("is not a Linux Image but {found}"), help));
    let uncompress = "the kernel is started without a decompressor: give the file `Image` of the kernel package, \
                      or unpack this one";
    match start {
        [0x1f, 0x8b, ..] => return not_image("gzip-compressed data", uncompress),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => return not_image("zstd-compressed data", uncompress),
        [0xfd, b'7', b'z', b'X', b'Z', ..] => return not_image("xz-compressed data", uncompress),
        [0x7f, b'E', b'L', b'F', ..] => {
            return not_image(
                "an ELF file",
                "give arch/riscv/boot/Image instead of vmlinux, or set kind = \"elf\"",
            );
        }
        _ => {}
    }
    let Some(header) = start.first_chunk::<LINUX_HEADER_LEN>() else {
        return not_image(
            "a file too short for its header",
            "give arch/riscv/boot/Image of a riscv64 kernel",
        );
    };
    if header[56..60] != *b"RSC\x05" {
        let found = if header[56..60] == *b"ARM\x64" { "one for arm64" } else { "something else" };
        return not_image(
            found,
            "give arch/riscv/boot/Image of a riscv64 kernel (it has \"RSC\\x05\" at byte 56)",
        );
    }
    let word = |at: usize| u64::from_le_bytes(*header[at..].first_chunk().expect("inside the header"));
    let (text_offset, image_size, flags) = (word(8), word(16), word(24));
    if flags & 1 != 0 {
        return not_image("one for a big-endian CPU", "build the kernel for little-endian riscv64");
    }
    let end =
        GUEST_MEMORY_BASE.checked_add(text_offset).and_then(|start| start.checked_add(image_size.max(len)));
    match end {
        Some(end) if image_size != 0 => Ok(end),
        _ => Err(Problem::new(
            "has a damaged boot header (its image size makes no sense)",
            "fetch or build it again",
        )),
    }
}

/// Checks that a file is a static riscv64 executable whose segments lie in a guest's `memory` bytes. Returns their end.
pub fn elf_end(bytes: &[u8], memory: u64) -> Result<u64, Problem> {
    let wanted = "link it statically for riscv64 (S-mode), e.g. with riscv64-unknown-elf-gcc";
    if !bytes.starts_with(b"\x7fELF") {
        let help =
            if linux_end(bytes, 0).is_ok() { "this is a Linux Image: set kind = \"linux\"" } else { wanted };
        return Err(Problem::new("is not an ELF file", help));
    }
    let damaged =
        |error: elf::ParseError| Problem::new(format!("is a damaged ELF file ({error})"), "build it again");
    // The class and the byte order come before anything that depends on them.
    if bytes.get(5) == Some(&2) {
        return Err(Problem::new("is a big-endian ELF file", wanted));
    }
    let file = ElfBytes::<LittleEndian>::minimal_parse(bytes).map_err(damaged)?;
    let header = file.ehdr;
    if header.class != Class::ELF64 || header.e_machine != EM_RISCV {
        let bits = if header.class == Class::ELF64 { 64 } else { 32 };
        let machine = header.e_machine;
        let found = if machine == EM_RISCV { "RISC-V".into() } else { format!("machine {machine}") };
        return Err(Problem::new(format!("is a {bits}-bit ELF file for {found}, not for riscv64"), wanted));
    }
    let segments: Vec<ProgramHeader> = file.segments().into_iter().flatten().collect();
    let dynamic = header.e_type == ET_DYN || segments.iter().any(|segment| segment.p_type == PT_INTERP);
    if dynamic || header.e_type != ET_EXEC {
        let found =
            if dynamic { "is position-independent or dynamically linked" } else { "is not an executable" };
        return Err(Problem::new(found, "link it with -static -no-pie"));
    }

    let mut loaded: Vec<&ProgramHeader> =
        segments.iter().filter(|segment| segment.p_type == PT_LOAD && segment.p_memsz != 0).collect();
    loaded.sort_by_key(|segment| segment.p_paddr);
    if loaded.is_empty() {
        return Err(Problem::new("has nothing to load", wanted));
    }
    let memory_end = GUEST_MEMORY_BASE.saturating_add(memory);
    let mut last_end = GUEST_MEMORY_BASE;
    for segment in &loaded {
        let start = segment.p_paddr;
        let end = start.checked_add(segment.p_memsz);
        if start < GUEST_MEMORY_BASE || end.is_none_or(|end| end > memory_end) {
            let end = end.unwrap_or(u64::MAX);
            return Err(Problem::new(
                format!(
                    "is linked at {start:#x}..{end:#x}, outside the guest's memory {GUEST_MEMORY_BASE:#x}..{memory_end:#x}"
                ),
                "link it inside the guest's memory, or give the guest more",
            ));
        }
        if start < last_end {
            return Err(Problem::new(
                format!("has segments that overlap at {start:#x}"),
                "correct the linker script",
            ));
        }
        last_end = end.unwrap_or(u64::MAX);
        file.segment_data(segment).map_err(damaged)?;
        if segment.p_filesz > segment.p_memsz {
            return Err(Problem::new(
                format!("has a segment at {start:#x} with more bytes in the file than in memory"),
                "build it again",
            ));
        }
    }
    let entry = header.e_entry;
    let starts_there = |segment: &&&ProgramHeader| {
        segment.p_flags & PF_X != 0
            && entry.checked_sub(segment.p_paddr).is_some_and(|offset| offset < segment.p_memsz)
    };
    if loaded.iter().find(starts_there).is_none() {
        return Err(Problem::new(
            format!("starts at {entry:#x}, where it has no code"),
            "set ENTRY in the linker script to a physical address: a guest starts without address translation",
        ));
    }
    Ok(last_end)
}

#[cfg(test)]
pub(super) mod tests;
