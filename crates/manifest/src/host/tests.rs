//! Each error that a manifest can have, with its line and its words; and that no text at all makes the checks panic.
use super::{
    images::tests::{elf_file, linux_image},
    *,
};
use crate::blob::{GuestFiles, encode};
use crate::config::{GUEST_MEMORY_BASE, Kind, OnWildAccess, Policy, Restart, Restarts, Vcpu};
use ainori_limits::{PRIORITIES, Room};

mod boards;
mod channels;
mod loads;
mod protection;
mod tasks;
mod timer;
mod translation;
mod virtio;
mod watchdog;
mod windows;

const MAX_HARTS: usize = Room::LARGE.harts;
const MAX_VCPUS: usize = Room::LARGE.vcpus;
const MAX_GUEST_VCPUS: usize = Room::LARGE.guest_vcpus;
use proptest::prelude::*;
use tempfile::TempDir;

/// A manifest that keeps all rules; tests break one thing in it.
const GOOD: &str = r#"name = "demo"
policy = { preset = "spumone", quantum = "5ms" }
[board]
machine = "qemu-virt"
harts = 4
memory = "2GiB"
[console]
input = "linux"
[[guest]]
name = "linux"
kind = "linux"
image = "Image"
initrd = "initrd"
args = "console=ttyS0"
memory = "512MiB"
vcpus = 4
harts = [0, 1, 2, 3]
priority = 1
[[guest]]
name = "freertos"
kind = "elf"
image = "freertos.elf"
memory = "16MiB"
harts = [1]
priority = 10
devices = ["/soc/rtc@101000"]
background = true
[trace]
mask = ["default"]
records = 4096
"#;

fn guest_files() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(directory.path().join(name), bytes).unwrap();
    write("Image", &linux_image(0x20_0000, 0x140_0000));
    write("initrd", &[0; 1000]);
    write("empty", &[]);
    write("disk", &[0; 1024]);
    write("freertos.elf", &elf_file(GUEST_MEMORY_BASE, &[(GUEST_MEMORY_BASE, 0x1f_8000)]));
    let pipe = std::process::Command::new("mkfifo").arg(directory.path().join("pipe")).status();
    assert!(pipe.unwrap().success());
    directory
}

fn parse(text: &str) -> Result<Manifest, Box<Findings>> {
    Manifest::parse("demo.toml", text, guest_files().path(), "fallback")
}

/// What the kernel is told of a system: all segments of its guests' images are zeros.
fn blob_of_zeros(manifest: &Manifest) -> Vec<u8> {
    let bytes: Vec<Vec<Vec<u8>>> = (manifest.system.guests.iter())
        .map(|guest| guest.image.segments.iter().map(|segment| vec![0; segment.data.len as usize]).collect())
        .collect();
    let files: Vec<_> = bytes
        .iter()
        .map(|segments| GuestFiles { segments: segments.iter().map(|one| &**one).collect(), initrd: None })
        .collect();
    encode(manifest.system.clone(), &manifest.spaces(), &files)
}

/// These are the errors that were found, in this order: each begins so.
#[track_caller]
fn assert_told(found: &[String], expected: &[&str]) {
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.starts_with(expected), "{found}");
    }
}

/// All findings as "LINE: message / help".
fn errors(text: &str) -> Vec<String> {
    let findings = parse(text).expect_err("this manifest is wrong");
    findings
        .iter()
        .map(|finding| {
            let (line, _) = findings.position(finding);
            format!("{line}: {} / {}", finding.message, finding.help.as_deref().unwrap_or("no help"))
        })
        .collect()
}

/// Breaks the good manifest by replacing `from`, and expects one finding, in the line of `from` or at `line`, with
/// these words in message and help.
#[track_caller]
fn broken(from: &str, to: &str, message: &str, help: &str) {
    let at = GOOD.find(from).expect("the good manifest contains the text");
    let line = GOOD[..at].matches('\n').count() + 1;
    broken_at(line, from, to, message, help);
}

#[track_caller]
fn broken_at(line: usize, from: &str, to: &str, message: &str, help: &str) {
    assert!(GOOD.contains(from));
    let found = errors(&GOOD.replacen(from, to, 1));
    let [only] = &found[..] else { panic!("expected one finding, got {found:#?}") };
    let (place, rest) = only.split_once(": ").unwrap();
    let (found_message, found_help) = rest.split_once(" / ").unwrap();
    assert_eq!(place, line.to_string(), "{only}");
    assert!(found_message.contains(message), "{only}");
    assert!(found_help.contains(help), "{only}");
}

/// To show an error far to the right was a panic, and a deep value took minutes.
#[test]
fn a_line_too_long_to_show_is_refused() {
    for text in [format!("name=\"{}\" y", "x".repeat(66_000)), format!("#\na={}", "[".repeat(200_000))] {
        let [only] = &errors(&text)[..] else { panic!("expected one finding") };
        assert!(only.contains("bytes") && only.contains("at most 16384"), "{only}");
    }
}

#[test]
fn a_good_manifest_passes() {
    let manifest = parse(GOOD).unwrap();
    let system = &manifest.system;
    assert_eq!(
        system.policy,
        Policy { preset: "spumone".into(), quantum_us: 5_000, grace_us: 100, advance_us: 6, frame_us: 0 }
    );
    assert_eq!(system.console_input, Some(0));
    assert_eq!(system.trace.records, 4096);
    let [linux, freertos] = &system.guests[..] else { panic!("two guests") };
    assert_eq!((linux.kind, linux.memory, linux.vcpus.len()), (Kind::Linux, 512 << 20, 4));
    assert_eq!(linux.vcpus[2], Vcpu { home: 2, harts: 0b1111 });
    assert_eq!(freertos.vcpus, [Vcpu { home: 1, harts: 0b10 }]);
    assert!(freertos.background && !linux.background);
    assert_eq!(linux.restart, Restarts { when: Restart::Never, limit: 5, interval_us: 10_000_000 });
    assert!(manifest.files[0].initrd.as_ref().unwrap().ends_with("initrd"));
    assert_eq!(manifest.board.cpu, "rv64");
}

/// Who copies it has a system that runs, with figures that mean something.
#[test]
fn the_small_complete_manifest_of_the_page_is_right() {
    let page = include_str!("../../../../docs/manifest.md");
    let (_, text) = page.split_once("```toml\n").unwrap();
    let (text, _) = text.split_once("```").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let guests = folder.path().join(".cache/guests");
    for (name, bytes) in [
        ("linux/Image", linux_image(0x20_0000, 0x140_0000)),
        ("linux/initramfs.cpio.gz", vec![0; 1000]),
        ("freertos/freertos.elf", elf_file(GUEST_MEMORY_BASE, &[(GUEST_MEMORY_BASE, 0x1f_8000)])),
    ] {
        std::fs::create_dir_all(guests.join(name).parent().unwrap()).unwrap();
        std::fs::write(guests.join(name), bytes).unwrap();
    }
    let systems = folder.path().join("systems");
    std::fs::create_dir(&systems).unwrap();
    let manifest = Manifest::parse("small.toml", text, &systems, "small").unwrap();
    assert!(manifest.warnings.is_none());
    assert_eq!(manifest.run.clock, Clock::Lockstep);
}

#[test]
fn defaults_are_what_a_user_expects() {
    let text = GOOD
        .replace("name = \"demo\"\n", "")
        .replace("policy = { preset = \"spumone\", quantum = \"5ms\" }\n", "")
        .replace("[console]\ninput = \"linux\"\n", "")
        .replace("harts = [0, 1, 2, 3]\npriority = 1\n", "")
        .replace("[trace]\nmask = [\"default\"]\nrecords = 4096\n", "");
    let manifest = parse(&text).unwrap();
    assert_eq!(manifest.system.name, "fallback");
    assert_eq!(
        manifest.system.policy,
        Policy { preset: "ainori".into(), quantum_us: 500, grace_us: 100, advance_us: 6, frame_us: 0 }
    );
    assert_eq!(manifest.system.console_input, Some(0), "the first Linux guest");
    assert_eq!(manifest.system.guests[0].priority, 1);
    assert_eq!(manifest.system.guests[0].vcpus[3], Vcpu { home: 3, harts: 0b1111 });
    assert_eq!(manifest.system.trace.mask, 0);
}

#[test]
fn more_vcpus_than_harts_share_them_in_turn() {
    let manifest = parse(&GOOD.replace("vcpus = 4", "vcpus = 6").replace("[0, 1, 2, 3]", "[3, 0]")).unwrap();
    let homes: Vec<u32> = manifest.system.guests[0].vcpus.iter().map(|vcpu| vcpu.home).collect();
    assert_eq!(homes, [3, 0, 3, 0, 3, 0]);
}

#[test]
fn all_errors_are_reported_at_once_in_order() {
    let text = GOOD
        .replace("spumone", "spumome")
        .replace("priority = 10", "priority = 99")
        .replace("harts = [0, 1, 2, 3]", "harts = [0, 4, 5]")
        .replace("machine", "mashine");
    let lines: Vec<String> =
        errors(&text).iter().map(|error| error.split(':').next().unwrap().to_owned()).collect();
    assert_eq!(lines, ["2", "4", "17", "17", "25"]);
}

/// One value being wrong says nothing of the next, nor one thing that is wrong with a value of another.
#[test]
fn no_error_hides_another() {
    let restarts = "restart = \"always\"\nrestart_limit = 0\nrestart_interval = \"0s\"\n";
    let text = GOOD
        .replace("\"demo\"", &format!("{:?}", "\n".repeat(65) + "x"))
        .replace("vcpus = 4\nharts = [0, 1, 2, 3]", "vcpus = 0\nharts = [0, 0, 9]")
        .replace("memory = \"16MiB\"", "memory = \"4194305KiB\"")
        .replace("background = true\n", restarts);
    let found = errors(&text);
    let expected = [
        "1: the system's name contains a control character",
        "1: the system's name is too long",
        "16: a guest can't have 0 vCPUs",
        "17: hart 0 is in this list twice",
        "17: hart 9 is not on the board",
        "23: a guest's memory must be a multiple of 2MiB",
        "23: a guest with 4194305KiB doesn't fit a board with 2GiB",
        "28: restart_limit: 0 is out of range",
        "29: restart_interval: 0 us is out of range",
    ];
    assert_told(&found, &expected);
}

/// What is written there is not known, so nothing follows from it.
#[test]
fn a_key_that_is_misspelt_is_one_error() {
    let guest = "[[guest]] has no key";
    let restart = "restrat = \"always\"\nrestart_limit = 3";
    let rule = "preset = \"spumone\", quantum = \"5ms\"";
    for (from, to, message) in [
        ("priority = 10", "priorty = 10", guest),
        ("priority = 10", "priority = \"10\"", "`priority` must be"),
        ("priority = 10", "prio = 10", guest),
        ("memory = \"16MiB\"", "memmory = \"16MiB\"", guest),
        ("name = \"linux\"", "nmae = \"linux\"", guest),
        ("kind = \"elf\"", "knid = \"elf\"", guest),
        ("background = true", restart, guest),
        (
            "background = true",
            &restart.replace("restrat", "restart").replace("always", "alwys"),
            "can't be restarted",
        ),
        ("harts = 4", "hart = 4", "[board] has no key"),
        ("[board]", "[bord]", "the manifest has no key"),
        ("records = 4096", "recods = 1024", "[trace] has no key"),
        (rule, "presett = \"delayed\", grace = \"50us\"", "policy has no key"),
        (rule, "preset = 3, grace = \"50us\"", "`preset` must be"),
    ] {
        assert!(GOOD.contains(from));
        let found = errors(&GOOD.replacen(from, to, 1));
        assert!(found.len() == 1 && found[0].contains(message), "{to}: {found:#?}");
    }
    let guests = errors(&GOOD.replace("[[guest]]", "[[gest]]"));
    assert!(guests.len() == 1 && guests[0].contains("did you mean `guest`?"), "{guests:#?}");
    let apart = GOOD.replace("spumone", "partition").replace("harts = [0, 1, 2, 3]", "harts = [0, 2, 3]");
    let found = errors(&apart.replace("harts = [1]", "hart = [1]"));
    assert!(found.len() == 1 && found[0].contains("did you mean `harts`?"), "{found:#?}");
    let raw = GOOD.replace("kind = \"elf\"", "kind = \"raw\"").replace("freertos.elf", "initrd");
    let found = errors(&raw.replace("memory = \"16MiB\"", "memory = \"2MiB\"\nload_adress = 0x80000000"));
    assert!(found.len() == 1 && found[0].contains("did you mean `load_address`?"), "{found:#?}");
}

#[test]
fn a_key_in_the_wrong_table_is_told_where_it_belongs() {
    let told = |from: &str, to: &str| {
        let found = errors(&GOOD.replacen(from, &format!("{from}\n{to}"), 1));
        let [only] = &found[..] else { panic!("expected one finding, got {found:#?}") };
        only.split_once(" / ").unwrap().1.to_owned()
    };
    let keys = "machine, cpu, harts, memory, interrupts";
    assert_eq!(
        told("harts = 4", "clock = \"host\""),
        format!("it is a key of [run]: move it there. Known here: {keys}")
    );
    assert_eq!(
        told("machine = \"qemu-virt\"", "name = \"x\""),
        format!(
            "it is a key of the manifest itself, above its first [table], or of [[guest]], or of [[guest.task]]: move it there. Known here: {keys}"
        )
    );
    // The preset is meant for the whole system: which one it is, is not looked at here.
    let last = GOOD.replace("policy = { preset = \"spumone\", quantum = \"5ms\" }\n", "");
    let found = errors(&last.replace("records = 4096", "records = 4096\npolicy = \"partition\""));
    assert_eq!(
        found,
        [
            "30: [trace] has no key `policy` / it is a key of the manifest itself, above its first [table]: move it there. Known here: mask, records"
        ]
    );
}

#[test]
fn a_key_in_capitals_is_known_by_its_letters() {
    broken("vcpus = 4", "vCPUs = 4", "[[guest]] has no key `vCPUs`", "did you mean `vcpus`?");
    broken("kind = \"linux\"", "kind = \"Linux\"", "no guest kind \"Linux\"", "did you mean `linux`?");
}

#[test]
fn a_policy_is_a_name_or_a_table() {
    let text = GOOD.replace("{ preset = \"spumone\", quantum = \"5ms\" }", "3");
    let [only] = &errors(&text)[..] else { panic!("one finding") };
    assert!(only.contains("`policy` must be a string, or a table such as { preset = \"ainori\" }"), "{only}");
}

#[test]
fn what_is_there_twice_is_told_beside_all_else() {
    let text = GOOD
        .replace("harts = 4\n", "harts = 4\nharts = 2\n")
        .replace("harts = [1]", "harts = [1, 1]")
        .replace("[\"/soc/rtc@101000\"]", "[\"/soc/rtc@101000\", \"/soc/rtc@101000\"]")
        .replace("priority = 10", "priority = 99");
    let found = errors(&text);
    let expected = [
        "6: the key `harts` is here a second time / a table has each key once",
        "25: hart 1 is in this list twice / name each hart once",
        "26: there is no priority 99",
        "27: the device /soc/rtc@101000 is in this list twice / name each device once",
    ];
    assert_told(&found, &expected);
    // Where the text can't be understood, nothing else can be said of it.
    assert_eq!(errors(&text.replace("priority = 99", "priority = ")).len(), 2);
}

/// All keys of the table seem to be there twice, and guests to be missing. Only the brackets are wrong.
#[test]
fn a_guest_in_single_brackets_is_one_error() {
    let wrong = |text: &str, line: usize| {
        let expected =
            format!("{line}: `guest` must be a list of tables / write [[guest]] with two brackets");
        assert_eq!(errors(text), [expected]);
    };
    let second = GOOD.rfind("[[guest]]").unwrap();
    let (first, rest) = GOOD.split_at(second);
    wrong(&format!("{first}{}", rest.replacen("[[guest]]", "[guest]", 1)), 19);
    wrong(&GOOD.replacen("[[guest]]", "[guest]", 1), 9);
    wrong(&GOOD.replace("[[guest]]", "[guest]"), 19);
}

#[test]
fn the_text_must_be_toml_with_known_keys_and_types() {
    broken("harts = 4", "harts = ", "not TOML", "toml.io");
    broken(
        "priority = 1\n",
        "prioritty = 1\n",
        "[[guest]] has no key `prioritty`",
        "did you mean `priority`?",
    );
    broken("name = \"demo\"", "nam = \"demo\"", "the manifest has no key `nam`", "did you mean `name`?");
    broken("background = true", "ram = \"16MiB\"", "no key `ram`", "known: name, "); // two letters of three are no typing error
    broken("input = \"linux\"", "zzz = \"linux\"", "[console] has no key `zzz`", "known: input");
    broken(
        "harts = 4",
        "harts = \"4\"",
        "`harts` must be a whole number, 0 or more, not a string",
        "no help",
    );
    broken("harts = 4", "harts = -4", "not the integer -4", "no help");
    broken(
        "harts = 4",
        "harts = 99999999999999999999",
        "99999999999999999999 is too large",
        "at most 4294967295",
    );
    broken("[0, 1, 2, 3]", "[0, 0x100000000]", "is too large", "at most 4294967295");
    broken("background = true", "background = 1", "must be true or false", "no help");
    broken("[0, 1, 2, 3]", "[0, true]", "an item of the list must be a whole number", "no help");
    broken("kind = \"elf\"", "kind = \"elv\"", "no guest kind \"elv\"", "did you mean `elf`?");
}

#[test]
fn required_keys_are_named() {
    broken_at(3, "machine = \"qemu-virt\"\n", "", "[board] needs the key `machine`", "qemu-virt");
    broken_at(19, "name = \"freertos\"\n", "", "[[guest]] needs the key `name`", "e.g. name =");
    broken_at(19, "image = \"freertos.elf\"\n", "", "needs the key `image`", "e.g. image =");
    assert_eq!(errors("[[guest]]\nname='a'\nkind='elf'\nimage='freertos.elf'\nmemory='4MiB'").len(), 1);
    assert_eq!(
        errors("[board]\nmachine='qemu-virt'\nharts=1\nmemory='1GiB'"),
        ["1: the manifest has no guest / add a [[guest]]"]
    );
    assert_eq!(
        errors("guest = []\n[board]\nmachine='qemu-virt'\nharts=1\nmemory='1GiB'"),
        ["1: the manifest has no guest / add a [[guest]]"]
    );
}

#[test]
fn the_board_must_exist() {
    let board = "machine = \"qemu-virt\"";
    broken_at(
        5,
        board,
        &format!("{board}\ninterrupts = \"aplik\""),
        "no interrupt controller \"aplik\"",
        "did you mean `aplic`?",
    );
    broken("qemu-virt", "qemu-vrit", "no board \"qemu-vrit\"", "did you mean `qemu-virt`?");
    broken_at(5, "harts = 4", "harts = 65", "can't have 65 harts", "from 1 to 64");
    broken("memory = \"2GiB\"", "memory = \"2GB\"", "\"2GB\" is not a size", "GiB");
    broken(
        "memory = \"2GiB\"",
        "memory = \"67108863GiB\"",
        "can't have so much memory",
        "at most 67108862GiB",
    );
    broken(
        "memory = \"2GiB\"",
        "memory = \"9999999999999GiB\"",
        "\"9999999999999GiB\" is too large",
        "64 bits",
    );
    broken("\"5ms\"", "\"99999999999999999s\"", "\"99999999999999999s\" is too large", "64 bits");
    broken_at(5, "harts = 4", "cpu = \"cortex\"\nharts = 4", "\"cortex\" is not a CPU", "rv64,v=true");
}

#[test]
fn extensions_that_cannot_be_kept_apart_are_refused() {
    let cpu = |properties: &str| format!("cpu = \"rv64,{properties}\"\nharts = 4");
    broken_at(
        5,
        "harts = 4",
        &cpu("d=off,zcmt=on"),
        "on harts with zcmt, guests can't be kept apart",
        "smstateen=on",
    );
    broken_at(5, "harts = 4", &cpu("zfinx=true"), "on harts with zfinx", "leave it out");
    for good in ["zcmt=on,zcd=off,d=off,smstateen=on", "zcmt=off", "d=false,v=false", "ssaia=on,smaia=on"] {
        assert!(parse(&GOOD.replacen("harts = 4", &cpu(good), 1)).is_ok(), "{good}");
    }
    let hidden = "cpu = \"rva23s64,ssctr=on\"\nharts = 4";
    assert!(parse(&GOOD.replacen("harts = 4", hidden, 1)).is_ok(), "the model has Smstateen by itself");
}

#[test]
fn extensions_that_are_needed_must_be_there() {
    let cpu = |text: &str| format!("cpu = \"{text}\"\nharts = 4");
    for model in ["rv32", "rv64e", "rv65", "sifive-e51", "rva23u64", "cortex"] {
        broken_at(5, "harts = 4", &cpu(model), &format!("{model:?} is not a CPU"), "sifive-u54");
    }
    broken_at(5, "harts = 4", &cpu("rv64,,v=on"), "a comma with nothing behind it", "one comma");
    broken_at(
        5,
        "harts = 4",
        &cpu("rv64,c"),
        "the property \"c\" of the CPU has no value",
        "c=true or c=false",
    );
    // Part of C is enough for nearly all of the hypervisor: it panicked when it first put floating-point registers away.
    for lacking in ["rv64,c=false", "rv64,c=off,zca=on"] {
        broken_at(5, "harts = 4", &cpu(lacking), "lacks the C extension", "use \"rv64\"");
    }
    // Guests ran in the machine's own memory.
    for lacking in ["rv64,sv39=off", "rv64,mmu=false"] {
        broken_at(5, "harts = 4", &cpu(lacking), "lacks Sv39", "use \"rv64\"");
    }
    broken_at(5, "harts = 4", &cpu("rv64,zicsr=off"), "lacks the Zicsr extension", "use \"rv64\"");
    broken_at(5, "harts = 4", &cpu("rv64,zifencei=off"), "lacks the Zifencei extension", "use \"rv64\"");
    // There is a build for harts with neither H nor Sstc.
    for enough in
        ["rv64,h=off,sstc=false", "sifive-u54", "thead-c906", "xiangshan-nanhu", "shakti-c", "rva22s64"]
    {
        let manifest = parse(&GOOD.replacen("harts = 4", &cpu(enough), 1)).unwrap();
        let needs = manifest.needs();
        assert!(needs.without_h && needs.without_sstc && !needs.more_uarts, "{enough}: {needs:?}");
    }
    // The model has no more than I by itself.
    let enough = ["h", "sstc", "m", "a", "c", "s", "u", "zicsr", "zifencei", "sv39"];
    let rv64i = |but: &str| {
        let all = enough.iter().filter(|property| **property != but);
        all.fold("rv64i".to_owned(), |cpu, property| format!("{cpu},{property}=on"))
    };
    for (property, what) in [("zicsr", "Zicsr"), ("sv39", "Sv39"), ("s", "supervisor mode"), ("m", "the M")] {
        broken_at(5, "harts = 4", &cpu(&rv64i(property)), what, "use \"rv64\"");
    }
    let general = "rv64i,g=on,h=on,sstc=on,c=on,s=on,u=on,sv48=on";
    for good in [
        "rv64,h=true",
        "rv64,h=off,h=on",
        "rv64,h=off",
        "rva22s64,sstc=on",
        "max",
        &rv64i(""),
        &rv64i("sstc"),
        general,
    ] {
        assert!(parse(&GOOD.replacen("harts = 4", &cpu(good), 1)).is_ok(), "{good}");
    }
}

/// Harts without H were taken for some with it, as QEMU would have refused what the manifest says: that was said by QEMU only, of a system that had been checked.
#[test]
fn properties_of_harts_are_read_as_qemu_does() {
    let cpu = |text: &str| format!("cpu = {text:?}\nharts = 4");
    for value in ["0", "1", "False", "OFF", "", " false", "false=true", "disabled"] {
        for text in
            [format!("rv64,h={value}"), format!("rv64,h={value},h=false"), format!("max,sstc={value}")]
        {
            let found = errors(&GOOD.replacen("harts = 4", &cpu(&text), 1));
            let told = found.iter().any(|error| error.contains("is no value for the property"));
            // Spaces are refused as such, too.
            assert!(told && (found.len() == 1 || value.contains(' ')), "{text}: {found:?}");
        }
    }
    broken_at(5, "harts = 4", &cpu("rv64,h=0"), "\"0\" is no value for the property \"h\"", "h=on or h=off");
    for (text, name, right) in [("rv64,H=false", "H", "h"), ("rv64,Zicsr=on", "Zicsr", "zicsr")] {
        broken_at(5, "harts = 4", &cpu(text), &format!("no property {name:?}"), &format!("write {right:?}"));
    }
    for (model, property) in [("sifive-u54", "h"), ("thead-c906", "sstc"), ("shakti-c", "smstateen")] {
        let text = cpu(&format!("{model},{property}=true"));
        broken_at(5, "harts = 4", &text, "a maker's model can't be given any", "choose \"rv64\"");
    }
    broken_at(5, "harts = 4", &cpu("rv64,rva23s64=off"), "can't be switched off", "leave it out");
    // Only QEMU knows what others take.
    for (good, has_h, has_sstc) in [
        ("rv64,vlen=256,vext_spec=v1.0", true, true),
        ("rv64i,rva23s64=on", true, true),
        ("rv64i,rva23s64=y,h=n", false, true),
        ("rv64i,rva22s64=true", false, false),
        ("rv64i,rva22s64=true,sstc=yes", false, true),
        ("sifive-u54,h=false", false, false),
    ] {
        let board = parse(&GOOD.replacen("harts = 4", &cpu(good), 1)).expect(good).board;
        assert_eq!((board.has_h(), board.has_sstc()), (has_h, has_sstc), "{good}");
    }
}

#[test]
fn a_systems_name_is_text_on_one_line() {
    broken("\"demo\"", "\"a\\u001b[31mb\"", "name contains a control character", "on one line");
    broken("\"demo\"", "\"a\\nb\"", "name contains a control character", "leave the key out");
    broken("\"demo\"", "\" \"", "name is empty", "leave the key out");
    broken("\"demo\"", &format!("{:?}", "x".repeat(65)), "name is too long", "at most 64 bytes");
    let unnamed = GOOD.replace("name = \"demo\"\n", "");
    let manifest = Manifest::parse("x", &unnamed, guest_files().path(), "a\u{1b}b").unwrap();
    assert_eq!(manifest.system.name, "a\u{fffd}b");
}

#[test]
fn the_policy_must_exist() {
    broken("\"spumone\"", "\"spumne\"", "no policy \"spumne\"", "did you mean `spumone`?");
    broken("5ms", "5 minutes", "not a duration", "10ms");
    broken("5ms", "99us", "quantum: 99 us is out of range", "from 100 us");
    broken("spumone", "round-robin", "a quantum of its own, 10 ms", "remove");
    broken("5ms", "11s", "out of range", "10 s");
    broken("quantum = \"5ms\"", "grace = \"50us\"", "spumone puts no preemption off", "remove");
    let delayed = "preset = \"delayed\", grace = ";
    let policy = "preset = \"spumone\", quantum = \"5ms\"";
    broken(policy, &format!("{delayed}\"0us\""), "grace: 0 us is out of range", "from 1 us to 100 ms");
    broken(policy, &format!("{delayed}\"101ms\""), "grace: 101000 us is out of range", "to 100 ms");
    let manifest = parse(&GOOD.replace(policy, &format!("{delayed}\"20us\""))).unwrap();
    assert_eq!(manifest.system.policy.grace_us, 20);
    broken(
        "quantum = \"5ms\"",
        "advance = \"101us\"",
        "advance: 101 us is out of range",
        "from 0 us to 100 us",
    );
    let turns = "preset = \"round-robin\", advance = \"5us\"";
    broken(policy, turns, "no vCPU takes the core of another", "remove");
    let manifest = parse(&GOOD.replace(policy, "advance = \"0us\"")).unwrap();
    assert_eq!(manifest.system.policy.advance_us, 0);
}

#[test]
fn names_are_unique_and_plain() {
    broken("name = \"freertos\"", "name = \"Free RTOS\"", "can't be a guest's name", "a-z");
    broken("name = \"freertos\"", "name = \"seventeen-letters\"", "can't be a guest's name", "1 to 16");
    broken("name = \"freertos\"", "name = \"ainori\"", "hypervisor's own", "another name");
    broken("name = \"freertos\"", "name = \"linux\"", "two guests have the name \"linux\"", "of its own");
    broken("input = \"linux\"", "input = \"lynux\"", "no guest \"lynux\"", "did you mean `linux`?");
}

#[test]
fn vcpus_harts_and_priorities_are_in_range() {
    broken("harts = [1]", "harts = []", "at least one hart", "all harts");
    for item in ["-1", "1.0", "[0]", "99999999999"] {
        let text = GOOD.replace("harts = [1]", &format!("harts = [{item}]"));
        let found = errors(&text);
        assert!(found.len() == 1 && !found[0].contains("at least one hart"), "{item}: {found:?}");
    }
    broken("harts = [1]", "harts = [1, 1]", "hart 1 is in this list twice", "name each hart once");
    let found = errors(&GOOD.replace("[0, 1, 2, 3]", "[2, 0, 2, 9, 9, 2]"));
    assert_eq!(found.len(), 5, "each repetition, and each hart that isn't there: {found:#?}");
    let repeated = parse(&GOOD.replace("harts = [1]", "harts = [3, 1, 3]")).unwrap_err();
    let finding = repeated.iter().next().unwrap();
    let places: Vec<_> = finding.places.iter().map(|place| (&*place.text, place.span.start)).collect();
    assert!(places[0].0 == "the second time" && places[1].0 == "the first" && places[0].1 > places[1].1);
    let most = format!("from 1 to {MAX_GUEST_VCPUS}");
    broken("vcpus = 4", "vcpus = 0", "can't have 0 vCPUs", &most);
    broken("vcpus = 4", "vcpus = 65", "can't have 65 vCPUs", &most);
    let guest = |index| {
        format!(
            "[[guest]]\nname = \"g{index}\"\nkind = \"elf\"\nimage = \"freertos.elf\"\nmemory = \"16MiB\"\n\
             vcpus = {MAX_GUEST_VCPUS}\nharts = [2]\npriority = {index}\n"
        )
    };
    let guests = MAX_VCPUS / MAX_GUEST_VCPUS + 1;
    let crowd: String = (2..2 + guests).map(guest).collect();
    let [only] = &errors(&format!("{GOOD}{crowd}"))[..] else { panic!("one finding") };
    assert!(
        only.contains(&format!("the system has {} vCPUs", 5 + guests * MAX_GUEST_VCPUS))
            && only.contains(&format!("at most {MAX_VCPUS}")),
        "{only}"
    );
    broken("priority = 10", "priority = 32", "no priority 32", "from 0 to 31");
    broken("priority = 10", "priority = 256", "no priority 256", "from 0 to 31");
    for (priorities, message) in [
        ("{ 1 = 32 }", "there is no priority 32 / from 0 to 31; the higher goes first"),
        ("{ 2 = 3 }", "the guest never runs on hart 2 / remove it, or add the hart to the guest's `harts`"),
        ("{ one = 3 }", "\"one\" is not the number of a hart / e.g. { 0 = 12 }"),
        ("{ 1 = 3, 01 = 4 }", "\"01\" is not the number of a hart / e.g. { 0 = 12 }"),
        ("{ \"+1\" = 3 }", "\"+1\" is not the number of a hart / e.g. { 0 = 12 }"),
        ("{ 1 = \"3\" }", "the value for hart 1 must be a whole number, 0 or more, not a string / no help"),
        ("3", "`priority_on` must be a table of harts such as { 0 = 12 }, not the integer 3 / no help"),
    ] {
        let text = GOOD.replace("\"spumone\"", "\"listee-rt\"");
        let text = text.replace("priority = 10", &format!("priority = 10\npriority_on = {priorities}"));
        assert_eq!(errors(&text), [format!("26: {message}")]);
    }
    broken("console=ttyS0", &"a".repeat(1024), "have 1024 bytes", "at most 1023");
    broken("console=ttyS0", "a\\nb", "control character", "one line");
    let background = GOOD.replacen("priority = 1\n", "priority = 1\nbackground = true\n", 1);
    assert_eq!(errors(&background).len(), 1);
    assert!(errors(&background)[0].contains("nothing to wait for"));
    let many: String = (0..17)
        .map(|index| {
            let program = "kind='elf'\nimage='freertos.elf'\nmemory='4MiB'";
            format!("[[guest]]\nname='g{index}'\n{program}\npriority={index}\n")
        })
        .collect();
    let found = errors(&format!("[board]\nmachine='qemu-virt'\nharts=4\nmemory='2GiB'\n{many}"));
    assert_eq!(found, ["101: 17 guests are too many / at most 16"]);
}

#[test]
fn restarts_have_a_limit() {
    let restart = |keys: &str| format!("background = true\n{keys}\n");
    let good = GOOD.replace(
        "background = true\n",
        &restart("restart = \"on-failure\"\nrestart_limit = 32\nrestart_interval = \"2ms\""),
    );
    let expected = Restarts { when: Restart::OnFailure, limit: 32, interval_us: 2_000 };
    assert_eq!(parse(&good).unwrap().system.guests[1].restart, expected);
    let always = GOOD.replace("background = true\n", &restart("restart = \"always\""));
    let expected = Restarts { when: Restart::Always, ..Restarts::default() };
    assert_eq!(parse(&always).unwrap().system.guests[1].restart, expected);

    let wrong = |keys: &str, message: &str, help: &str| {
        broken_at(28, "background = true\n", &restart(keys), message, help);
    };
    wrong("restart = \"allways\"", "can't be restarted \"allways\"", "did you mean `always`?");
    wrong("restart = true", "`restart` must be \"never\", \"on-failure\" or \"always\"", "no help");
    wrong("restart_limit = 5", "nothing to limit", "on-failure");
    wrong("restart_interval = \"5s\"", "nothing to limit", "on-failure");
    let after = |keys: &str, message: &str, help: &str| {
        let keys = format!("restart = \"always\"\n{keys}");
        broken_at(29, "background = true\n", &restart(&keys), message, help);
    };
    after("restart_limit = 0", "restart_limit: 0 is out of range", "from 1 to 32");
    after("restart_limit = 33", "restart_limit: 33 is out of range", "from 1 to 32");
    after("restart_interval = \"0s\"", "restart_interval: 0 us is out of range", "from 1 us");
    after("restart_interval = \"86401s\"", "out of range", "to 86400 s");
    after("restart_interval = \"10 minutes\"", "not a duration", "10ms");
}

#[test]
fn memory_must_fit() {
    broken("16MiB", "3MiB", "must be a multiple of 2MiB", "the next is 4MiB");
    broken("16MiB", "0MiB", "must be a multiple of 2MiB", "the next is 2MiB");
    broken("16MiB", "17179869183GiB", "doesn't fit", "less");
    broken("512MiB", "4GiB", "doesn't fit a board with 2GiB", "the board more than 4GiB");
    // The first that doesn't fit is the last but one: what is told is what all of them need.
    let third = "[[guest]]\nname = \"c\"\nkind = \"elf\"\nimage = \"freertos.elf\"\nmemory = \"100MiB\"\nharts = [2]\npriority = 5\n";
    let [all] = &errors(&format!("{}{third}", GOOD.replace("16MiB", "1600MiB")))[..] else {
        panic!("one finding")
    };
    assert!(all.starts_with("23: ") && all.contains("the system needs 2245 MiB"), "{all}");
    broken("16MiB", "1600MiB", "the system needs 2145 MiB", "the board has 2048 MiB");
    let rings = GOOD.replace("memory = \"2GiB\"", "memory = \"562MiB\"");
    assert!(parse(&rings).is_ok(), "4 rings of 4096 records take less than 1 MiB");
    let [rings] = &errors(&rings.replace("4096", "65536"))[..] else { panic!("one finding") };
    assert!(rings.contains("37 MiB for the hypervisor and its trace rings must fit"), "{rings}");
}

#[test]
fn images_must_be_what_they_should_be() {
    broken("freertos.elf", "missing.elf", "it doesn't exist", "relative to the manifest");
    broken("image = \"freertos.elf\"", "image = \".\"", "it is a folder, not a file", "name the file itself");
    broken(
        "image = \"freertos.elf\"",
        "image = \"/dev/zero\"",
        "it is a device, not a file",
        "name the file itself",
    );
    broken("initrd = \"initrd\"", "initrd = \"pipe\"", "the initrd", "name the file itself");
    broken("image = \"freertos.elf\"", "image = \"Image\"", "is not an ELF file", "kind = \"linux\"");
    broken("image = \"Image\"", "image = \"freertos.elf\"", "but an ELF file", "kind = \"elf\"");
    broken("initrd = \"initrd\"", "initrd = \"none\"", "the initrd", "relative");
    broken_at(
        12,
        "512MiB",
        "22MiB",
        "Image with its initrd and device tree doesn't fit the guest's memory of 22MiB",
        "at least 24MiB",
    );
    broken_at(22, "16MiB", "2MiB", "elf with its device tree doesn't fit", "at least 4MiB");
}

#[test]
fn a_program_can_be_placed() {
    let system = |to: &str| parse(&GOOD.replacen("image = \"freertos.elf\"", to, 1)).unwrap().system;
    let with_initrd = system("image = \"freertos.elf\"\ninitrd = \"initrd\"");
    assert_eq!(with_initrd.guests[1].initrd.map(|initrd| initrd.len), Some(1000));
    let entered = system("image = \"freertos.elf\"\nentry = 0x80000004");
    assert_eq!(entered.guests[1].image.entry, 0x8000_0004);

    let raw = |more: &str| {
        GOOD.replace("kind = \"elf\"", &format!("kind = \"raw\"\n{more}")).replace("freertos.elf", "initrd")
    };
    let image = |more: &str| parse(&raw(more)).unwrap().system.guests[1].image.clone();
    assert_eq!((image("").entry, image("").end()), (0x8020_0000, 0x8020_03e8));
    let placed = image("load_address = 0x80400000\nentry = 0x80400010");
    assert_eq!((placed.entry, placed.segments[0].address), (0x8040_0010, 0x8040_0000));

    broken("initrd = \"initrd\"", "entry = 0x80200000", "a Linux Image has no entry to choose", "remove");
    broken("initrd = \"initrd\"", "load_address = 1", "has no load_address to choose", "remove");
    broken(
        "harts = [1]",
        "entry = \"0x80200000\"",
        "`entry` must be an address such as 0x80200000",
        "no help",
    );
    broken("harts = [1]", "entry = -1", "must be an address", "no help");
    broken_at(
        22,
        "harts = [1]",
        "load_address = 0x80200000",
        "linked at a fixed address",
        "remove `load_address`",
    );
    broken_at(
        22,
        "harts = [1]",
        "entry = 0x80200000",
        "starts at 0x80200000, where it has no code",
        "`entry`",
    );
}

#[test]
fn wild_accesses_trap_unless_the_manifest_says_otherwise() {
    let answer = |to: &str| parse(&GOOD.replace("harts = [1]", to)).unwrap().system.guests[1].on_wild_access;
    assert_eq!(answer("harts = [1]"), OnWildAccess::Trap);
    assert_eq!(answer("on_wild_access = \"trap\""), OnWildAccess::Trap);
    assert_eq!(answer("on_wild_access = \"stop\""), OnWildAccess::Stop);
    broken(
        "harts = [1]",
        "on_wild_access = \"stob\"",
        "no answer to wild accesses \"stob\"",
        "did you mean `stop`?",
    );
}

#[test]
fn devices_have_one_owner() {
    broken(
        "/soc/rtc@101000",
        "/soc/rtc@10100",
        "no device \"/soc/rtc@10100\"",
        "did you mean `/soc/rtc@101000`? a guest can own: /flash@20000000, /soc/rtc@101000",
    );
    // Nothing is meant that would be refused in its turn.
    broken(
        "/soc/rtc@101000",
        "/soc/uart@10000000",
        "no device \"/soc/uart@10000000\"",
        "a guest can own: /flash@20000000, /soc/rtc@101000",
    );
    broken("/soc/rtc@101000", "/soc/serial@10000000", "the hypervisor uses it", "/soc/rtc@101000");
    broken("/soc/rtc@101000", "/soc/pci@30000000", "DMA", "/soc/rtc@101000");
    let text = GOOD.replacen("priority = 1\n", "priority = 1\ndevices = [\"/soc/rtc@101000\"]\n", 1);
    let findings = parse(&text).unwrap_err();
    let finding = findings.iter().next().unwrap();
    assert_eq!(finding.message, "the device /soc/rtc@101000 has two owners");
    let marked: Vec<_> =
        finding.places.iter().map(|place| text[..place.span.start].matches('\n').count() + 1).collect();
    assert_eq!(marked, [27, 19], "both places are shown");
}

#[test]
fn a_partition_shares_no_hart() {
    broken_at(24, "spumone", "partition", "two guests can't share hart 1", "harts of its own");
    parse(&GOOD.replace("spumone", "partition").replace("harts = [0, 1, 2, 3]", "harts = [0, 2, 3]"))
        .unwrap();
}

#[test]
fn an_rtos_that_is_not_above_others_is_warned_of() {
    let equal = GOOD.replace("priority = 10", "priority = 1");
    let told = ["25: linux and freertos take turns on hart 1: both have priority 1"];
    assert_eq!(warnings(GOOD), [""; 0]);
    assert_eq!(warnings(&equal), told);
    assert_eq!(parse(&equal).unwrap().warnings.unwrap().to_string(), "demo.toml has a warning");
    let below = GOOD.replace("priority = 10", "priority = 0");
    let waits = ["25: freertos waits for linux on hart 1: priority 0 is below 1"];
    assert_eq!(warnings(&below), waits);
    assert_eq!(warnings(&below.replace("vcpus = 4", "vcpus = 1")), [""; 0], "they never meet");
    let first =
        GOOD.replace("priority = 1\n", "priority = 20\n").replace("kind = \"linux\"", "kind = \"elf\"");
    let first = first.replace("image = \"Image\"", "image = \"freertos.elf\"");
    assert_eq!(warnings(&first), [""; 0], "one RTOS before another: somebody wants it so");
    let neither = equal.replace("priority = 1\n", "");
    assert_eq!(warnings(&neither).len(), 1, "nor where nobody gave a priority");
    // Linux, pinned, never meets it there; where vCPUs move, it may.
    let elsewhere = equal.replace("vcpus = 4", "vcpus = 1");
    assert_eq!(warnings(&elsewhere), [""; 0]);
    assert_eq!(warnings(&elsewhere.replace("preset = \"spumone\"", "preset = \"ainori\"")), told);
    assert_eq!(warnings(&equal.replace("harts = [0, 1, 2, 3]", "harts = [0, 2, 3]")), [""; 0]);
    let round_robin = equal.replace("\"spumone\", quantum = \"5ms\"", "\"round-robin\"");
    assert_eq!(warnings(&round_robin), [""; 0], "who chooses that knows it");
    // Where each hart has an order of its own, that counts; and who is first somewhere has its deadlines there.
    let by_hart = |policy: &str, linux: &str| {
        let text = GOOD.replace("\"spumone\"", &format!("{policy:?}"));
        text.replace("priority = 1\n", &format!("priority = 1\npriority_on = {linux}\n"))
    };
    let waits = ["26: freertos waits for linux on hart 1: priority 10 is below 12"];
    assert_eq!(warnings(&by_hart("listee-rt", "{ 1 = 12 }")), waits);
    assert_eq!(warnings(&by_hart("listee-rt", "{ 0 = 12 }")), [""; 0]);
    let both = by_hart("ainori", "{ 1 = 12 }").replace("harts = [1]", "harts = [1, 2]");
    assert_eq!(warnings(&both), [""; 0]);
    let unheard = "19: under the policy \"spumone\" a guest has the same priority on all harts: `priority_on` doesn't count";
    assert_eq!(warnings(&by_hart("spumone", "{ 1 = 12 }")), [unheard]);
    let second =
        "[[guest]]\nname = \"linux-2\"\nkind = \"linux\"\nimage = \"Image\"\nmemory = \"512MiB\"\n[trace]";
    assert_eq!(warnings(&GOOD.replace("[trace]", second)), [""; 0], "two Linuxes have no deadlines");
}

/// Wherever a manifest names a hart that isn't there, that is what is wrong, and all that is.
#[test]
fn a_hart_that_the_board_has_not_is_told_as_such() {
    let frame = "policy = { preset = \"time-window\", major_frame = \"10ms\" }";
    let window = |guest: &str, hart: u32| {
        format!("[[window]]\nguest = {guest:?}\nhart = {hart}\nstart = \"0ms\"\nlength = \"1ms\"\n")
    };
    let task = "priority = 10\n[[guest.task]]\nname = \"a\"\nperiod = \"1ms\"\nexecution = \"1us\"\npriority = 1\nhart = HART";
    for board in [2, 3, 4] {
        let text = GOOD
            .replace("harts = 4", &format!("harts = {board}"))
            .replace("vcpus = 4\nharts = [0, 1, 2, 3]", "vcpus = 1\nharts = [0]");
        let windows = text.replace("policy = { preset = \"spumone\", quantum = \"5ms\" }", frame)
            + &window("linux", 0)
            + &window("freertos", 1);
        for hart in [board, 9, 63, 64, 4_000_000_000] {
            let there = format!("{hart}");
            let everywhere = [
                text.replace("harts = [1]", &format!("harts = [1, {hart}]")),
                text.replace("\"spumone\"", "\"ainori\"")
                    .replace("priority = 10", &format!("priority = 10\npriority_on = {{ {hart} = 12 }}")),
                text.replace("priority = 10\ndevices", &format!("{}\ndevices", task.replace("HART", &there)))
                    .replace("devices = [\"/soc/rtc@101000\"]\nbackground = true\n", ""),
                windows.clone() + &window("freertos", hart),
                windows.clone() + &window("linux", hart),
            ];
            let told =
                format!("hart {hart} is not on the board / the board has {board} harts, 0 to {}", board - 1);
            for text in everywhere {
                let found = errors(&text);
                assert!(found.len() == 1 && found[0].ends_with(&told), "{found:#?}\n{text}");
            }
        }
    }
    // Not while nobody knows how many there are.
    let unknown = GOOD.replace("harts = 4", "harts = 99").replace("[1]", "[70]");
    assert_eq!(errors(&unknown).len(), 1);
    broken("harts = [1]", "harts = [4]", "hart 4 is not on the board", "0 to 3");
    let one = GOOD.replace("harts = 4", "harts = 1").replace("[0, 1, 2, 3]", "[0]");
    assert_eq!(errors(&one), ["24: hart 1 is not on the board / the board has one hart, 0"]);
}

/// Two vCPUs that stay at home are on the first two harts of the list.
#[test]
fn a_priority_on_a_hart_where_a_guest_never_is_is_told() {
    let on = |policy: &str, vcpus: u32| {
        let text = with_linux("priority = 1\npriority_on = { 1 = 2, 3 = 2 }").replace("\"spumone\"", policy);
        warnings(&text.replace("vcpus = 4", &format!("vcpus = {vcpus}")))
    };
    assert_eq!(on("\"listee-rt\"", 4), [""; 0]);
    let told = "19: under the policy \"listee-rt\" no vCPU of linux comes to hart 3: its priority there doesn't count";
    assert_eq!(on("\"listee-rt\"", 2), [told]);
    assert_eq!(on("\"ainori\"", 2), [""; 0], "there they may");
}

/// What a manifest without errors is warned of.
fn warnings(text: &str) -> Vec<String> {
    let warnings = parse(text).expect("a warning is no error").warnings;
    let shown = warnings.iter().flat_map(|all| all.iter().map(|one| (all.position(one).0, &*one.message)));
    shown.map(|(line, message)| format!("{line}: {message}")).collect()
}

/// The good manifest, with these lines for its Linux.
fn with_linux(lines: &str) -> String {
    GOOD.replacen("priority = 1\n", &format!("{lines}\n"), 1)
}

#[test]
fn a_weight_is_a_number_of_quanta() {
    let weight = |line: &str| {
        let weights = parse(&with_linux(&format!("priority = 1\n{line}"))).unwrap().system.guests;
        weights.iter().map(|guest| guest.weight.get()).collect::<Vec<_>>()
    };
    assert_eq!(weight(""), [1, 1]);
    assert_eq!(weight("weight = 100"), [100, 1]);
    let wrong = |line: &str, preset: &str| errors(&with_linux(line).replace("\"spumone\"", preset));
    let range = |weight: &str| {
        format!(
            "18: a guest can't have the weight {weight} / from 1 to 100: with 2 its turns are twice as long as with 1"
        )
    };
    for weight in ["0", "101", "256"] {
        assert_eq!(wrong(&format!("weight = {weight}"), "\"spumone\""), [range(weight)]);
    }
    assert_told(
        &wrong("weight = 1", "\"co-schedule\""),
        &[
            "18: under the policy \"co-schedule\" all turns are of one length: a guest can't have a weight / remove the key",
        ],
    );
    let long = GOOD.replace("\"5ms\"", "\"2s\"");
    let long =
        long.replace("priority = 1\n", "weight = 6\n").replace("priority = 10", "priority = 1\nweight = 5");
    assert_told(
        &errors(&long),
        &["18: with this weight a turn of linux would last 12 s / at most 10 s", "25: linux and freertos"],
    );
}

#[test]
fn who_has_a_weight_but_no_equal_is_told_so() {
    let told_of = |text: &str| {
        warnings(text)
            .iter()
            .filter_map(|one| one.split_once(": "))
            .filter(|(_, told)| told.contains("weight"))
            .map(|(_, told)| told.to_owned())
            .collect::<Vec<_>>()
    };
    let nothing = [""; 0];
    let told = ["the weight of linux decides nothing: it takes turns with no other guest"];
    let weighted = with_linux("priority = 1\nweight = 2");
    assert_eq!(told_of(&weighted), told, "the other one is more urgent");
    let equal = weighted.replace("priority = 10", "priority = 1");
    assert_eq!(told_of(&equal), nothing);
    assert_eq!(told_of(&equal.replace("harts = [0, 1, 2, 3]", "harts = [0, 2, 3]")), told, "they never meet");
    let elsewhere = equal.replace("vcpus = 4", "vcpus = 1");
    assert_eq!(told_of(&elsewhere), told);
    assert_eq!(
        told_of(&elsewhere.replace("preset = \"spumone\"", "preset = \"ainori\"")),
        nothing,
        "it moves there"
    );
    let turns = weighted.replace("\"spumone\", quantum = \"5ms\"", "\"round-robin\"");
    assert_eq!(told_of(&turns), nothing, "all are equals");
    let there = equal
        .replace("\"spumone\"", "\"listee-rt\"")
        .replace("weight = 2", "weight = 2\npriority_on = { 1 = 3 }");
    assert_eq!(told_of(&there), told, "on their hart it is the more urgent");
    // What would be right is right under this policy.
    let help = |text: &str| {
        let all = parse(text).unwrap().warnings.unwrap();
        let one = all.iter().find(|one| one.message.contains("weight")).unwrap();
        one.help.clone().unwrap()
    };
    assert!(help(&weighted).contains("give guests that share a hart the same priority"));
    let apart = weighted.replace("harts = [0, 1, 2, 3]", "harts = [0, 2, 3]");
    let partition = help(&apart.replace("preset = \"spumone\"", "preset = \"partition\""));
    assert_eq!(partition, "remove it: under the policy \"partition\" no guests share a hart");
    let frame = "\"time-window\", major_frame = \"10ms\"";
    let windows: String = (0..4)
        .flat_map(|hart| [("linux", hart, 0), ("freertos", hart, 5)])
        .filter(|(guest, hart, _)| *guest == "linux" || *hart == 1)
        .map(|(guest, hart, start)| {
            format!("[[window]]\nguest = {guest:?}\nhart = {hart}\nstart = \"{start}ms\"\nlength = \"5ms\"\n")
        })
        .collect();
    let windows = help(&(equal.replace("\"spumone\", quantum = \"5ms\"", frame) + &windows));
    assert!(windows.contains("\"time-window\" each guest has windows of its own"), "{windows}");
    // A guest with an error may be its equal.
    let found = errors(&weighted.replace("memory = \"16MiB\"", "memory = \"15MiB\""));
    assert!(found.len() == 1 && found[0].contains("multiple of"), "{found:?}");
}

#[test]
fn vcpus_that_are_kept_apart_have_a_hart_each() {
    let balance = GOOD.replace("preset = \"spumone\"", "preset = \"balance\"");
    assert_eq!(parse(&balance).map(|_| ()).map_err(|_| ()), Ok(()));
    let found = errors(&balance.replace("vcpus = 4", "vcpus = 5"));
    assert!(
        found[0].contains("a guest can't have more vCPUs than harts: two of linux would wait on one"),
        "{found:?}"
    );
}

#[test]
fn warnings_stand_beside_errors() {
    let found = errors(&GOOD.replace("priority = 10", "priority = 1").replace("[\"default\"]", "[\"x\"]"));
    assert!(found[0].contains("take turns") && found[1].contains("no kind of trace record"), "{found:?}");
}

#[test]
fn a_trace_can_be_asked_for_later() {
    let mut manifest = parse(GOOD).unwrap();
    manifest.set_trace(Trace { mask: 3, records: 1024 }).unwrap();
    assert_eq!(manifest.system.trace, Trace { mask: 3, records: 1024 });
    let error = manifest.set_trace(Trace { mask: 3, records: 1000 }).unwrap_err();
    assert!(error.contains("a power of two up to 1048576"), "{error}");
    let mut manifest = parse(&GOOD.replace("memory = \"2GiB\"", "memory = \"562MiB\"")).unwrap();
    let error = manifest.set_trace(Trace { mask: 3, records: 1 << 20 }).unwrap_err();
    assert!(error.contains("needs 625 MiB, but the board has 562 MiB"), "{error}");
}

#[test]
fn a_run_can_be_described() {
    let settings = |run: &str| parse(&format!("{GOOD}[run]\n{run}\n")).unwrap().run;
    assert_eq!(parse(GOOD).unwrap().run, RunSettings { clock: Clock::Host, time_limit: None });
    assert_eq!(settings("clock = \"lockstep\"").clock, Clock::Lockstep);
    assert_eq!(settings("time_limit = \"90s\"").time_limit, Some(Duration::from_secs(90)));

    let wrong = |run: &str| errors(&format!("{GOOD}[run]\n{run}\n"));
    assert_eq!(
        wrong("clock = \"icount\""),
        ["32: the clock \"icount\" is for one hart, but the board has 4 / use \"lockstep\" or \"host\""]
    );
    assert!(wrong("clock = \"lokstep\"")[0].contains("did you mean `lockstep`?"));
    let [zero] = &wrong("time_limit = \"0s\"")[..] else { panic!("one finding") };
    assert!(zero.contains("can't have a time limit of zero / from 1 us"), "{zero}");
    assert!(wrong("timelimit = \"9s\"")[0].contains("did you mean `time_limit`?"));
}

#[test]
fn traces_are_possible() {
    broken("[\"default\"]", "[\"defualt\"]", "no kind of trace record", "did you mean `default`?");
    broken("4096", "4095", "4095 trace records", "a power of two");
}

#[test]
fn a_missing_manifest_is_an_error_of_the_file() {
    let findings = Manifest::load(Path::new("/nowhere/x.toml")).unwrap_err();
    let finding = findings.iter().next().unwrap();
    assert!(finding.message.contains("/nowhere/x.toml can't be read"));
    assert_eq!(findings.position(finding), (1, 1));
    let directory = guest_files();
    let written = directory.path().join("x.toml");
    std::fs::write(&written, "").unwrap();
    let findings = Manifest::load(&directory.path().join("x")).unwrap_err();
    let help = findings.iter().next().unwrap().help.clone().unwrap();
    assert_eq!(help, format!("did you mean {}?", written.display()));
}

#[test]
fn columns_count_characters() {
    let found = parse(&GOOD.replace("demo\"", "démo\" # é\n\"é\" = 1")).unwrap_err();
    assert_eq!(found.position(found.iter().next().unwrap()), (2, 1));
    let found = parse(&GOOD.replace("harts = [1]", "harts = [1, 9]")).unwrap_err();
    assert_eq!(found.position(found.iter().next().unwrap()), (24, 13));
}

#[test]
fn a_manifest_that_is_no_text_is_told() {
    let directory = guest_files();
    let told = |path: &Path| {
        let findings = Manifest::load(path).unwrap_err();
        findings.iter().next().unwrap().message.clone()
    };
    let path = directory.path().join("x.toml");
    std::fs::write(&path, b"name = \"x\"\n# \xff\n").unwrap();
    assert!(told(&path).contains("can't be read: line 2 is not UTF-8"), "{}", told(&path));
    assert!(told(&directory.path().join("pipe")).contains("it is a pipe, not a file"));
    assert!(told(directory.path()).contains("it is a folder, not a file"));
    std::fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
    assert!(told(&path).contains("more than the 1048576 that it may have"), "{}", told(&path));
}

/// Values at the edges, of right and wrong types, and pieces of syntax.
const TOKENS: &[&str] = &[
    "0",
    "1",
    "-1",
    "16",
    "17",
    "63",
    "64",
    "65",
    "255",
    "256",
    "4294967295",
    "4294967296",
    "18446744073709551615",
    "0x10",
    "0b1",
    "1e3",
    "nan",
    "inf",
    "true",
    "1979-05-27",
    "\"\"",
    "\"0MiB\"",
    "\"1B\"",
    "\"2MiB\"",
    "\"17179869184GiB\"",
    "\"16777216GiB\"",
    "\"18446744073709551615us\"",
    "\"0us\"",
    "\"100us\"",
    "\"\u{202e}\u{1f600}\"",
    "\"\\u0000\"",
    "'a'",
    "[]",
    "[[]]",
    "{}",
    "{ a = 1 }",
    "[",
    "]",
    "[[",
    "]]",
    "{",
    "}",
    "=",
    ".",
    ",",
    "#",
    "\n",
    "\"",
    "[[guest]]\n",
    "[board]\n",
    "guest",
    "name",
    "linux",
    "\"linux\"",
    "\"partition\"",
    "\"round-robin\"",
    "\"delayed\"",
    "\"rv64,\"",
    "\"/\"",
    "\"..\"",
    "\"initrd\"",
    "\"pipe\"",
    "\"all\"",
];

/// Words, strings and single characters of a text.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let word = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
        let len = match first {
            '"' => rest[1..].find('"').map_or(rest.len(), |end| end + 2),
            _ if word(first) => rest.find(|c| !word(c)).unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        let (token, later) = rest.split_at(len);
        tokens.push(token.to_owned());
        rest = later;
    }
    tokens
}

/// Has the hypervisor of this build room for its vCPUs? How many harts there are is the board's word, which isn't in the blob.
fn has_room(manifest: &Manifest) -> bool {
    Room::BUILT.holds(Room { harts: 0, ..manifest.needs().room })
}

/// A text gives findings that lie in it and can be shown, or a manifest that the kernel accepts if this build has room for it. Files are in `folder`.
fn is_sound(text: &str, folder: &Path) -> Result<(), TestCaseError> {
    match Manifest::parse("x", text, folder, "x") {
        Err(findings) => {
            prop_assert!(findings.iter().count() > 0);
            prop_assert!(places_are_in(text, &findings));
            let lines = text.matches('\n').count() + 1;
            for finding in findings.iter() {
                let (line, _) = findings.position(finding);
                prop_assert!((1..=lines).contains(&line) && !finding.message.is_empty());
            }
            let shown = format!("{:?}", miette::Report::new(*findings));
            prop_assert!(!shown.is_empty());
        }
        Ok(manifest) => {
            let empty = |guest: &crate::config::Guest| crate::blob::GuestFiles {
                segments: guest.image.segments.iter().map(|_| &[][..]).collect(),
                initrd: None,
            };
            let files: Vec<_> = manifest.system.guests.iter().map(empty).collect();
            let has_room = has_room(&manifest);
            let found = crate::blob::decode(&crate::blob::encode(
                manifest.system.clone(),
                &manifest.spaces(),
                &files,
            ));
            prop_assert_eq!(found.is_ok(), has_room, "{:?} of {}", found, text);
        }
    }
    Ok(())
}

/// Every finding's places lie in the text, on character boundaries.
fn places_are_in(text: &str, findings: &Findings) -> bool {
    findings.iter().flat_map(|finding| &finding.places).all(|place| text.get(place.span.clone()).is_some())
}

proptest! {
    #[test]
    fn any_text_gives_findings_that_can_be_shown(text in "\\PC{0,200}") {
        if let Err(findings) = Manifest::parse("x", &text, Path::new("/nowhere"), "x") {
            prop_assert!(places_are_in(&text, &findings));
            for finding in findings.iter() {
                findings.position(finding);
            }
        }
    }

    #[test]
    fn any_change_to_a_good_manifest_is_safe(at in any::<prop::sample::Index>(), len in 0usize..20, new in "[a-z0-9\\[\\]=\"\\. \n]{0,8}") {
        let start = at.index(GOOD.len());
        let mut text = GOOD.to_owned();
        text.replace_range(start..(start + len).min(GOOD.len()), &new);
        if let Err(findings) = Manifest::parse("x", &text, Path::new("/nowhere"), "x") {
            prop_assert!(findings.iter().count() > 0);
            prop_assert!(places_are_in(&text, &findings));
        }
    }

    /// Tokens of a manifest taken out, doubled, exchanged, or replaced by others: nearer to what is right than letters.
    #[test]
    fn any_change_of_tokens_is_safe(texts in proptest::collection::vec(proptest::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0u8..8, prop::sample::select(TOKENS)), 1..4), 8)) {
        let folder = guest_files();
        for changes in texts {
            let mut tokens = tokens(GOOD);
            for (at, other, kind, new) in changes {
                let (at, other) = (at.index(tokens.len()), other.index(tokens.len()));
                match kind {
                    0 => drop(tokens.remove(at)),
                    1 => tokens.insert(at, tokens[other].clone()),
                    2 => tokens.swap(at, other),
                    _ => {
                        // A value: a string or a number.
                        let values: Vec<_> = (0..tokens.len())
                            .filter(|at| tokens[*at].starts_with(|c: char| c == '"' || c.is_ascii_digit()))
                            .collect();
                        if let Some(at) = values.get(at % values.len().max(1)) {
                            tokens[*at] = new.to_owned();
                        }
                    }
                }
            }
            is_sound(&tokens.concat(), folder.path())?;
        }
    }

    /// Bytes, and whatever UTF-8 makes of them.
    #[test]
    fn any_change_of_bytes_is_safe(texts in proptest::collection::vec(proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8), 8)) {
        let folder = guest_files();
        for changes in texts {
            let mut bytes = GOOD.as_bytes().to_vec();
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            is_sound(&String::from_utf8_lossy(&bytes), folder.path())?;
        }
    }

    #[test]
    fn valid_numbers_make_a_valid_system(harts in 1..=MAX_HARTS as u32, vcpus in 1..=MAX_GUEST_VCPUS as u32, priority in 0..PRIORITIES, quantum in 100u32..10_000_000) {
        let text = GOOD
            .replace("harts = 4", &format!("harts = {harts}"))
            .replace("harts = [0, 1, 2, 3]\n", "")
            .replace("harts = [1]\n", "")
            .replace("vcpus = 4", &format!("vcpus = {vcpus}"))
            .replace("priority = 10", &format!("priority = {priority}"))
            .replace("5ms", &format!("{quantum}us"));
        let manifest = parse(&text).unwrap();
        let has_room = has_room(&manifest);
        let system = manifest.system.clone();
        let files: Vec<_> = system
            .guests
            .iter()
            .map(|guest| crate::blob::GuestFiles {
                segments: guest.image.segments.iter().map(|_| &[][..]).collect(),
                initrd: None,
            })
            .collect();
        let blob = crate::blob::encode(system.clone(), &manifest.spaces(), &files);
        // What the manifest's checks let through, the kernel's checks accept, if there is room for it.
        let found = crate::blob::decode(&blob);
        prop_assert_eq!(found.map(|found| found.policy).ok(), has_room.then_some(system.policy));
    }
}
