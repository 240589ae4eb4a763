//! The hypervisor itself: how much of the machine it takes.
use ainori::image::Kernel;
use ainori_manifest::Needs;
use std::{collections::BTreeSet, fs, ops::Range, os::unix::fs::FileExt, path::PathBuf};

use ainori_tests::{Clock, Guest, System, checkout, hypervisor, symbols::Program};

#[test]
fn what_stays_fits_into_92_kib_and_all_into_170() {
    let sections = Kernel::load(
        Some(&hypervisor()),
        Needs {
            room: ainori_limits::Room::USUAL,
            memory_modes: false,
            without_h: false,
            without_sstc: false,
            more_uarts: false,
            watchdogs: false,
        },
    )
    .expect("the hypervisor can be loaded")
    .sections;
    let stays = sections.text + sections.rodata;
    println!("{} bytes of code, {} of constants, {} for boot", sections.text, sections.rodata, sections.boot);
    assert!(stays <= 92 << 10, "text + rodata are {stays} bytes, more than 92 KiB");
    let all = stays + sections.boot;
    assert!(all <= 170 << 10, "with what only boot needs, they are {all} bytes, more than 170 KiB");
    // What they are now, and 1 % for other compilers: who adds more should know.
    assert!(stays <= 91 << 10, "text + rodata have grown from 90.5 KiB to {stays} bytes");
}

/// Boot's code and constants are zeros afterwards.
#[test]
fn nothing_that_stays_refers_to_what_only_boot_needs() {
    let kernel = Program::open(&hypervisor());
    // Behind its code and constants is boot's stack, which is larger than an instruction's inaccuracy.
    let boot = kernel.address("__image_start")..kernel.address("__boot_stack");
    assert!(kernel.code_that_refers_to(".boot.text", &boot).len() > 1000, "references can't be seen");
    let references = kernel.code_that_refers_to(".text", &boot);
    let functions: Vec<_> = references.iter().map(|at| kernel.function_at(*at).unwrap_or_default()).collect();
    assert_eq!(functions, ["leave_boot"], "it clears them, and is alone in this");
    for section in [".rodata", ".data"] {
        let pointers = kernel.pointers_to(section, &boot);
        assert!(pointers.is_empty(), "{section} has pointers to what only boot needs: at {pointers:x?}");
    }
}

/// What the linker can't see: in a machine that has run, too, there are only zeros and none has a pointer to them.
#[test]
fn boot_leaves_nothing_behind() {
    const RAM: u64 = 0x8000_0000;
    let ram = tempfile::NamedTempFile::new().expect("a temporary file");
    let backend = format!("memory-backend-file,id=ram,share=on,size=2G,mem-path={}", ram.path().display());
    let args = ["-object", &backend, "-machine", "memory-backend=ram"].map(String::from);
    let guests = [Guest::probe("smp", "rounds=0100").vcpus(2), Guest::freertos("periods=10 burn_percent=10")];
    let board = System::on(1).of_usual_build();
    let run = guests.into_iter().fold(board, System::with).qemu_args(args).run(Clock::Icount);
    run.good();

    let kernel = Program::open(&hypervisor());
    let words = |range: Range<u64>| {
        let mut bytes = vec![0; (range.end - range.start) as usize];
        ram.as_file().read_exact_at(&mut bytes, range.start - RAM).expect("the machine's memory can be read");
        let words = bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("8 bytes")));
        (range.start..).step_by(8).zip(words).collect::<Vec<_>>()
    };
    let boot = kernel.address("__image_start")..kernel.address("__boot_end");
    assert!(words(boot.clone()).iter().all(|(_, word)| *word == 0), "boot's memory isn't cleared");
    // Behind the image and the blob come the hypervisor's objects, and memory that nobody uses, of which there is plenty before the guests'. In
    // gaps of objects there is what stood on boot's stack, such as return addresses, so of the code only the beginnings of functions count.
    let all = words(boot.end..boot.end + (16 << 20));
    let functions = kernel.functions_in(".boot.text");
    let is_left = |word: u64| {
        kernel.range_of(".boot.rodata").contains(&word) || functions.iter().any(|(start, _)| *start == word)
    };
    let left: Vec<_> = all.iter().filter(|(_, word)| boot.contains(word) && is_left(*word)).collect();
    assert!(left.is_empty(), "pointers to what only boot needs (place, where to): {left:x?}");
}

/// If a function that stays allocated, the linker would have kept the allocator.
#[test]
fn nothing_that_stays_allocates() {
    let kernel = Program::open(&hypervisor());
    let has_allocator =
        |section: &str| kernel.functions_in(section).iter().any(|(_, name)| name.contains("BootAllocator"));
    assert!(has_allocator(".boot.text"), "the allocator can't be seen");
    assert!(!has_allocator(".text"), "something that stays allocates");
}

/// What clippy can't tell: in what the compiler has made of it, nothing that stays after boot can panic, but for what docs/trap.md lists. (Of
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
    let known = |caller: &str| match () {
        () if caller.contains("15unexpected_trap") => Some("a trap of the hypervisor itself"),
        () if caller.contains("3Cpu5adopt") => Some("a priority that the manifest can't have"),
        () if caller.contains("8not_here") => Some("Cpu::resident"),
        () => None,
    };
    let calls = Program::open(&hypervisor()).calls();
    let panics = calls.iter().filter(|(caller, callee)| caller.contains("ainori") && is_panic(callee));
    let (mut found, mut unknown) = (BTreeSet::new(), Vec::new());
    for (caller, callee) in panics {
        match known(caller) {
            Some(reason) => _ = found.insert(reason),
            None => unknown.push(format!("{caller} calls {callee}")),
        }
    }
    assert!(unknown.is_empty(), "{}", unknown.join("\n"));
    assert_eq!(found.len(), 3, "of those that are known, there are only {found:?}");
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
        // Cargo's folder of crates is named after whatever this machine gets them from.
        assert!(!image_loads("registry"), "{} names a registry of crates", image.display());
    }
    // It would be seen: FreeRTOS's assertions name their files.
    assert!(Program::open(&guests[0]).loads(b"tasks.c"));
}

/// A compiler that is called once for sources and program makes object files called /tmp/ccXXXXXX.o, and the program's symbols name them: two builds differ.
#[test]
fn programs_do_not_name_temporary_files() {
    fn names_one(program: &[u8]) -> bool {
        program.windows(11).any(|text| {
            text.starts_with(b"cc")
                && text[2..8].iter().all(u8::is_ascii_alphanumeric)
                && text.ends_with(b".o\0")
        })
    }
    let folders = [
        "guests/freertos",
        "guests/probes",
        "guests/fuzz",
        "guests/differ",
        "guests/u-boot",
        "plugins",
        "kernel",
    ];
    let files = folders
        .iter()
        .filter_map(|folder| fs::read_dir(checkout(&format!(".cache/{folder}"))).ok())
        .flatten();
    let programs: Vec<PathBuf> =
        files.map(|file| file.unwrap().path()).filter(|path| path.is_file()).collect();
    assert!(programs.len() > 20, "these are all: {programs:?}");
    let named: Vec<_> = programs.iter().filter(|path| names_one(&fs::read(path).unwrap())).collect();
    assert!(named.is_empty(), "{named:?}");
    assert!(names_one(b"\0/tmp/ccq6jpRg.o\0"));
}

/// Nothing is allocated after boot, whatever guests do (see above).
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
