//! `translation`, `shadow_tables` and `shadow_reclaim`.
use super::*;
use crate::blob::{GuestFiles, encode, translations};
use crate::config::{Shadow, ShadowReclaim, ShadowSpaces, Translation};

/// The second guest with these keys.
fn with(keys: &str) -> String {
    GOOD.replace("background = true\n", &format!("background = true\n{keys}\n"))
}

fn translation(keys: &str) -> Translation {
    parse(&with(keys)).unwrap().translations[1]
}

#[test]
fn guests_have_two_stages_or_a_shadow() {
    assert_eq!(translation(""), Translation::TwoStage);
    assert_eq!(translation("translation = \"two-stage\""), Translation::TwoStage);
    let shadow = |spaces, tables, reclaim| Translation::Shadow(Shadow { spaces, tables, reclaim });
    assert_eq!(
        translation("translation = \"shadow-multi\""),
        shadow(ShadowSpaces::Multi, 256, ShadowReclaim::Fifo)
    );
    let all = "translation = \"shadow-single\"\nshadow_tables = 36\nshadow_reclaim = \"page-directory-lru\"";
    assert_eq!(translation(all), shadow(ShadowSpaces::Single, 36, ShadowReclaim::PageDirectoryLru));
    assert!(!parse(GOOD).unwrap().needs().shadow);
    assert!(parse(&with(all)).unwrap().needs().shadow);
}

#[test]
fn what_is_wrong_with_shadow_tables_is_told() {
    for (keys, message) in [
        ("translation = \"shadow\"", "there is no translation \"shadow\""),
        ("translation = \"shadow-multi\"\nshadow_tables = 35", "a vCPU can't have 35 shadow tables"),
        ("translation = \"shadow-multi\"\nshadow_tables = 8193", "a vCPU can't have 8193 shadow tables"),
        (
            "translation = \"shadow-multi\"\nshadow_reclaim = \"lru\"",
            "there is no reclamation of shadow tables \"lru\"",
        ),
        ("shadow_tables = 100", "this guest has no shadow tables"),
        ("translation = \"two-stage\"\nshadow_reclaim = \"fifo\"", "this guest has no shadow tables"),
    ] {
        let found = errors(&with(keys));
        assert!(found.len() == 1 && found[0].contains(message), "{keys}: {found:?}");
    }
}

/// They are the board's memory: four vCPUs with 8192 tables have more than 128 MiB of it.
#[test]
fn shadow_tables_take_memory() {
    let tables = "vcpus = 4\ntranslation = \"shadow-multi\"\nshadow_tables = 8192";
    let good = GOOD.replace("vcpus = 4\n", &format!("{tables}\n"));
    assert!(parse(&good).is_ok());
    let small = good.replace("memory = \"2GiB\"", "memory = \"640MiB\"");
    assert!(small != good, "the board's memory is another one");
    let found = errors(&small);
    assert!(found.iter().any(|error| error.contains("there is no room for this guest")), "{found:?}");
    assert!(parse(&small.replace("8192", "36")).is_ok());
}

#[test]
fn the_kernel_is_told_of_them() {
    for keys in ["", "translation = \"shadow-multi\"\nshadow_tables = 40"] {
        let manifest = parse(&with(keys)).unwrap();
        let bytes: Vec<Vec<Vec<u8>>> = manifest
            .system
            .guests
            .iter()
            .map(|guest| {
                guest.image.segments.iter().map(|segment| vec![0; segment.data.len as usize]).collect()
            })
            .collect();
        let files: Vec<_> = bytes
            .iter()
            .map(|segments| GuestFiles {
                segments: segments.iter().map(|bytes| &**bytes).collect(),
                initrd: None,
            })
            .collect();
        let blob = encode(manifest.system, &manifest.translations, &files);
        assert_eq!(translations(&blob), Ok(manifest.translations));
    }
}
