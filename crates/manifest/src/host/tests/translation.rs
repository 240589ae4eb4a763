//! `translation`, `shadow_tables`, `shadow_reclaim` and `breakpoints`.
use super::*;
use crate::blob::spaces;
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
    let shadow =
        |spaces, tables, reclaim| Translation::Shadow(Shadow { spaces, tables, reclaim, breakpoints: false });
    assert_eq!(
        translation("translation = \"shadow-multi\""),
        shadow(ShadowSpaces::Multi, 256, ShadowReclaim::Fifo)
    );
    let all = "translation = \"shadow-single\"\nshadow_tables = 36\nshadow_reclaim = \"page-directory-lru\"";
    assert_eq!(translation(all), shadow(ShadowSpaces::Single, 36, ShadowReclaim::PageDirectoryLru));
    assert!(!parse(GOOD).unwrap().needs().memory_modes);
    assert!(parse(&with(all)).unwrap().needs().memory_modes);
}

/// As [`with`], on harts without the H extension.
fn without_h(cpu: &str, keys: &str) -> String {
    with(keys).replacen("harts = 4", &format!("cpu = {cpu:?}\nharts = 4"), 1)
}

#[test]
fn on_harts_without_h_each_guest_has_a_shadow() {
    for cpu in ["rv64,h=false", "rv64,v=true,h=off", "rv64,h=on,h=no", "rva22s64,sstc=on", "max,h=n"] {
        let manifest = parse(&without_h(cpu, "")).unwrap();
        assert!(!manifest.board.has_h(), "{cpu}");
        assert!(manifest.needs().without_h && manifest.needs().memory_modes, "{cpu}");
        let usual = Shadow {
            spaces: ShadowSpaces::Multi,
            tables: 256,
            reclaim: ShadowReclaim::Fifo,
            breakpoints: true,
        };
        assert_eq!(manifest.translations, [Translation::Shadow(usual); 2], "{cpu}");
    }
    for cpu in ["rv64", "rv64,h=true", "rva22s64,sstc=on,h=on", "max", "rva23s64", "veyron-v1"] {
        let manifest = parse(&without_h(cpu, "")).unwrap();
        assert!(manifest.board.has_h() && !manifest.needs().without_h, "{cpu}");
        assert_eq!(manifest.translations, [Translation::TwoStage; 2], "{cpu}");
    }
    // Several address spaces need more tables there, as each is seen in three ways; one does not.
    for tables in [36, 67] {
        let found = errors(&without_h("rv64,h=off", &format!("shadow_tables = {tables}")));
        let [only] = &found[..] else { panic!("expected one finding, got {found:#?}") };
        assert!(only.contains(&format!("can't have {tables} shadow tables")), "{only}");
        assert!(only.contains("from 68 to 8192 on harts without H, or fewer with"), "{only}");
    }
    assert!(parse(&without_h("rv64,h=off", "shadow_tables = 68")).is_ok());
    let keys = "translation = \"shadow-single\"\nshadow_tables = 40";
    let own =
        Shadow { spaces: ShadowSpaces::Single, tables: 40, reclaim: ShadowReclaim::Fifo, breakpoints: true };
    assert_eq!(parse(&without_h("rv64,h=off", keys)).unwrap().translations[1], Translation::Shadow(own));
    // There are some without a word about it, so something can be said of them.
    let reclaim = "shadow_reclaim = \"page-directory-lru\"";
    let order = parse(&without_h("rv64,h=off", reclaim)).unwrap().translations[1].shadow().unwrap().reclaim;
    assert_eq!(order, ShadowReclaim::PageDirectoryLru);
}

#[test]
fn on_harts_without_h_no_guest_has_two_stages() {
    let found = errors(&without_h("rv64,h=false", "translation = \"two-stage\""));
    let [only] = &found[..] else { panic!("expected one finding, got {found:#?}") };
    assert!(
        only.contains("no second stage of translation") && only.contains("lack the H extension"),
        "{only}"
    );
    assert!(only.contains("leave the key out") && only.contains("shadow-multi"), "{only}");
    // One error is told once, however the harts would be.
    for keys in ["translation = \"two-stage\"", "shadow_tables = 100"] {
        let found = errors(&without_h("rv66", keys));
        assert!(found.len() == 1 && found[0].contains("is not a CPU"), "{keys}: {found:?}");
    }
}

#[test]
fn breakpoints_are_there_without_h_unless_the_guest_has_none() {
    let breakpoints = |keys| {
        let translation = parse(&without_h("rv64,h=false", keys)).unwrap().translations[1];
        translation.shadow().unwrap().breakpoints
    };
    assert!(breakpoints("breakpoints = true"));
    assert!(!breakpoints("breakpoints = false"));
    assert!(!breakpoints("breakpoints = false\ntranslation = \"shadow-single\""));
    for keys in
        ["breakpoints = true", "breakpoints = false", "breakpoints = false\ntranslation = \"shadow-multi\""]
    {
        let found = errors(&with(keys));
        assert!(
            found.len() == 1 && found[0].contains("the board's harts have the H extension"),
            "{keys}: {found:?}"
        );
    }
    // As long as nobody knows the harts, they may be such harts.
    let found = errors(&without_h("rv66", "breakpoints = false"));
    assert!(found.len() == 1 && found[0].contains("is not a CPU"), "{found:?}");
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
    for text in [
        with(""),
        with("translation = \"shadow-multi\"\nshadow_tables = 40"),
        without_h("rv64,h=false", "breakpoints = false"),
    ] {
        let manifest = parse(&text).unwrap();
        let wanted = manifest.spaces();
        assert_eq!(spaces(&blob_of_zeros(&manifest)), Ok(wanted));
    }
}
