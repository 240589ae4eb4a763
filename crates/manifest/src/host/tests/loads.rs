//! Files that a guest finds beside its program.
use super::*;

/// The good manifest, FreeRTOS having these files beside its program, which lies at the begin of its 16 MiB.
fn with(loads: &str) -> String {
    GOOD.replacen("background = true", &format!("background = true\n{loads}"), 1)
}

fn load(file: &str, address: u64) -> String {
    format!("[[guest.load]]\nfile = \"{file}\"\naddress = {address:#x}\n")
}

#[test]
fn files_lie_beside_the_program() {
    let manifest = parse(&with(&(load("initrd", 0x8080_0001) + &load("initrd", 0x8040_0000)))).unwrap();
    let image = &manifest.system.guests[1].image;
    let places: Vec<_> = image.segments.iter().map(|segment| (segment.address, segment.data.len)).collect();
    // In the order of their addresses, as the hypervisor wants them.
    assert_eq!(places[1..], [(0x8040_0000, 1000), (0x8080_0001, 1000)]);
    assert_eq!(places[0].0, GUEST_MEMORY_BASE);
    let written: Vec<_> = manifest.files[1].loads.iter().map(|load| load.address).collect();
    assert_eq!(written, [0x8080_0001, 0x8040_0000]);
    let all: Vec<_> = manifest.files[1].all().map(|(what, _)| what).collect();
    assert_eq!(
        all,
        ["a guest's image", "a file that a guest finds loaded", "a file that a guest finds loaded"]
    );
    // The kernel takes that description, too.
    assert!(crate::blob::decode(&blob_of_zeros(&manifest)).is_ok());
}

#[test]
fn the_bytes_are_those_of_the_file() {
    let manifest = parse(&with(&load("initrd", 0x8040_0000))).unwrap();
    let image = elf_file(GUEST_MEMORY_BASE, &[(GUEST_MEMORY_BASE, 0x1f_8000)]);
    let mut program = manifest.program(1, &image).unwrap();
    manifest.add_load(1, &manifest.files[1].loads[0], b"changed", &mut program).unwrap();
    assert_eq!(&*program.segments.last().unwrap().bytes, b"changed");
}

#[test]
fn what_does_not_fit_is_told_where_it_is_written() {
    let told = |loads: &str| errors(&with(loads));
    let first = with("").lines().position(|line| line == "[trace]").unwrap();
    let told_at = |line: usize, loads: &str, message: &str| {
        let [error] = &told(loads)[..] else { panic!("one finding: {:?}", told(loads)) };
        assert!(error.starts_with(&format!("{}: ", first + line)), "{error}");
        assert!(error.contains(message), "{error}");
    };
    let (of_file, of_address) = (1, 2);
    let one = |loads: &str, message: &str| told_at(of_address, loads, message);
    one(&load("initrd", 0x7fff_ffff), "outside the guest's memory 0x80000000..0x81000000");
    one(&load("initrd", 0x80ff_ffff), "outside the guest's memory");
    one(&load("initrd", u64::MAX >> 1), "outside the guest's memory");
    one(&load("initrd", 0x801f_7fff), "where the guest's program or another file is");
    one(&load("initrd", 0x80ff_0000), "with its device tree doesn't fit");
    told_at(of_file, &load("none", 0x8040_0000), "the file");
    told_at(of_file, &load("pipe", 0x8040_0000), "the file");
    one(&load("empty", 0x8040_0000), "is empty");
    told_at(0, "[[guest.load]]\nfile = \"initrd\"\n", "address");
    // Each for itself; the second one overlaps the first.
    let twice = told(&(load("initrd", 0x8040_0000) + &load("initrd", 0x8040_03e7)));
    assert_eq!(twice.len(), 1, "{twice:?}");
    assert!(
        twice[0].starts_with(&format!("{}: ", first + 3 + of_address))
            && twice[0].contains("another file is"),
        "{twice:?}"
    );
    let beside = with(&(load("initrd", 0x8040_0000) + &load("initrd", 0x8040_03e8)));
    assert_eq!(parse(&beside).unwrap().system.guests[1].image.segments.len(), 3);
}
