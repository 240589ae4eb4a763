//! Every way in which a file may be no image, with small files made here.
use super::*;
use ::elf::abi::{EM_RISCV, ET_DYN, ET_EXEC, PF_X, PT_DYNAMIC, PT_LOAD};
use proptest::prelude::*;

/// A Linux `Image` of only a header.
pub fn linux_image(text_offset: u64, image_size: u64) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    bytes[8..16].copy_from_slice(&text_offset.to_le_bytes());
    bytes[16..24].copy_from_slice(&image_size.to_le_bytes());
    bytes[48..56].copy_from_slice(b"RISCV\0\0\0");
    bytes[56..60].copy_from_slice(b"RSC\x05");
    bytes
}

/// The same with the header of a program for UEFI, whose only section ends here.
fn efi_image(end: u32) -> Vec<u8> {
    let mut bytes = linux_image(0, 0x100_0000);
    bytes[..2].copy_from_slice(b"MZ");
    bytes[60..64].copy_from_slice(&64_u32.to_le_bytes());
    bytes.extend(*b"PE\0\0\x64\x50\x01\0");
    bytes.extend([0; 12]);
    bytes.extend(*b"\x70\0\0\0"); // length of what follows
    bytes.extend(*b"\x0b\x02");
    bytes.extend([0; 110]);
    bytes.extend(*b".text\0\0\0");
    for word in [end, 0, end - 0x100, 0x100] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend([0; 16]);
    bytes
}

/// A riscv64 ELF file, piece by piece.
pub struct Elf {
    pub kind: u16,
    pub entry: u64,
    pub segments: Vec<Part>,
}

/// One of its segments.
pub struct Part {
    pub kind: u32,
    pub virt: u64,
    pub phys: u64,
    pub bytes: Vec<u8>,
    pub memory: u64,
}

impl Elf {
    pub fn bytes(&self) -> Vec<u8> {
        let mut offset = 64 + 56 * self.segments.len() as u64;
        let mut bytes = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
        let half = |bytes: &mut Vec<u8>, value: u16| bytes.extend(value.to_le_bytes());
        let word = |bytes: &mut Vec<u8>, value: u32| bytes.extend(value.to_le_bytes());
        let long = |bytes: &mut Vec<u8>, value: u64| bytes.extend(value.to_le_bytes());
        half(&mut bytes, self.kind);
        half(&mut bytes, EM_RISCV);
        word(&mut bytes, 1);
        for value in [self.entry, 64, 0] {
            long(&mut bytes, value); // entry, program headers, section headers
        }
        word(&mut bytes, 0);
        for value in [64, 56, self.segments.len() as u16, 0, 0, 0] {
            half(&mut bytes, value); // sizes and counts of headers
        }
        for part in &self.segments {
            word(&mut bytes, part.kind);
            word(&mut bytes, PF_X | 4);
            let len = part.bytes.len() as u64;
            for value in [offset, part.virt, part.phys, len, part.memory, 16] {
                long(&mut bytes, value); // offset, virtual, physical, in the file, in memory, alignment
            }
            offset += len;
        }
        self.segments.iter().for_each(|part| bytes.extend(&part.bytes));
        bytes
    }
}

/// A static riscv64 executable with segments at `(address, bytes in memory)`, each with 16 bytes (of no-operations) in the file.
pub fn elf_file(entry: u64, segments: &[(u64, u64)]) -> Vec<u8> {
    let part = |(address, memory): &(u64, u64)| Part {
        kind: PT_LOAD,
        virt: *address,
        phys: *address,
        bytes: words(&[NOP; 4]),
        memory: *memory,
    };
    Elf { kind: ET_EXEC, entry, segments: segments.iter().map(part).collect() }.bytes()
}

const NOP: u32 = 0x13;
const BASE: u64 = GUEST_MEMORY_BASE;
const MEMORY: u64 = 4 << 20;
const ANYWHERE: Places = Places { load: None, entry: None, memory_at: None };

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn longs(longs: &[u64]) -> Vec<u8> {
    longs.iter().flat_map(|long| long.to_le_bytes()).collect()
}

/// For a guest without a RAM disk.
fn read(kind: Kind, file: &[u8], memory: u64, places: Places) -> Result<Program<'_>, Problem> {
    super::read(kind, file, memory, None, places)
}

fn elf(file: &[u8]) -> Result<Program<'_>, Problem> {
    read(Kind::Elf, file, MEMORY, ANYWHERE)
}

fn elf_problem(file: &[u8]) -> String {
    elf(file).unwrap_err().what
}

#[test]
fn good_images_pass() {
    let image = linux_image(0x20_0000, 0x100_0000);
    let program = read(Kind::Linux, &image, 32 << 20, ANYWHERE).unwrap();
    assert_eq!((program.entry, program.end()), (BASE + 0x20_0000, BASE + 0x120_0000));
    let file = elf_file(BASE, &[(BASE + 0x1000, MEMORY - 0x1000), (BASE, 0x1000)]);
    let program = elf(&file).unwrap();
    assert_eq!((program.entry, program.end()), (BASE, BASE + MEMORY));
    let described = program.describe(BASE);
    assert_eq!(described.segments.iter().map(|s| s.address).collect::<Vec<_>>(), [BASE, BASE + 0x1000]);
    assert_eq!((described.end(), described.stored()), (BASE + MEMORY, 32));
}

#[test]
fn other_files_are_recognised() {
    let found = |file: &[u8]| read(Kind::Linux, file, 64 << 20, ANYWHERE).unwrap_err().what;
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

    let image = elf(&linux_image(0, 1)).unwrap_err().help;
    assert_eq!(image, "this is a Linux Image: set kind = \"linux\"");
    assert_eq!(elf_problem(b"#!/bin/sh"), "is not an ELF file");
    let raw = |file: &[u8]| read(Kind::Raw, file, MEMORY, ANYWHERE).unwrap_err().what;
    assert_eq!(raw(&elf_file(BASE, &[])), "is an ELF file, not a flat binary");
    assert_eq!(raw(b""), "is empty");
    assert_eq!(raw("#!/bin/sh\n# \u{e9}\n".as_bytes()), "is a text, not a program");
}

/// A download that was broken off would be silent for ever.
#[test]
fn a_linux_that_is_cut_off_is_refused() {
    let linux = |file: &[u8]| read(Kind::Linux, file, 64 << 20, ANYWHERE).map(|program| program.end() - BASE);
    let mut whole = efi_image(0x1000);
    whole.resize(0x1000, 0);
    assert_eq!(linux(&whole), Ok(0x100_0000));
    for len in [0xfff, 0x800, 0x100] {
        let problem = linux(&whole[..len]).unwrap_err();
        assert_eq!(problem.what, "is cut off: its header tells of more than there is", "{len:#x}");
    }
    // Not even the table of sections is there.
    assert!(linux(&whole[..0xc0]).is_err());
}

#[test]
fn elf_files_for_other_machines_are_refused() {
    let changed = |at: usize, value: u8| {
        let mut bytes = elf_file(BASE, &[(BASE, 0x1000)]);
        bytes[at] = value;
        elf_problem(&bytes)
    };
    assert_eq!(changed(5, 2), "is a big-endian ELF file");
    assert_eq!(changed(18, 62), "is a 64-bit ELF file for AMD x86-64 architecture, not for riscv64");
    assert_eq!(changed(16, 1), "is not an executable");
}

#[test]
fn segments_must_fit() {
    let memory_end = BASE + MEMORY;
    assert!(elf_problem(&elf_file(0x1000, &[(0x1000, 16)])).contains("0x1000..0x1010, outside"));
    assert!(elf_problem(&elf_file(BASE, &[(BASE, MEMORY + 1)])).contains("outside the guest's memory"));
    assert!(
        elf_problem(&elf_file(memory_end - 16, &[(memory_end - 16, 17)])).contains("outside the guest's")
    );
    let large = elf_file(BASE, &[(BASE, MEMORY + 1)]);
    let much = super::read(Kind::Elf, &large, MEMORY, Some(3 << 20), ANYWHERE);
    let needed = least_memory(MEMORY + 1, Some(3 << 20));
    assert!(much.unwrap_err().help.ends_with(&format!("give the guest at least {needed}")));
    let nowhere = elf(&elf_file(1 << 60, &[(1 << 60, 16)])).unwrap_err();
    assert_eq!(nowhere.help, "link or load it inside the guest's memory", "no guest has so much");
    let below = elf_file(0x1000, &[(0x1000, 16)]);
    let below = elf(&below).unwrap_err();
    assert_eq!(below.help, "link or load it inside the guest's memory", "more would be of no use");
    assert!(elf_problem(&elf_file(u64::MAX - 16, &[(u64::MAX - 16, 64)])).contains("outside the guest's"));
    assert!(elf_problem(&elf_file(BASE, &[(BASE, 32), (BASE + 31, 16)])).contains("overlap at 0x8000001f"));
    assert!(elf_problem(&elf_file(BASE, &[(BASE, 15)])).contains("more bytes in the file than in memory"));
    assert_eq!(
        elf_problem(&elf_file(BASE + 99, &[(BASE, 32)])),
        "starts at 0x80000063, where it has no code"
    );
    assert_eq!(elf_problem(&elf_file(BASE, &[])), "has nothing to load");
    // With thousands, relocations took minutes.
    let parts = |count: u64| (0..count).map(|nth| (BASE + 32 * nth, 32)).collect::<Vec<_>>();
    assert!(elf(&elf_file(BASE, &parts(64))).is_ok());
    assert_eq!(elf_problem(&elf_file(BASE, &parts(65))), "has 65 segments to load");
    let mut cut = elf_file(BASE, &[(BASE, 16)]);
    cut.truncate(cut.len() - 1);
    assert!(elf_problem(&cut).contains("damaged"));
}

/// As LK is linked: at the addresses that it will have under its own translation.
#[test]
fn a_virtual_entry_counts_through_its_segment() {
    const HIGH: u64 = 0xffff_ffff_8000_0000;
    let part = |offset: u64| Part {
        kind: PT_LOAD,
        virt: HIGH + offset,
        phys: BASE + 0x20_0000 + offset,
        bytes: words(&[NOP; 4]),
        memory: 0x1000,
    };
    let file = |entry| Elf { kind: ET_EXEC, entry, segments: vec![part(0), part(0x1000)] }.bytes();
    assert_eq!(elf(&file(HIGH + 0x1008)).unwrap().entry, BASE + 0x20_1008);
    // Or its linker script gives the physical one.
    assert_eq!(elf(&file(BASE + 0x20_1008)).unwrap().entry, BASE + 0x20_1008);
    assert!(elf_problem(&file(HIGH + 0x2000)).contains("no code"));
    let places = Places { load: None, entry: Some(BASE + 0x20_0004), ..ANYWHERE };
    let bytes = file(0);
    assert_eq!(read(Kind::Elf, &bytes, MEMORY, places).unwrap().entry, BASE + 0x20_0004);
}

/// Linked at 0, with a word of data, and relocations of both tables.
fn position_independent(dynamic: &[(u64, u64)], rela: &[u64]) -> Elf {
    const RELA: u64 = 0x80;
    let mut bytes = words(&[NOP; 8]);
    bytes.extend(longs(&[0x10, 0x20, 0x30, 0x40])); // at 0x20: addresses inside the program
    bytes.resize(RELA as usize, 0);
    bytes.extend(longs(rela));
    let relr = bytes.len() as u64;
    bytes.extend(longs(&[0x20, 0b101])); // the word at 0x20, and the second behind it: 0x30
    let known = [(7, RELA), (8, 8 * rela.len() as u64), (36, relr), (35, 16)];
    let table: Vec<u64> =
        known.iter().chain(dynamic).chain(&[(0, 0)]).flat_map(|(tag, value)| [*tag, *value]).collect();
    let at = bytes.len() as u64;
    let table = longs(&table);
    bytes.extend(&table);
    let memory = bytes.len() as u64 + 64;
    Elf {
        kind: ET_DYN,
        entry: 4,
        segments: vec![
            Part { kind: PT_LOAD, virt: 0, phys: 0, bytes, memory },
            Part { kind: PT_DYNAMIC, virt: at, phys: at, memory: table.len() as u64, bytes: table },
        ],
    }
}

#[test]
fn a_position_independent_elf_is_loaded_and_relocated() {
    let file = position_independent(&[], &[0x38, 3, 0x44]).bytes();
    for load in [None, Some(BASE + 0x10_0000)] {
        let program = read(Kind::Elf, &file, MEMORY, Places { load, entry: None, ..ANYWHERE }).unwrap();
        let start = load.unwrap_or(BASE + DEFAULT_LOAD_OFFSET);
        assert_eq!((program.entry, program.segments[0].address), (start + 4, start));
        let data = &program.segments[0].bytes[0x20..0x40];
        assert_eq!(data, longs(&[start + 0x10, 0x20, start + 0x30, start + 0x44]));
    }
    let crooked =
        read(Kind::Elf, &file, MEMORY, Places { load: Some(BASE + 8), entry: None, ..ANYWHERE }).unwrap_err();
    assert!(crooked.what.contains("can't be loaded at 0x80000008: its segments are aligned to 0x10"));
    let fixed = elf_file(BASE, &[(BASE, 32)]);
    let moved =
        read(Kind::Elf, &fixed, MEMORY, Places { load: Some(BASE), entry: None, ..ANYWHERE }).unwrap_err();
    assert!(moved.what.contains("linked at a fixed address"), "{moved:?}");
}

/// A program that does its relocations itself when it starts finds the compact table empty: it would move what has been moved already.
#[test]
fn the_compact_table_is_done_once() {
    let file = position_independent(&[], &[]).bytes();
    let program = elf(&file).unwrap();
    let memory = &program.segments[0].bytes;
    let long = |at: usize| u64::from_le_bytes(memory[at..].first_chunk().copied().unwrap());
    // The dynamic section is behind the compact table's two words at 0x80.
    let dynamic: Vec<(u64, u64)> =
        (0x90..0x90 + 5 * 16).step_by(16).map(|at| (long(at), long(at + 8))).collect();
    assert_eq!(dynamic, [(7, 0x80), (8, 0), (36, 0x80), (35, 0), (0, 0)]);
    assert_eq!(long(0x20), BASE + DEFAULT_LOAD_OFFSET + 0x10);
}

/// As U-Boot is linked: position-independent, but where it wants to be. It is left alone.
#[test]
fn a_position_independent_elf_linked_in_memory_stays_there() {
    let mut file = position_independent(&[], &[0x38, 99, 0x44]);
    for part in &mut file.segments {
        part.virt += BASE;
        part.phys += BASE;
    }
    file.entry += BASE;
    let file = file.bytes();
    let program = elf(&file).unwrap();
    assert_eq!((program.entry, program.segments[0].address), (BASE + 4, BASE));
    assert_eq!(program.segments[0].bytes[0x20..0x40], longs(&[0x10, 0x20, 0x30, 0x40]));
}

#[test]
fn what_takes_a_dynamic_linker_is_refused() {
    let problem =
        |dynamic: &[(u64, u64)], rela: &[u64]| elf_problem(&position_independent(dynamic, rela).bytes());
    assert_eq!(problem(&[(1, 7)], &[]), "is dynamically linked"); // DT_NEEDED
    assert_eq!(problem(&[], &[0x38, 6, 0]), "needs relocations of type 6, which take a dynamic linker");
    assert_eq!(problem(&[], &[0x38, 2, 0]), "uses a symbol that it doesn't define");
    assert!(
        problem(&[], &[0x8000, 3, 0]).contains("has a relocation at 0x80208000, which is not in its file")
    );
}

#[test]
fn a_flat_binary_goes_where_the_manifest_says() {
    let file = words(&[NOP; 4]);
    let raw = |places| read(Kind::Raw, &file, MEMORY, places);
    let program = raw(ANYWHERE).unwrap();
    assert_eq!((program.entry, program.end()), (0x8020_0000, 0x8020_0010));
    let program = raw(Places { load: Some(BASE), entry: Some(BASE + 8), ..ANYWHERE }).unwrap();
    assert_eq!((program.entry, program.end()), (BASE + 8, BASE + 16));
    assert!(
        raw(Places { load: Some(0x1000), entry: None, ..ANYWHERE }).unwrap_err().what.contains("outside")
    );
    assert!(raw(Places { load: None, entry: Some(BASE), ..ANYWHERE }).unwrap_err().what.contains("no code"));
    for odd in [
        Places { load: None, entry: Some(0x8020_0001), ..ANYWHERE },
        Places { load: Some(0x8020_0001), entry: None, ..ANYWHERE },
    ] {
        let told = raw(odd).unwrap_err();
        assert_eq!(told.what, "starts at 0x80200001, an odd address, where no instruction can be");
        assert!(told.help.contains("`load_address`"), "{}", told.help);
    }
}

#[test]
fn programs_for_machine_mode_are_called_that() {
    let problem =
        |file: &[u8]| read(Kind::Raw, file, MEMORY, ANYWHERE).map(|_| ()).map_err(|problem| problem.what);
    const READ_MHARTID: u32 = 0xf140_2573; // csrr a0, mhartid
    const SET_MTVEC: u32 = 0x3052_9073; // csrw mtvec, t0
    const MRET: u32 = 0x3020_0073;
    const SET_STVEC: u32 = 0x1052_9073; // csrw stvec, t0
    let told = |words_of: &[u32], what: &str| {
        let found = problem(&words(words_of)).unwrap_err();
        assert!(found.contains("machine mode") && found.contains(what), "{found}");
    };
    told(&[NOP, READ_MHARTID], "at 0x80200004 it accesses mhartid");
    told(&[NOP, NOP, SET_MTVEC], "at 0x80200008 it accesses mtvec");
    told(&[MRET], "executes mret");
    told(&[0x3400_1073], "mscratch");
    told(&[0x7c00_1073 | 0xb << 28], "the machine CSR 0xfc0");
    // It jumps over what looks like a mistake: j +8, and as c.j with a c.nop behind it.
    told(&[0x0080_006f, SET_STVEC, READ_MHARTID], "at 0x80200008");
    told(&[0x0001_a021, SET_STVEC, READ_MHARTID], "at 0x80200008");
    assert!(problem(&words(&[SET_STVEC, READ_MHARTID])).is_ok(), "supervisor first: it knows what it does");
    assert!(problem(&words(&[0x73, READ_MHARTID])).is_ok(), "an environment call");
    assert!(problem(&words(&[0x0000_006f])).is_ok(), "a loop");
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), load in any::<u64>()) {
        for kind in [Kind::Linux, Kind::Elf, Kind::Raw] {
            let _ = read(kind, &bytes, MEMORY, ANYWHERE);
            let _ = read(kind, &bytes, MEMORY, Places { load: Some(load), entry: Some(load), ..ANYWHERE });
        }
    }

    #[test]
    fn damaged_elf_files_never_panic(changes in proptest::collection::vec((0usize..600, any::<u8>()), 1..6), fixed in any::<bool>()) {
        let mut bytes = if fixed {
            elf_file(BASE, &[(BASE, 0x1000), (BASE + 0x1000, 0x1000)])
        } else {
            position_independent(&[], &[0x38, 3, 0x44]).bytes()
        };
        for (at, value) in changes {
            let len = bytes.len();
            bytes[at % len] = value;
        }
        if let Ok(program) = elf(&bytes) {
            prop_assert!(program.end() <= BASE + MEMORY);
        }
    }
}
