//! That figures come out again: the same run in two folders, and `ainori bench verify`, which is to find out when they don't. Why this and not figures that
//! are written down: docs/measuring.md, "That they still come out".
use ainori_tests::{checkout, hypervisor, terminal::build_tool};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};
use tempfile::TempDir;

/// A folder with a small experiment, and with copies of all that it runs.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let copies = [
        (checkout("tests/verify/tiny.toml"), "tiny.toml"),
        (checkout("tests/verify/shared.toml"), "shared.toml"),
        (checkout(".cache/guests/freertos/freertos.elf"), "freertos.elf"),
        (checkout(".cache/guests/probes/busyloop.elf"), "busyloop.elf"),
        (hypervisor(), "ainori.elf"),
    ];
    for (from, name) in copies {
        fs::copy(&from, folder.path().join(name))
            .unwrap_or_else(|error| panic!("{}: {error}", from.display()));
    }
    folder
}

fn bench(folder: &Path, arguments: &[&str]) -> Output {
    build_tool();
    let tool = Command::new(checkout("ainori")).arg("bench").args(arguments).current_dir(folder).output();
    tool.expect("the tool can be started")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Runs the experiment, or a part of its runs, in a folder.
fn run(folder: &Path, more: &[&str]) {
    let kernel = folder.join("ainori.elf");
    let arguments = ["tiny.toml", "--store", "store", "--kernel", kernel.to_str().unwrap()];
    let output = bench(folder, &[&arguments[..], more].concat());
    assert!(output.status.success(), "{}", text(&output));
}

/// The finished runs in a store, by their files' names.
fn runs(store: PathBuf) -> BTreeMap<String, Vec<u8>> {
    let files = fs::read_dir(store).unwrap().map(|entry| entry.unwrap().path());
    let runs = files.filter(|file| file.is_file());
    runs.map(|file| (file.file_name().unwrap().to_string_lossy().into_owned(), fs::read(&file).unwrap()))
        .collect()
}

fn verify(folder: &Path, result: &str) -> (Option<i32>, String) {
    let kernel = folder.join("ainori.elf");
    let output =
        bench(folder, &["verify", result, "--sample", "2", "--all", "--kernel", kernel.to_str().unwrap()]);
    (output.status.code(), text(&output))
}

#[test]
fn a_run_gives_the_same_bytes_in_two_folders_and_verify_finds_out_when_not() {
    let (one, two) = (folder(), folder());
    run(one.path(), &["--json", "tiny.json", "--name", "verify-test"]);
    // The other folder's in two parts, as two machines would.
    run(two.path(), &["--shard", "1/2"]);
    run(two.path(), &["--shard", "2/2"]);
    let (first, second) = (runs(one.path().join("store")), runs(two.path().join("store")));
    assert_eq!(first.len(), 2, "{:?}", first.keys());
    assert!(first == second, "{:?} and {:?}", first.keys(), second.keys());

    let (code, told) = verify(one.path(), "tiny.json");
    assert!(
        code == Some(0) && told.contains("Taken again: 2 runs, all the same to the byte"),
        "{code:?}: {told}"
    );

    // A digit of one sample.
    let json = fs::read_to_string(one.path().join("tiny.json")).unwrap();
    let (before, after) = json.split_once("\"exits\": ").expect("a sample with its exits");
    fs::write(one.path().join("wrong.json"), format!("{before}\"exits\": 1{after}")).unwrap();
    let (code, told) = verify(one.path(), "wrong.json");
    assert!(
        code == Some(1) && told.contains("1 of them DIFFER") && told.contains("exits is "),
        "{code:?}: {told}"
    );

    // Another hypervisor: one byte at its end changes its hash and nothing that it does.
    let mut kernel = fs::read(one.path().join("ainori.elf")).unwrap();
    kernel.push(0);
    fs::write(one.path().join("ainori.elf"), kernel).unwrap();
    let (code, told) = verify(one.path(), "tiny.json");
    assert!(
        code == Some(1) && told.contains("Measured with an older hypervisor: hypervisor "),
        "{code:?}: {told}"
    );
}

/// Those runs of committed results that would be the same today, as far as a minute reaches. There may be none.
#[test]
fn committed_results_that_are_of_today_come_out_again() {
    let output = bench(&checkout(""), &["verify", "--sample", "2", "--minutes", "1"]);
    let told = text(&output);
    print!("{told}");
    assert!(output.status.success() && told.contains("results are old."), "{told}");
}
