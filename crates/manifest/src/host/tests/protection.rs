//! `memory_at`, `trusts`, and `translation = "none"`.
use super::*;
use crate::blob::{Space, spaces};
use crate::config::{Image, Segment, Translation};

/// Where FreeRTOS's memory is in these tests.
const AT: u64 = 0xf000_0000;

/// FreeRTOS without protection, as a flat binary, with these keys beside its own; Linux with those.
fn unprotected(linux: &str, freertos: &str) -> String {
    let text =
        GOOD.replace("devices = [\"/soc/rtc@101000\"]\n", "").replace("kind = \"elf\"", "kind = \"raw\"");
    let text = text.replace("image = \"freertos.elf\"", "image = \"initrd\"");
    assert!(text.contains("priority = 1\n") && text.contains("background = true\n"));
    text.replace("priority = 1\n", &format!("priority = 1\n{linux}\n"))
        .replace("background = true\n", &format!("background = true\n{freertos}\n"))
}

const NONE: &str = "translation = \"none\"\nmemory_at = 0xf0000000";
const TRUST: &str = "trusts = [\"freertos\"]";

#[test]
fn a_guest_whom_all_trust_has_no_protection() {
    let manifest = parse(&unprotected(TRUST, NONE)).unwrap();
    assert!(manifest.warnings.is_none(), "{:?}", manifest.warnings);
    assert_eq!(
        manifest.spaces(),
        [Space::default(), Space { translation: Translation::None, memory_at: Some(AT) }]
    );
    assert!(manifest.needs().memory_modes, "it is a build of its own");
    // The hypervisor is told of the image as of any other, and where its memory is.
    let image = &manifest.system.guests[1].image;
    assert_eq!(image.entry, GUEST_MEMORY_BASE + 0x20_0000);
}

/// Each guest's bytes as they are after a trip through a blob.
#[test]
fn the_kernel_is_told_of_places() {
    let place = format!("memory_at = {AT:#x}");
    for text in [
        unprotected(TRUST, NONE),
        unprotected("", &place),
        unprotected("translation = \"shadow-multi\"", &place),
    ] {
        let manifest = parse(&text).unwrap();
        let wanted = manifest.spaces();
        assert_eq!(wanted[1].memory_at, Some(AT));
        assert!(manifest.needs().memory_modes);
        assert_eq!(spaces(&blob_of_zeros(&manifest)), Ok(wanted));
    }
}

/// A blob that the checks wouldn't have let through is refused by the kernel, too.
#[test]
fn impossible_places_are_refused_in_the_blob() {
    let manifest = parse(GOOD).unwrap();
    let mut system = manifest.system;
    for guest in &mut system.guests {
        let segment = Segment {
            address: GUEST_MEMORY_BASE,
            data: crate::config::Payload { offset: 0, len: 0 },
            memory: 8,
        };
        (guest.image, guest.initrd) = (Image { entry: GUEST_MEMORY_BASE, segments: vec![segment] }, None);
    }
    let files = || GuestFiles { segments: vec![&[][..]], initrd: None };
    for (translation, memory_at) in [
        (Translation::None, None),
        (Translation::None, Some(AT + 0x1000)),
        (Translation::TwoStage, Some(AT + 0x1000)),
        (Translation::TwoStage, Some(u64::MAX - 0x1f_ffff)),
    ] {
        let both = [Space::default(), Space { translation, memory_at }];
        let found = spaces(&encode(system.clone(), &both, &[files(), files()]));
        assert!(found.is_err(), "{both:?}: {found:?}");
    }
}

#[test]
fn who_can_be_read_must_say_that_it_trusts() {
    let name_of_linux = 10;
    for keys in ["", "trusts = []"] {
        let found = errors(&unprotected(keys, NONE));
        assert_told(&found, &[&format!("{name_of_linux}: freertos can read and change all memory of linux")]);
        assert!(found[0].contains("add trusts = [\"freertos\"] to linux"), "{found:?}");
    }
    // Without protection itself, it is nevertheless asked.
    let both = unprotected("translation = \"none\"\nmemory_at = 0xc0000000\ntrusts = [\"freertos\"]", NONE);
    let both = both.replace("console=ttyS0", "console=tty0");
    let found = errors(&both);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("linux can read and change all memory of freertos"), "{found:?}");
    assert!(parse(&both.replace("0xf0000000", "0xf0000000\ntrusts = [\"linux\"]")).is_ok());
}

#[test]
fn whom_one_trusts_is_looked_at() {
    let found = errors(&unprotected("trusts = [\"freertos\", \"freertis\"]", NONE));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].contains("there is no guest \"freertis\" to trust / did you mean `freertos`?"),
        "{found:?}"
    );
    for (linux, freertos, told) in [
        (TRUST, "", "linux says that it trusts freertos, which can't reach its memory anyhow"),
        ("trusts = [\"freertos\", \"linux\"]", NONE, "linux names itself among those that it trusts"),
        ("trusts = [\"linux\"]", "", "linux names itself among those that it trusts"),
        ("trusts = [\"freertos\", \"freertos\"]", NONE, "linux says twice that it trusts freertos"),
    ] {
        let manifest = parse(&unprotected(linux, freertos)).unwrap();
        let warnings = manifest.warnings.expect("it says something that doesn't matter");
        let all: Vec<_> = warnings.iter().map(|finding| finding.message.clone()).collect();
        assert_eq!(all, [told]);
    }
}

/// On harts without H, where there is no such mode, and where the key can't be read: that is told once, and nothing is said of those who trust the guest.
#[test]
fn nothing_is_concluded_from_a_mode_that_a_guest_cannot_have() {
    let without_h = unprotected(TRUST, NONE).replace("[board]", "[board]\ncpu = \"rv64,h=false\"");
    let unreadable = unprotected(TRUST, &NONE.replace("\"none\"", "\"nothing\""));
    for (text, told) in
        [(without_h, "can't walk a guest's own tables"), (unreadable, "no translation \"nothing\"")]
    {
        let found = errors(&text);
        assert!(found.len() == 1 && found[0].contains(told), "{found:?}");
    }
}

/// A run of it looked dead: what Linux guests have as arguments everywhere else shows nothing here.
#[test]
fn who_would_print_to_a_serial_port_that_is_not_there_is_warned() {
    let place = "translation = \"none\"\nmemory_at = 0xc0000000\ntrusts = []";
    for (args, is_warned) in
        [("quiet console=ttyS0", true), ("console=tty0 earlycon=sbi keep_bootcon", false)]
    {
        let text = unprotected(place, "trusts = [\"linux\"]");
        assert!(text.contains("console=ttyS0"), "{text}");
        let text = text.replace("console=ttyS0", args);
        let warnings = parse(&text).unwrap().warnings;
        let all: Vec<_> = warnings.iter().flat_map(|all| all.iter().map(|one| one.message.clone())).collect();
        assert_eq!(all.iter().any(|one| one.contains("no serial port")), is_warned, "{all:?}");
    }
    // With a translation of the hypervisor's it has one.
    assert!(parse(&unprotected("memory_at = 0xc0000000", "")).unwrap().warnings.is_none());
}

#[test]
fn what_cannot_work_without_protection_is_refused() {
    for (linux, freertos, told) in [
        (
            TRUST,
            "translation = \"none\"".to_owned(),
            "somebody has to say where on the board its memory is / e.g. memory_at = 0xfee00000",
        ),
        (TRUST, format!("{NONE}\ndevices = [\"/soc/rtc@101000\"]"), "can't own devices"),
        (
            TRUST,
            format!("{NONE}\non_wild_access = \"stop\""),
            "nobody can stop this guest for an access outside its memory",
        ),
        (TRUST, format!("{NONE}\nshadow_tables = 100"), "this guest has no shadow tables"),
        (
            TRUST,
            format!("{NONE}\n[[channel]]\nguests = [\"linux\", \"freertos\"]\nsize = \"4KiB\""),
            "freertos can have no channel",
        ),
    ] {
        let found = errors(&unprotected(linux, &freertos));
        assert!(found.len() == 1 && found[0].contains(told), "{freertos}: {found:#?}");
    }
    // What is typed it can read by the SBI.
    assert!(parse(&unprotected(TRUST, NONE).replace("input = \"linux\"", "input = \"freertos\"")).is_ok());
    let without_h = unprotected(TRUST, NONE).replacen("harts = 4", "cpu = \"rv64,h=false\"\nharts = 4", 1);
    let found = errors(&without_h);
    assert!(
        found.iter().any(|one| one.contains("can't walk a guest's own tables alone")
            && one.contains("lack the H extension")),
        "{found:?}"
    );
}

#[test]
fn places_are_in_the_board_and_apart() {
    for (place, told) in [
        (
            "0xf0000001",
            "0xf0000001 is no place for a guest's memory: not a multiple of 2MiB / the next is 0xf0200000",
        ),
        ("0xf0001000", "not a multiple of 2MiB"),
        ("0x80000000", "a guest's memory can't be at 0x80000000..0x81000000 of this board / from 0x82"),
        ("0x10000000", "a guest's memory can't be at"),
        ("0xff000000", "a guest's memory can't be at 0xff000000..0x100000000 of this board / from 0x82"),
        ("0x100000000", "a guest's memory can't be at"),
        ("0xffffffffffe00000", "a guest's memory can't be at"),
    ] {
        let found = errors(&unprotected(TRUST, &NONE.replace("0xf0000000", place)));
        assert!(found.len() == 1 && found[0].contains(told), "{place}: {found:#?}");
    }
    let found = errors(&unprotected("memory_at = 0xd0000000", "memory_at = 0xe0000000"));
    assert!(
        found.len() == 1 && found[0].contains("two guests' memory would be at the same place"),
        "{found:?}"
    );
    assert!(parse(&unprotected("memory_at = 0xd0000000", "memory_at = 0xf0000000")).is_ok());
}

/// All else has to fit into one of the pieces that are left.
#[test]
fn a_place_in_the_middle_leaves_pieces() {
    let large =
        unprotected("", "memory_at = 0xc0000000").replace("memory = \"512MiB\"", "memory = \"1010MiB\"");
    let found = errors(&large);
    assert!(
        found.len() == 1 && found[0].contains("the piece of the board's that has most left has 1008 MiB"),
        "{found:?}"
    );
    assert!(parse(&large.replace("0xc0000000", "0xf0000000")).is_ok());
}

/// The image with guests' files is in the first piece: what is in another one needs no room for it.
#[test]
fn files_take_no_room_of_a_piece_that_they_are_not_in() {
    let pieces =
        unprotected("", "memory_at = 0xb0000000").replace("memory = \"16MiB\"", "memory = \"256MiB\"");
    let with = |mib: u32| pieces.replace("memory = \"512MiB\"", &format!("memory = \"{mib}MiB\""));
    assert!(parse(&with(1000)).is_ok(), "{:?}", errors(&with(1000)));
    let found = errors(&with(1010));
    let told = "has 1024 MiB; guests and 17 MiB for the hypervisor and its trace rings must fit";
    assert!(found.len() == 1 && found[0].contains(told), "{found:?}");
}

/// A program that is linked for a place needs it; one that could be anywhere goes with its guest's memory.
#[test]
fn programs_go_with_the_memory() {
    let fixed = unprotected(TRUST, NONE)
        .replace("kind = \"raw\"", "kind = \"elf\"")
        .replace("image = \"initrd\"", "image = \"freertos.elf\"");
    let found = errors(&fixed);
    assert!(
        found.len() == 1 && found[0].contains("outside the guest's memory 0xf0000000..0xf1000000"),
        "{found:?}"
    );
    let linux = unprotected("memory_at = 0xc0000000", "");
    let manifest = parse(&linux).unwrap();
    assert_eq!(manifest.system.guests[0].image.entry, GUEST_MEMORY_BASE + 0x20_0000);
    let file = linux_image(0x20_0000, 0x140_0000);
    assert_eq!(manifest.program(0, &file).unwrap().entry, 0xc020_0000);
}
