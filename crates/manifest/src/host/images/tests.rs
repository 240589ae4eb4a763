//! Every way in which a file may be no image, with small files made here.
use super::*;
use proptest::prelude::*;

/// A Linux `Image` of only a header.
pub fn linux_image(text_offset: u64, image_size: u64) -> Vec<u8> {
    let mut bytes = vec![0; LINUX_HEADER_LEN];
    bytes[8..16].copy_from_slice(&text_offset.to_le_bytes());
    bytes[16..24].copy_from_slice(&image_size.to_le_bytes());
    bytes[48..56].copy_from_slice(b"RISCV\0\0\0");
    bytes[56..60].copy_from_slice(b"RSC\x05");
    bytes
}

/// A static riscv64 executable with segments at `(address, bytes in memory)`, each with 16 bytes in the file.
pub fn elf_file(entry: u64, segments: &[(u64, u64)]) -> Vec<u8> {
    let headers_end = 64 + 56 * segments.len() as u64;
    let mut bytes = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    let half = |bytes: &mut Vec<u8>, value: u16| bytes.extend(value.to_le_bytes());
    let word = |bytes: &mut Vec<u8>, value: u32| bytes.extend(value.to_le_bytes());
    let long = |bytes: &mut Vec<u8>, value: u64| bytes.extend(value.to_le_bytes());
    half(&mut bytes, ET_EXEC);
    half(&mut bytes, EM_RISCV);
    word(&mut bytes, 1);
    for value in [entry, 64, 0] {
        long(&mut bytes, value); // entry, program headers, section headers
    }
    word(&mut bytes, 0);
    for value in [64, 56, segments.len() as u16, 0, 0, 0] {
        half(&mut bytes, value); // sizes and counts of headers
    }
    for (index, (address, memory)) in segments.iter().enumerate() {
        word(&mut bytes, PT_LOAD);
        word(&mut bytes, PF_X | 4);
        for value in [headers_end + 16 * index as u64, *address, *address, 16, *memory, 16] {
            long(&mut bytes, value); // offset, virtual, physical, in the file, in memory, alignment
        }
    }
    bytes.resize(bytes.len() + 16 * segments.len(), 0x13);
    bytes
}

const BASE: u64 = GUEST_MEMORY_BASE;
const MEMORY: u64 = 2 << 20;

fn elf_problem(bytes: &[u8]) -> String {
    elf_end(bytes, MEMORY).unwrap_err().what
}

#[test]
fn good_images_pass() {
    assert_eq!(linux_end(&linux_image(0x20_0000, 0x100_0000), 0), Ok(BASE + 0x120_0000));
    assert_eq!(
        elf_end(&elf_file(BASE, &[(BASE, 0x1000), (BASE + 0x1000, MEMORY - 0x1000)]), MEMORY),
        Ok(BASE + MEMORY)
    );
}

#[test]
fn other_files_are_recognised() {
    let found = |bytes: &[u8]| linux_end(bytes, 0).unwrap_err().what;
    assert_eq!(found(b"\x1f\x8b\x08"), "is not a Linux Image but gzip-compressed data");
    assert_eq!(found(&elf_file(BASE, &[])), "is not a Linux Image but an ELF file");
    assert_eq!(found(b"short"), "is not a Linux Image but a file too short for its header");
    assert_eq!(found(&[0; 64]), "is not a Linux Image but something else");
    let mut arm = linux_image(0, 1);
    arm[56..60].copy_from_slice(b"ARM\x64");
    assert_eq!(found(&arm), "is not a Linux Image but one for arm64");
    let mut big = linux_image(0, 1);
    big[24] = 1;
    assert_eq!(found(&big), "is not a Linux Image but one for a big-endian CPU");
    assert!(found(&linux_image(u64::MAX, 2)).contains("damaged"));

    let image = elf_end(&linux_image(0, 1), MEMORY).unwrap_err();
    assert_eq!(image.help, "this is a Linux Image: set kind = \"linux\"");
    assert_eq!(elf_problem(b"#!/bin/sh"), "is not an ELF file");
}

#[test]
fn elf_files_for_other_machines_are_refused() {
    let changed = |at: usize, value: u8| {
        let mut bytes = elf_file(BASE, &[(BASE, 0x1000)]);
        bytes[at] = value;
        elf_problem(&bytes)
    };
    assert_eq!(changed(5, 2), "is a big-endian ELF file");
    assert_eq!(changed(18, 62), "is a 64-bit ELF file for machine 62, not for riscv64");
    assert_eq!(changed(16, 3), "is position-independent or dynamically linked");
    assert_eq!(changed(16, 1), "is not an executable");
}

#[test]
fn segments_must_fit() {
    let memory_end = BASE + MEMORY;
    assert!(elf_problem(&elf_file(0x1000, &[(0x1000, 16)])).contains("0x1000..0x1010, outside"));
    assert!(elf_problem(&elf_file(BASE, &[(BASE, MEMORY + 1)])).contains("outside the guest's memory"));
    assert!(elf_problem(&elf_file(BASE, &[(memory_end - 16, 17)])).contains("outside the guest's memory"));
    assert!(elf_problem(&elf_file(BASE, &[(u64::MAX - 16, 64)])).contains("outside the guest's memory"));
    assert!(elf_problem(&elf_file(BASE, &[(BASE, 32), (BASE + 31, 16)])).contains("overlap at 0x8000001f"));
    assert!(elf_problem(&elf_file(BASE, &[(BASE, 15)])).contains("more bytes in the file than in memory"));
    assert_eq!(
        elf_problem(&elf_file(BASE + 99, &[(BASE, 32)])),
        "starts at 0x80000063, where it has no code"
    );
    assert_eq!(elf_problem(&elf_file(BASE, &[])), "has nothing to load");
    let mut cut = elf_file(BASE, &[(BASE, 16)]);
    cut.truncate(cut.len() - 1);
    assert!(elf_problem(&cut).contains("damaged"));
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = (linux_end(&bytes, 0), elf_end(&bytes, MEMORY));
    }

    #[test]
    fn damaged_elf_files_never_panic(changes in proptest::collection::vec((0usize..192, any::<u8>()), 1..6)) {
        let mut bytes = elf_file(BASE, &[(BASE, 0x1000), (BASE + 0x1000, 0x1000)]);
        for (at, value) in changes {
            bytes[at] = value;
        }
        let _ = elf_end(&bytes, MEMORY);
    }
}
