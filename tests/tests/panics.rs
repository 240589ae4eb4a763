//! Where the hypervisor is allowed what can panic: the list is here, so that one more is seen. (That nothing else can is clippy's to say, and of what
//! the compiler has made of it `emulator/kernel_image.rs`'s.)
use std::{fs, path::Path};

use ainori_tests::checkout;

/// Files with an exception from the lints that forbid it, how many, and why. See docs/trap.md, "What can still panic".
const KNOWN: [(&str, usize, &str); 3] = [
    ("kernel/src/arch/h/trap.rs", 1, "a trap of the hypervisor itself"),
    ("kernel/src/cpu/mod.rs", 1, "Cpu::resident"),
    ("crates/manifest/src/blob.rs", 2, "only at boot"),
];

#[test]
fn what_is_allowed_to_panic_is_known() {
    let mut found = Vec::new();
    look_through(&checkout("kernel/src"), &mut found);
    for entry in fs::read_dir(checkout("crates")).unwrap() {
        look_through(&entry.unwrap().path().join("src"), &mut found);
    }
    found.sort();
    let mut known: Vec<_> = KNOWN.iter().map(|(file, count, _)| (checkout(file), *count)).collect();
    known.sort();
    assert_eq!(found, known);
}

fn look_through(folder: &Path, found: &mut Vec<(std::path::PathBuf, usize)>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        let name = entry.file_name().into_string().unwrap();
        if path.is_dir() {
            look_through(&path, found);
        } else if name.ends_with(".rs") && !name.contains("test") && name != "model.rs" {
            let count = exceptions(&fs::read_to_string(&path).unwrap());
            if count > 0 {
                found.push((path, count));
            }
        }
    }
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
