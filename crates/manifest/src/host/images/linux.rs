//! The `Image` of a RISC-V Linux (Documentation/arch/riscv/boot-image-header.rst in the kernel's source).
use super::{Places, Problem, Program, Segment};
use object::{
    pe::{ImageDosHeader, ImageNtHeaders64},
    read::pe::ImageNtHeaders,
};

/// What to do about a file that isn't whole.
const AGAIN: &str = "fetch or build it again";

/// Length of the boot header.
const HEADER_LEN: usize = 64;

/// Is this one?
pub fn is_image(file: &[u8]) -> bool {
    file.get(56..60) == Some(b"RSC\x05")
}

/// It asks to be loaded `text_offset` behind the start of memory, and `image_size` includes its bss.
pub fn read(file: &[u8], places: Places) -> Result<Program<'_>, Problem> {
    let not_image =
        |found: &str, help: &str| Err(Problem::new(format!("is not a Linux Image but {found}"), help));
    let uncompress = "the kernel is started without a decompressor: give the file `Image` of the kernel package, \
                      or unpack this one";
    match file {
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
    let Some(header) = file.first_chunk::<HEADER_LEN>() else {
        return not_image(
            "a file too short for its header",
            "give arch/riscv/boot/Image of a riscv64 kernel",
        );
    };
    if !is_image(file) {
        let found = if header[56..60] == *b"ARM\x64" { "one for arm64" } else { "something else" };
        return not_image(
            found,
            "give arch/riscv/boot/Image of a riscv64 kernel (it has \"RSC\\x05\" at byte 56), or set kind = \"raw\"",
        );
    }
    let word = |at: usize| u64::from_le_bytes(*header[at..].first_chunk().expect("inside the header"));
    let (text_offset, image_size, flags) = (word(8), word(16), word(24));
    if flags & 1 != 0 {
        return not_image("one for a big-endian CPU", "build the kernel for little-endian riscv64");
    }
    // `MZ` is an instruction as well, which loads a register that nobody has used yet.
    if header.starts_with(b"MZ") {
        match end_of_sections(file) {
            Some(end) if end <= file.len() as u64 => {}
            Some(_) => return Err(Problem::new("is cut off: its header tells of more than there is", AGAIN)),
            None => return Err(Problem::new("is cut off, or has a damaged header for UEFI", AGAIN)),
        }
    }
    let start = places.memory_base().checked_add(text_offset);
    let memory = image_size.max(file.len() as u64);
    match start {
        Some(start) if image_size != 0 && start.checked_add(memory).is_some() => Ok(Program {
            entry: start,
            segments: vec![Segment { address: start, bytes: file.into(), memory }],
        }),
        _ => Err(Problem::new("has a damaged boot header (its image size makes no sense)", AGAIN)),
    }
}

/// Where the last section ends, of an image that is a program for UEFI as well (`EFI_STUB`, as all distributions have it); `None` if its headers are not whole.
/// The boot header doesn't say how long the file is.
fn end_of_sections(file: &[u8]) -> Option<u64> {
    let mut offset = ImageDosHeader::parse(file).ok()?.nt_headers_offset().into();
    let (headers, _) = ImageNtHeaders64::parse(file, &mut offset).ok()?;
    let ends = headers.sections(file, offset).ok()?.iter().map(|section| {
        let (start, len) = section.pe_file_range();
        u64::from(start) + u64::from(len)
    });
    ends.max()
}
