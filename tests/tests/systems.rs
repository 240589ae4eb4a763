//! The project's own systems (systems/): each is sound, and systems/README.md names it.
use std::fs;
use std::path::{Path, PathBuf};

use ainori_manifest::Manifest;
use ainori_tests::checkout;

/// Those with guests that `tools/test guests` doesn't build, and those that `make guests` leaves out: they may miss files here.
const EXTRA: [&str; 3] = ["debian.toml", "u-boot.toml", "userland.toml"];

fn systems(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder is there");
    let paths = entries.map(|entry| entry.expect("it can be read").path());
    let paths: Vec<_> = paths.filter(|path| path.extension().is_some_and(|end| end == "toml")).collect();
    assert!(paths.len() > 10, "{paths:?}");
    paths
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

#[test]
fn each_is_sound() {
    for path in systems(&checkout("systems")) {
        let Err(findings) = Manifest::load(&path) else { continue };
        let name = name(&path);
        assert!(EXTRA.contains(&name), "{name}: {findings:?}");
        for finding in findings.iter() {
            assert!(finding.message.contains("doesn't exist"), "{name}: {}", finding.message);
        }
    }
}

/// In a checkout in which nothing was built: what is missing is told with the command that makes it, and that is `make guests` but for [`EXTRA`]. So
/// that what somebody built here by hand can't hide that a system lacks a guest on other machines.
#[test]
fn each_tells_what_it_lacks() {
    let folder = tempfile::tempdir().expect("there is room for one");
    let systems_there = folder.path().join("systems");
    for (from, to) in [("systems", &systems_there), ("guests/probes", &folder.path().join("guests/probes"))] {
        fs::create_dir_all(to).expect("it can be made");
        for entry in fs::read_dir(checkout(from)).expect("it is there") {
            let path = entry.expect("it can be read").path();
            if path.is_file() {
                fs::copy(&path, to.join(name(&path))).expect("it can be copied");
            }
        }
    }
    for path in systems(&systems_there) {
        let name = name(&path);
        let findings = Manifest::load(&path).expect_err("its guests aren't built");
        let mut extra = false;
        for finding in findings.iter() {
            let help = finding.help.as_deref().unwrap_or_default();
            assert!(finding.message.contains("doesn't exist"), "{name}: {}", finding.message);
            assert!(help.starts_with("it is built by `"), "{name}: {}: {help}", finding.message);
            extra |= !help.contains("`make guests`");
        }
        assert_eq!(extra, EXTRA.contains(&name), "{name}");
    }
}

/// Who looks for one finds it by its description.
#[test]
fn each_is_described() {
    let list = fs::read_to_string(checkout("systems/README.md")).expect("it is there");
    for path in systems(&checkout("systems")) {
        let name = name(&path);
        assert!(list.contains(&format!("[{name}]({name})")), "systems/README.md doesn't name {name}");
    }
}
