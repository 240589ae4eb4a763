//! The hypervisor itself: how much of the machine it takes.
use ainori::image::Kernel;
use std::collections::BTreeSet;

use ainori_tests::{Clock, Guest, System, checkout, hypervisor, symbols::Program};

#[test]
fn code_and_constants_fit_into_128_kib() {
    let sections = Kernel::load(Some(&hypervisor())).expect("the hypervisor can be loaded").sections;
    let size = sections.text + sections.rodata;
    println!("{} bytes of code, {} of constants", sections.text, sections.rodata);
    assert!(size <= 128 << 10, "text + rodata are {size} bytes, more than 128 KiB");
}

/// What clippy can't tell: in what the compiler has made of it, nothing that runs beside guests can panic, but for what docs/trap.md lists. (Of
/// functions of the standard library that aren't part of their caller, it isn't known who calls them.)
#[test]
fn what_can_panic_beside_guests_is_known() {
    let is_panic = |name: &str| {
        let ends = [
            "9panicking",
            "unwrap_failed",
            "expect_failed",
            "slice_index_fail",
            "handle_error",
            "alloc_error",
        ];
        name.contains("4core") && name.contains(ends[0]) || ends[1..].iter().any(|end| name.contains(end))
    };
    // In symbols a path is written with the length of each part.
    let boot_only = [
        "13ainori_kernel4boot",
        "13ainori_kernel4arch3isa",
        "13ainori_kernel4chip5board",
        "13ainori_kernel5guest11device_tree",
        "15ainori_manifest",
        "14ainori_console6source6Source3new",
    ];
    let known = |caller: &str, callee: &str| match () {
        () if caller.contains("15unexpected_trap") => Some("a trap of the hypervisor itself"),
        () if caller.contains("BootAllocator") => Some("allocation after boot"),
        () if caller.contains("3Cpu5adopt") => Some("a priority that the manifest can't have"),
        () if callee.contains("expect_failed") => Some("Cpu::resident"),
        () => None,
    };
    let calls = Program::open(&hypervisor()).calls();
    let panics = calls.iter().filter(|(caller, callee)| {
        caller.contains("ainori") && !boot_only.iter().any(|part| caller.contains(part)) && is_panic(callee)
    });
    let (mut found, mut unknown) = (BTreeSet::new(), Vec::new());
    for (caller, callee) in panics {
        match known(caller, callee) {
            Some(reason) => _ = found.insert(reason),
            None => unknown.push(format!("{caller} calls {callee}")),
        }
    }
    assert!(unknown.is_empty(), "{}", unknown.join("\n"));
    assert_eq!(found.len(), 4, "of those that are known, there are only {found:?}");
}

/// A path in a message moves the code and data after it, and with them the time that things take.
#[test]
fn images_are_the_same_bytes_in_any_folder() {
    let guests = ["freertos/freertos.elf", "probes/smp.elf", "fuzz/fuzz.elf"];
    let guests = guests.map(|guest| checkout(&format!(".cache/guests/{guest}")));
    let here = checkout("").display().to_string();
    for image in guests.iter().chain([&hypervisor()]) {
        let image_loads = |what: &str| Program::open(image).loads(what.as_bytes());
        assert!(!image_loads(here.trim_end_matches('/')), "{} contains the path {here}", image.display());
    }
    // It would be seen: FreeRTOS's assertions name their files.
    assert!(Program::open(&guests[0]).loads(b"tasks.c"));
}

/// That nothing is allocated after boot, the hypervisor sees to itself: it panics otherwise, and no test would pass.
#[test]
fn memory_does_not_depend_on_what_guests_do() {
    let taken = |rounds: u32| {
        let args = format!("rounds={rounds:04}");
        let run = System::on(2)
            .with(Guest::probe("smp", &args).vcpus(4).harts([0, 1]))
            .run(Clock::Lockstep { q: 250 });
        let board = run.good().report.board.as_ref();
        let bytes =
            board.unwrap_or_else(|| run.fail("the hypervisor should describe the board")).hypervisor_bytes;
        (bytes, run.number("smp", "ipis"))
    };
    let (little, few) = taken(1);
    let (much, many) = taken(1000);
    println!("{few} IPIs: {little} bytes; {many} IPIs: {much} bytes");
    assert!(many > 50 * few);
    assert_eq!(little, much);
}
