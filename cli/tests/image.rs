//! A boot image from a hypervisor's ELF file.
mod support;

use ainori::image::{self, Kernel, Sections};
use ainori_manifest::{Manifest, blob};
use support::{Checkout, Elf, LOAD_ADDRESS, kernel_elf};

fn error(bytes: &[u8]) -> String {
    Kernel::from_elf(bytes).unwrap_err().to_string()
}

#[test]
fn segments_are_laid_out_as_in_memory() {
    let kernel = Kernel::from_elf(&kernel_elf(0x3000)).unwrap();
    assert_eq!(kernel.bytes.len(), 0x3000, "bss is in the image, as zeros");
    assert_eq!(kernel.bytes[0], 0x13);
    assert_eq!(kernel.bytes[0x1000..0x1064], [0x77; 100]);
    assert!(kernel.bytes[0x1064..].iter().all(|byte| *byte == 0));
    assert_eq!(kernel.sections, Sections { text: 4096, rodata: 100, boot: 0, data: 0, bss: 0x800 });
}

#[test]
fn an_image_is_hypervisor_and_blob_and_says_how_long_it_is() {
    let checkout = Checkout::new(2);
    let manifest = Manifest::load(&checkout.path("demo.toml")).unwrap();
    let image = image::build(&manifest, Kernel::from_elf(&kernel_elf(0x3000)).unwrap()).unwrap();
    let len = u64::from_le_bytes(*image.bytes[16..].first_chunk().unwrap());
    assert_eq!(len, image.bytes.len() as u64);
    let blob = &image.bytes[0x3000..];
    assert_eq!(blob::length(blob), Ok(blob.len()));
    let system = blob::decode(blob).unwrap();
    assert_eq!(system.name, "demo");
    let freertos = std::fs::read(checkout.path("freertos.elf")).unwrap();
    let program = manifest.program(1, &freertos).unwrap();
    assert_eq!(system.guests[1].image.entry, program.entry);
    for (found, segment) in system.guests[1].image.segments.iter().zip(&program.segments) {
        assert_eq!((found.address, found.memory), (segment.address, segment.memory));
        assert_eq!(blob::payload(blob, found.data), &*segment.bytes);
    }
}

#[test]
fn what_is_no_hypervisor_is_told_apart() {
    assert!(error(b"hello").contains("damaged ELF file"));
    assert!(error(&Elf::default().bytes()).contains("nothing to load"));
    let elsewhere = Elf { segments: vec![(0x8000_0000, vec![0; 64], 64)], ..Elf::default() };
    assert!(error(&elsewhere.bytes()).contains("linked at 0x80000000, not at 0x80200000"));
    let nameless = Elf { segments: vec![(LOAD_ADDRESS, vec![0; 64], 64)], ..Elf::default() };
    assert!(error(&nameless.bytes()).contains("no symbol __image_end"));
    assert!(error(&kernel_elf(0x3001)).contains("not on a page boundary"));
    assert!(error(&kernel_elf(1 << 40)).contains("not on a page boundary behind the image"));
    assert!(error(&kernel_elf(0x1000)).contains("0x80201000 lies behind __image_end"));
    let mut headless = kernel_elf(0x3000);
    let at = headless.windows(4).position(|bytes| bytes == b"RSC\x05").unwrap();
    headless[at] = 0;
    assert!(error(&headless).contains("header of a RISC-V Image"));
}
