//! Where the hypervisor is allowed what can panic: the list is here, so that one more is seen. (That nothing else can is clippy's to say, and of what
//! the compiler has made of it `emulator/kernel_image.rs`'s.)
use std::fs;

use ainori_tests::{checkout, files};

/// Files with an exception from the lints that forbid it, how many, and why. See docs/trap.md, "What can still panic".
const KNOWN: [(&str, usize, &str); 4] = [
    ("kernel/src/arch/h/trap.rs", 1, "a trap of the hypervisor itself"),
    ("kernel/src/arch/u/trap.rs", 1, "a trap of the hypervisor itself"),
    ("kernel/src/cpu/mod.rs", 1, "Cpu::resident"),
    ("crates/manifest/src/blob.rs", 2, "only at boot"),
];

#[test]
fn what_is_allowed_to_panic_is_known() {
    let mut found = files("kernel/src", ".rs");
    found.extend(files("crates", ".rs").into_iter().filter(|path| path.iter().any(|part| part == "src")));
    let found = found.into_iter().filter(|path| {
        let name = path.file_name().map_or("".into(), |name| name.to_string_lossy());
        !name.contains("test") && name != "model.rs"
    });
    let found = found.map(|path| path.display().to_string());
    let counted = found.map(|path| (exceptions(&fs::read_to_string(checkout(&path)).unwrap()), path));
    let mut found: Vec<_> = counted.filter(|(count, _)| *count > 0).collect();
    found.sort();
    let mut known: Vec<_> = KNOWN.iter().map(|(file, count, _)| (*count, String::from(*file))).collect();
    known.sort();
    assert_eq!(found, known);
}

/// Attributes that allow it. Those of code for tests are left out.
fn exceptions(text: &str) -> usize {
    let lints = ["expect_used", "unwrap_used", "panic", "unreachable", "todo", "unimplemented"];
    text.lines()
        .filter(|line| line.trim_start().starts_with("#[") || line.trim_start().starts_with("#!["))
        .filter(|line| !line.contains("cfg_attr(test"))
        .filter(|line| lints.iter().any(|lint| line.contains(&format!("clippy::{lint}"))))
        .count()
}

#[test]
fn an_exception_is_seen() {
    assert_eq!(exceptions("#[expect(clippy::unwrap_used, reason = \"x\")]\nfn f() {}\n"), 1);
    assert_eq!(exceptions("// clippy::unwrap_used\n"), 0);
}
