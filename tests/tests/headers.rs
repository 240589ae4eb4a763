//! Numbers that programs in C have of their own, since they run on other machines too: they are those of `crates/limits` and of the devices.
use std::{collections::BTreeMap, fs};

use ainori_devices::{aplic::layout as aplic, bus, imsic::IDENTITIES, plic::layout};
use ainori_limits::{IRQ_SOURCES, MAX_GUEST_VCPUS, MAX_HARTS, PLIC_CONTEXTS, Room, cause};
use ainori_tests::checkout;

fn read(file: &str) -> String {
    let path = checkout("guests").join(file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn number(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(['u', 'l']);
    digits.strip_prefix("0x").map_or_else(|| digits.parse().ok(), |hex| u64::from_str_radix(hex, 16).ok())
}

/// The macros of a file that are plain numbers.
fn numbers(file: &str) -> BTreeMap<String, u64> {
    let text = read(file);
    let defined = text.lines().filter_map(|line| {
        let mut words = line.strip_prefix("#define ")?.split_whitespace();
        Some((words.next()?.to_owned(), number(words.next()?)?))
    });
    defined.collect()
}

/// What the macro of a file with parameters starts with, before the first of them counts: `(0x2000ul + 0x80ul * (context)` gives both numbers.
fn factors(file: &str, name: &str) -> Vec<u64> {
    let text = read(file);
    let line = text.lines().find(|line| line.starts_with(&format!("#define {name}("))).expect(name);
    let (_, body) = line.split_once(')').expect("parameters");
    body.split(['(', ')', ' ']).filter_map(number).collect()
}

#[test]
fn the_sbi_has_the_numbers_of_the_headers() {
    let (standard, own) = (numbers("common/sbi.h"), numbers("common/ainori_sbi.h"));
    for (name, id) in ainori_sbi::EXTENSIONS.iter().filter(|(name, _)| *name != "AINORI") {
        assert_eq!(standard.get(&format!("SBI_{name}")), Some(id), "{name}");
    }
    let ours = [
        ("AINORI_EID", ainori_sbi::AINORI),
        ("AINORI_YIELD", ainori_sbi::ainori::YIELD),
        ("AINORI_MARK", ainori_sbi::ainori::MARK),
        ("AINORI_LOCK_TAKEN", ainori_sbi::ainori::LOCK_TAKEN),
        ("AINORI_LOCK_RELEASED", ainori_sbi::ainori::LOCK_RELEASED),
        ("AINORI_GIVE_WAY", ainori_sbi::ainori::GIVE_WAY),
    ];
    assert_eq!(own, ours.map(|(name, value)| (name.to_owned(), value)).into());
}

#[test]
fn exceptions_have_the_same_names_in_guests() {
    let text = read("common/trap.c");
    let (_, names) = text.split_once("names[] = {").unwrap();
    let names: Vec<_> = names.split_once('}').unwrap().0.split('"').skip(1).step_by(2).collect();
    assert_eq!(names.len(), 16, "those that a guest can get");
    for (code, name) in names.into_iter().enumerate() {
        // A guest takes itself for a supervisor.
        let ours = cause::exception_name(code as u64).filter(|_| code != 10);
        assert_eq!(name, ours.unwrap_or("?").replace("HS-mode", "S-mode"), "{code}");
    }
}

#[test]
fn guests_have_room_for_all_harts() {
    let most = numbers("common/machine.h")["MAX_HARTS"] as usize;
    assert!(most >= MAX_GUEST_VCPUS && most >= MAX_HARTS, "they run on the bare machine too");
}

#[test]
fn qemu_plugins_have_room_for_all_harts() {
    let text = std::fs::read_to_string(ainori_tests::checkout("tools/qemu-plugins/harts.h")).unwrap();
    let (_, most) = text.split_once("MAX_HARTS = ").unwrap();
    let (most, _) = most.split_once(' ').unwrap();
    assert_eq!(most.parse(), Ok(Room::LARGE.harts));
}

#[test]
fn devices_are_where_guests_look_for_them() {
    // It finds its interrupt controller in the device tree.
    let fuzz = numbers("fuzz/memory.h");
    assert_eq!((fuzz["UART_BASE"], fuzz["GIVE_WAY_BASE"]), (bus::UART.base, bus::GIVE_WAY.base));
    for probe in ["chaos", "give-way"] {
        assert_eq!(numbers(&format!("probes/{probe}.c"))["GIVE_WAY"], bus::GIVE_WAY.base);
    }
    assert_eq!(numbers("fuzz/attacks.c")["PLIC_CONTEXTS"], PLIC_CONTEXTS as u64);
    assert_eq!(numbers("fuzz/attacks.c")["IDENTITIES"], u64::from(IDENTITIES));

    let virt = numbers("probes/virt.c");
    let (finisher, uart, virtio) = (bus::FINISHER.base, bus::UART.base, bus::VIRTIO.base);
    assert_eq!((virt["FINISHER"], virt["UART"], virt["VIRTIO"]), (finisher, uart, virtio));
    assert_eq!((virt["SLOTS"], virt["SOURCES"]), (bus::VIRTIO_SLOTS.into(), IRQ_SOURCES as u64));
    assert_eq!(factors("probes/virt.c", "PLIC_PRIORITY"), [bus::PLIC.base, 4]);
    assert_eq!(
        factors("probes/virt.c", "PLIC_ENABLE"),
        [bus::PLIC.base + layout::ENABLE, layout::ENABLE_SIZE]
    );

    let driver = |name| factors("common/plic.c", name);
    assert_eq!(driver("PENDING"), [layout::PENDING, 32, 4]);
    assert_eq!(driver("ENABLE"), [layout::ENABLE, layout::ENABLE_SIZE, 32, 4]);
    assert_eq!(driver("THRESHOLD"), [layout::CONTEXT, layout::CONTEXT_SIZE]);
    assert_eq!(driver("CLAIM"), [layout::CONTEXT + layout::CLAIM_COMPLETE, layout::CONTEXT_SIZE]);

    let driver = |name| factors("common/aplic.h", name);
    assert_eq!(driver("APLIC_SETIP"), [aplic::SETIP, 32, 4]);
    assert_eq!(driver("APLIC_TARGET"), [aplic::TARGET, 4]);
    let driver = numbers("common/aplic.h");
    assert_eq!((driver["APLIC_SETIPNUM"], driver["APLIC_SETIENUM"]), (aplic::SETIPNUM, aplic::SETIENUM));
    for (name, register) in
        [("IDELIVERY", aplic::IDELIVERY), ("ITHRESHOLD", aplic::ITHRESHOLD), ("CLAIMI", aplic::CLAIMI)]
    {
        assert_eq!(factors("common/aplic.c", name), [aplic::IDC + register, aplic::IDC_SIZE], "{name}");
    }
}
