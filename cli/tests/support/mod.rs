//! A checkout of its own for each test: a manifest, guests and a hypervisor that are just large enough to be accepted,
//! and a program in QEMU's place that plays back a recorded serial line.
#![allow(dead_code, reason = "each test program uses its own part")]
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};
use tempfile::TempDir;

/// Where the hypervisor is linked.
pub const LOAD_ADDRESS: u64 = 0x8020_0000;

/// A folder with everything that `ainori` needs.
pub struct Checkout {
    folder: TempDir,
}

impl Checkout {
    /// A system of a Linux and a FreeRTOS guest on so many harts.
    pub fn new(harts: u32) -> Self {
        let checkout = Self { folder: tempfile::tempdir().unwrap() };
        fs::write(checkout.path("Image"), linux_image()).unwrap();
        fs::write(checkout.path("freertos.elf"), guest_elf()).unwrap();
        fs::write(checkout.path("kernel.elf"), kernel_elf(0x3000)).unwrap();
        fs::write(
            checkout.path("demo.toml"),
            format!(
                r#"
[board]
machine = "qemu-virt"
harts = {harts}
memory = "1GiB"
[[guest]]
name = "linux"
kind = "linux"
image = "Image"
memory = "64MiB"
[[guest]]
name = "freertos"
kind = "elf"
image = "freertos.elf"
memory = "4MiB"
priority = 10
"#
            ),
        )
        .unwrap();
        checkout
    }

    /// A path in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Changes `demo.toml`.
    pub fn change_manifest(&self, change: impl FnOnce(String) -> String) {
        let file = self.path("demo.toml");
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(file, change(text)).unwrap();
    }

    /// Puts a shell script in QEMU's place. It answers `--version` by itself; otherwise it finds the folder of recorded
    /// serial lines in `$recorded`, and in `$serial` where its output is expected: not in `/dev/stdout`, which is a link that
    /// anybody who may write in `/dev` can break.
    pub fn fake_qemu(&self, version: &str, script: &str) {
        let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/serial");
        let text = format!(
            r#"#!/bin/sh
[ "$1" = --version ] && {{ echo "QEMU emulator version {version}"; exit; }}
recorded={}
serial=/proc/self/fd/1
for argument; do case $argument in file,id=serial,*) serial=${{argument#*path=}} ;; esac; done
{script}
"#,
            recorded.display()
        );
        // Written by another process: a test that forks at this moment would else hold it open, so that it can't be run.
        let (script, program) = (self.path("script"), self.path("qemu-system-riscv64"));
        fs::write(&script, text).unwrap();
        assert!(
            Command::new("install").args(["-m", "755"]).args([script, program]).status().unwrap().success()
        );
    }

    /// `ainori` with arguments, in this folder, with the fake QEMU and hypervisor.
    pub fn ainori(&self, arguments: &[&str]) -> Command {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(env!("CARGO_BIN_EXE_ainori"));
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env("PATH", format!("{}:{path}", self.folder.path().display()))
            .env("AINORI_KERNEL", self.path("kernel.elf"));
        command
    }
}

/// A Linux `Image` of only a header.
fn linux_image() -> Vec<u8> {
    let mut bytes = vec![0; 4096];
    bytes[8..16].copy_from_slice(&0x20_0000u64.to_le_bytes());
    bytes[16..24].copy_from_slice(&0x100_0000u64.to_le_bytes());
    bytes[56..60].copy_from_slice(b"RSC\x05");
    bytes
}

fn guest_elf() -> Vec<u8> {
    Elf { segments: vec![(0x8000_0000, vec![0x13; 64], 64)], ..Elf::default() }.bytes()
}

/// A hypervisor: a page of code with a boot header, a page of constants, and bss up to `end` bytes behind its start.
pub fn kernel_elf(end: u64) -> Vec<u8> {
    let mut text = vec![0x13; 4096];
    text[56..60].copy_from_slice(b"RSC\x05");
    let rodata = vec![0x77; 100];
    Elf {
        segments: vec![
            (LOAD_ADDRESS, text, 4096),
            (LOAD_ADDRESS + 0x1000, rodata, 100),
            (LOAD_ADDRESS + 0x2000, vec![], 0x800),
        ],
        // Type, flags (2 allocated, 1 writable, 4 code) and size.
        sections: vec![(1, 2 | 4, 4096), (1, 2, 100), (8, 2 | 1, 0x800), (1, 0, 5000)],
        symbol: Some(("__image_end", LOAD_ADDRESS + end)),
    }
    .bytes()
}

/// A static riscv64 executable.
#[derive(Default)]
pub struct Elf {
    /// Address, bytes in the file, and length in memory.
    pub segments: Vec<(u64, Vec<u8>, u64)>,
    /// Type, flags and size of sections without contents of their own.
    pub sections: Vec<(u32, u64, u64)>,
    /// A symbol and its value.
    pub symbol: Option<(&'static str, u64)>,
}

impl Elf {
    /// The file.
    pub fn bytes(&self) -> Vec<u8> {
        let mut body = Vec::new();
        let body_at = 64 + 56 * self.segments.len() as u64;
        let mut program_headers = Vec::new();
        for (address, bytes, memory) in &self.segments {
            program_headers.extend(1u32.to_le_bytes()); // PT_LOAD
            program_headers.extend(7u32.to_le_bytes());
            let offset = body_at + body.len() as u64;
            for value in [offset, *address, *address, bytes.len() as u64, *memory, 16] {
                program_headers.extend(value.to_le_bytes());
            }
            body.extend(bytes);
        }

        // The null section, the given ones, then names of symbols and symbols.
        let mut sections = vec![[0; 10]];
        sections.extend(
            self.sections
                .iter()
                .map(|&(kind, flags, size)| [0, u64::from(kind), flags, 0, 0, size, 0, 0, 1, 0]),
        );
        if let Some((name, value)) = self.symbol {
            let names_at = body_at + body.len() as u64;
            body.push(0);
            body.extend(name.as_bytes());
            body.push(0);
            let symbols_at = body_at + body.len() as u64;
            body.extend([0; 24]);
            body.extend(1u32.to_le_bytes());
            body.extend([0x10, 0, 0xf1, 0xff]); // global, absolute
            body.extend(value.to_le_bytes());
            body.extend(0u64.to_le_bytes());
            let names = sections.len() as u64;
            sections.push([0, 3, 0, 0, names_at, name.len() as u64 + 2, 0, 0, 1, 0]);
            sections.push([0, 2, 0, 0, symbols_at, 48, names, 1, 8, 24]);
        }
        let sections_at = body_at + body.len() as u64;

        let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
        file.extend(2u16.to_le_bytes()); // ET_EXEC
        file.extend(243u16.to_le_bytes()); // EM_RISCV
        file.extend(1u32.to_le_bytes());
        for value in [self.segments.first().map_or(0, |segment| segment.0), 64, sections_at] {
            file.extend(value.to_le_bytes());
        }
        file.extend(0u32.to_le_bytes());
        for value in [64, 56, self.segments.len() as u16, 64, sections.len() as u16, 0] {
            file.extend(value.to_le_bytes());
        }
        file.extend(program_headers);
        file.extend(body);
        for [name, kind, flags, address, offset, size, link, info, align, entry] in sections {
            file.extend((name as u32).to_le_bytes());
            file.extend((kind as u32).to_le_bytes());
            for value in [flags, address, offset, size] {
                file.extend(value.to_le_bytes());
            }
            file.extend((link as u32).to_le_bytes());
            file.extend((info as u32).to_le_bytes());
            file.extend(align.to_le_bytes());
            file.extend(entry.to_le_bytes());
        }
        file
    }
}
