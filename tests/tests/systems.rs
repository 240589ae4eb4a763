//! The project's own systems (systems/): each is sound, and systems/README.md names it.
use std::fs;
use std::path::PathBuf;

use ainori_manifest::Manifest;
use ainori_tests::checkout;

/// What `guests/linux/build` and `guests/u-boot/build` make only for who asks for it.
const EXTRA: [&str; 2] = ["u-boot.toml", "userland.toml"];

fn systems() -> Vec<PathBuf> {
    let entries = fs::read_dir(checkout("systems")).expect("the folder is there");
    let paths = entries.map(|entry| entry.expect("it can be read").path());
    paths.filter(|path| path.extension().is_some_and(|end| end == "toml")).collect()
}

#[test]
fn each_is_sound() {
    for path in systems() {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        match Manifest::load(&path) {
            Ok(_) => {}
            Err(findings) => {
                let text = format!("{findings:?}");
                assert!(EXTRA.contains(&name) && text.contains("doesn't exist"), "{name}: {text}");
            }
        }
    }
}

/// Who looks for one finds it by its description.
#[test]
fn each_is_described() {
    let list = fs::read_to_string(checkout("systems/README.md")).expect("it is there");
    let systems = systems();
    assert!(systems.len() > 10, "{}", systems.len());
    for path in systems {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        assert!(list.contains(&format!("[{name}]({name})")), "systems/README.md doesn't name {name}");
    }
}
