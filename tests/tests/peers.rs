//! The harness that measures other hypervisors (docs/peers.md): its tables are what its results say, what it can't do is told, and nothing of
//! another commit, other guests or half a run gets into its results. The peers themselves are not at hand here.
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use ainori_tests::checkout;

/// QEMU, to `tools/peers/run`: FreeRTOS has measured at once, but never for a slice of 3. It writes its number into `qemu.pid`.
const QEMU: &str = r#"#!/bin/sh
case "$*" in
*--version*) echo "QEMU emulator version 10"; exit ;;
*dumpdtb=*) file=${*#*dumpdtb=}; : >"${file%% *}"; exit ;;
esac
trap 'echo "lockstep: q=1 stuck=0" >&2; exit' TERM
serial=${*#*-serial file:}
case "$*" in
*q=3*) echo $$ >"$(dirname "$0")/qemu.pid" ;;
*) echo '@result {"job":"freertos","ok":true}' >"${serial%% *}" ;;
esac
while :; do sleep 0.05; done
"#;

fn write(file: PathBuf, text: &str) {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

/// A checkout that has the harness, its page and its results, and programs and guests that only look like some.
fn stand() -> tempfile::TempDir {
    let stand = tempfile::tempdir().unwrap();
    let top = stand.path();
    for folder in ["tools/peers", "docs/results/peers"] {
        fs::create_dir_all(top.join(folder)).unwrap();
        for entry in fs::read_dir(checkout(folder)).unwrap().map(Result::unwrap) {
            fs::copy(entry.path(), top.join(folder).join(entry.file_name())).unwrap();
        }
    }
    fs::copy(checkout("docs/peers.md"), top.join("docs/peers.md")).unwrap();
    let guests = [
        "linux/Image",
        "linux/initramfs.cpio.gz",
        "linux/micro.cpio.gz",
        "freertos/freertos.elf",
        "probes/cost.elf",
    ];
    guests.iter().for_each(|guest| write(top.join(".cache/guests").join(guest), guest));
    write(top.join(".cache/plugins/lockstep.so"), "");
    for (program, text) in [("qemu-system-riscv64", QEMU), ("dtc", "#!/bin/sh\ncat >/dev/null\n")] {
        let file = top.join("bin").join(program);
        write(file.clone(), text);
        assert!(Command::new("chmod").arg("+x").arg(file).status().unwrap().success());
    }
    stand
}

fn command(top: &Path, program: &str, arguments: &str) -> Command {
    let mut command = Command::new(top.join("tools/peers").join(program));
    let path = format!("{}:{}", top.join("bin").display(), std::env::var("PATH").unwrap());
    command.args(arguments.split_whitespace()).current_dir(top).env("PATH", path);
    command
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Ends with this code, and says this.
#[track_caller]
fn refused(mut command: Command, code: i32, words: &str) {
    let output = command.output().unwrap();
    assert!(told(&output).contains(words) && !told(&output).contains("Traceback"), "{}", told(&output));
    assert_eq!(output.status.code(), Some(code), "{}", told(&output));
}

#[test]
fn the_tables_are_what_the_results_give() {
    let output = command(&checkout(""), "table", "--check").output().unwrap();
    assert!(output.status.success(), "{}", told(&output));
}

#[test]
fn results_of_different_guests_do_not_stand_in_one_table() {
    let stand = stand();
    let top = stand.path();
    let (page, file) = (top.join("docs/peers.md"), top.join("docs/results/peers/bao.json"));
    let before = fs::read_to_string(&page).unwrap();
    let results = fs::read_to_string(&file).unwrap();
    write(file, &results.replacen("\"Image\": \"", "\"Image\": \"0", 1));
    refused(command(top, "table", ""), 1, "docs/results/peers/bao.json: guests is {'Image': '0");
    refused(command(top, "table", "--chekc"), 2, "unrecognized arguments: --chekc");
    assert_eq!(fs::read_to_string(page).unwrap(), before);
}

#[test]
fn what_cannot_be_run_is_told_before_anything_is_made() {
    let stand = stand();
    let top = stand.path();
    for (arguments, code, words) in [
        ("", 2, "the following arguments are required: peer, folder\n"),
        ("nobody -", 2, "there is no peer nobody: ainori, bare, bao, xvisor, kvm"),
        ("bao:apic tools cost", 2, "bao has no variant apic: aia"),
        ("bao tools sizes cots", 2, "bao has no case cots: sizes, cost, ping, alone, shared, micro"),
        ("bare - shared", 2, "bare has no case shared: cost, ping, alone, three, idle, micro"),
        ("bare - idle --q 240,many", 2, "argument --q: invalid slices value: '240,many'"),
        ("bare - idle ping --seed 2", 2, "ping has no FreeRTOS"),
        ("bao - cost", 2, "FOLDER is a git checkout"),
        ("bare tools cost", 2, "FOLDER is -"),
        ("ainori - cost", 1, ".cache/kernel/ainori.elf isn't there: make guests build"),
    ] {
        refused(command(top, "run", arguments), code, words);
    }
    assert!(!top.join(".cache/peers").exists());
    for peer in ["bao", "xvisor", "kvm"] {
        refused(command(top, "run", &format!("{peer} nowhere")), 1, "FOLDER has to be a git checkout of");
    }
}

#[test]
fn a_run_that_ends_without_a_result_says_what_qemu_says() {
    let stand = stand();
    let top = stand.path();
    write(top.join("bin/qemu-system-riscv64"), &QEMU.replace("trap", "exec echo \"bad option 'q=0'\" >&2 #"));
    refused(command(top, "run", "bare - idle --q 0"), 1, "idle-0.log\n  bad option 'q=0'\n");
}

/// A run that was interrupted left QEMU running, and one or two samples where three had been.
#[test]
fn an_interrupted_run_leaves_the_results_as_they_were_and_no_qemu() {
    let stand = stand();
    let top = stand.path();
    let results = top.join("docs/results/peers/bare.json");
    fs::remove_file(&results).unwrap();
    let whole = command(top, "run", "bare - idle --q 1,2 --save").output().unwrap();
    assert!(whole.status.success(), "{}", told(&whole));
    let before = fs::read_to_string(&results).unwrap();
    assert_eq!(before.matches("\"q\"").count(), 2);

    let (stdin, stdout, stderr) = (Stdio::null(), Stdio::null(), Stdio::null());
    let mut second = command(top, "run", "bare - idle --q 1,3 --save");
    let mut run = second.stdin(stdin).stdout(stdout).stderr(stderr).spawn().unwrap();
    let (pid, started) = (top.join("bin/qemu.pid"), Instant::now());
    let read = || fs::read_to_string(&pid).ok().filter(|text| text.ends_with('\n'));
    while read().is_none() {
        assert!(started.elapsed() < Duration::from_secs(60), "QEMU wasn't started");
        std::thread::sleep(Duration::from_millis(20));
    }
    refused(command(top, "run", "bare - idle"), 1, "another run of bare");
    assert!(Command::new("kill").arg(run.id().to_string()).status().unwrap().success());
    assert_eq!(run.wait().unwrap().code(), Some(128 + 15));
    assert!(!Path::new("/proc").join(read().unwrap().trim()).exists());
    assert_eq!(fs::read_to_string(&results).unwrap(), before);
}

/// What is told of the guests and of QEMU is told once, for all cases of a file.
#[test]
fn a_case_with_other_guests_is_not_put_beside_the_others() {
    let stand = stand();
    let top = stand.path();
    let results = top.join("docs/results/peers/bare.json");
    let before = fs::read_to_string(&results).unwrap();
    refused(
        command(top, "run", "bare - idle --q 1 --save"),
        1,
        "bare.json has cases with other qemu than today's",
    );
    assert_eq!(fs::read_to_string(&results).unwrap(), before);
    // With the stand's QEMU, it is the guests that differ.
    let mut document: serde_json::Value = serde_json::from_str(&before).unwrap();
    document["qemu"] = "QEMU emulator version 10".into();
    fs::write(&results, document.to_string()).unwrap();
    refused(
        command(top, "run", "bare - idle --q 1 --save"),
        1,
        "bare.json has cases with other guests than today's",
    );
    assert_eq!(fs::read_to_string(&results).unwrap(), document.to_string());
}

/// `guest.copy`, of a peer with one file that is edited.
fn copy(repository: &Path, tree: &Path) -> Output {
    let script = "import sys; sys.path.insert(0, sys.argv[1]); import guest, pathlib; \
                  print(guest.copy('Peer', sys.argv[2], pathlib.Path(sys.argv[3]), 'main.c', [('main.c', 'OLD', 'NEW')]))";
    let mut command = Command::new("python3");
    command.args(["-B", "-c", script]).arg(checkout("tools/peers")).args([repository, tree]).output().unwrap()
}

fn git(repository: &Path, arguments: &[&str]) -> String {
    let who = ["-c", "user.name=test", "-c", "user.email=test@localhost"];
    let output = Command::new("git").arg("-C").arg(repository).args(who).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", told(&output));
    String::from_utf8(output.stdout).unwrap().trim().into()
}

/// The name of one commit stood beside figures of another: what had once been built was taken for whatever folder was named.
#[test]
fn what_is_built_is_of_the_commit_that_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let (repository, tree) = (folder.path().join("peer"), folder.path().join("work/source"));
    let main = repository.join("main.c");
    let commit = |text: &str| {
        write(main.clone(), text);
        git(&repository, &["add", "."]);
        git(&repository, &["commit", "--quiet", "-m", "a change"]);
        git(&repository, &["rev-parse", "HEAD"])
    };
    let copied = || fs::read_to_string(tree.join("main.c")).unwrap();
    let gives = |version: &str, text: &str| {
        let output = copy(&repository, &tree);
        assert!(String::from_utf8_lossy(&output.stdout).starts_with(version), "{}", told(&output));
        assert_eq!(copied(), text);
    };
    let is_refused = |words: &str| {
        let output = copy(&repository, &tree);
        assert!(output.status.code() == Some(1) && told(&output).contains(words), "{}", told(&output));
        assert_eq!(copied(), "NEW again");
    };

    fs::create_dir(&repository).unwrap();
    git(&repository, &["init", "--quiet"]);
    gives(&commit("OLD"), "NEW");
    let second = commit("OLD again");
    gives(&second, "NEW again");

    // An interruption before the edits.
    write(tree.join("main.c"), "OLD again");
    fs::remove_file(tree.with_extension("made-of")).unwrap();
    gives(&second, "NEW again");

    // What has been built stays until there is something else to build.
    write(tree.join("built"), "");
    gives(&second, "NEW again");
    assert!(tree.join("built").exists());
    write(main.clone(), "OLD, not committed");
    is_refused("has changes that aren't committed");
    commit("another version");
    is_refused("doesn't have 'OLD' once");
    fs::remove_dir_all(repository.join(".git")).unwrap();
    is_refused("git rev-parse --show-prefix");
}

/// KVM's host and Xvisor read the times of files in their RAM disk, so whatever ran on them took another time whenever that had been made again.
#[test]
fn a_ram_disk_is_the_same_whenever_it_is_made() {
    let script = "import sys; sys.path.insert(0, sys.argv[1]); import guest, pathlib; \
                  guest.archive(pathlib.Path(sys.argv[2]), ['a', 'link'], open(sys.argv[3], 'wb'))";
    let folder = tempfile::tempdir().unwrap();
    let make = |name: &str, time: &str| {
        let (files, out) = (folder.path().join(name), folder.path().join(name).with_extension("cpio"));
        write(files.join("a"), "the same");
        std::os::unix::fs::symlink("a", files.join("link")).unwrap();
        assert!(
            Command::new("touch")
                .args(["-h", "-d", time, "a", "link"])
                .current_dir(&files)
                .status()
                .unwrap()
                .success()
        );
        let mut python = Command::new("python3");
        let output = python
            .args(["-B", "-c", script])
            .arg(checkout("tools/peers"))
            .args([files, out.clone()])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", told(&output));
        fs::read(out).unwrap()
    };
    let first = make("first", "2025-01-01");
    assert!(!first.is_empty());
    assert_eq!(first, make("second", "2026-07-07"));
}

/// With samples of `instret`, which is a clock of the host there, the probe printed for another time in each run, and its pings began at another
/// phase: eight runs on Bao had four different means.
#[test]
fn pings_take_as_long_in_each_run() {
    let pings = || {
        let output = command(&checkout(""), "run", "ainori - ping --q 250").output().unwrap();
        assert!(output.status.success(), "{}", told(&output));
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        document["cases"]["ping"]["samples"].clone()
    };
    assert_eq!(pings(), pings());
}
