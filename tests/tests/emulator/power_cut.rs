//! The emulator is killed while a guest writes to its disk, as by a power cut: the guest starts again, its journal puts the file system in order, and what it had made durable is there.
//!
//! What the disk has told the guest to be done is then in the host's memory, which stays: these are cuts of the machine, not of the disk.
use ainori::report::Outcome;
use ainori_tests::{Clock, Guest, Run, System, random::rng::Rng};
use std::{fs, path::Path, process::Command, time::Duration};

/// Where a guest's memory is on a board with 2 GiB.
const AT: u64 = 0xe000_0000;
/// Bytes of the file system.
const BYTES: u64 = 64 << 20;
/// A cut comes at most so long after the guest has begun to write, in the host's time. It makes tens of files meanwhile.
const LATEST_MS: u64 = 3000;
/// The guest says so which file is the newest that it has found, and then that it begins to write.
const FOUND: &str = "checked ";
const BEGINS: &str = "writes from now on";
/// And so of each file that is durable.
const DURABLE: &str = "synced ";

/// A program of e2fsprogs, which Debian has where only root looks.
fn e2fsprogs(program: &str, arguments: &[&str], disk: &Path) {
    let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
    let output = Command::new("env")
        .arg(format!("PATH={path}"))
        .arg(program)
        .args(arguments)
        .arg(disk)
        .output()
        .expect("env can be started");
    assert!(output.status.success(), "{program}: {output:?}");
}

/// Kills the emulator that has this disk: it can't put anything in order before it ends.
fn cut_power(disk: &Path) {
    let has_disk = |process: &Path| {
        let name = fs::read_to_string(process.join("comm")).unwrap_or_default();
        let files = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
        name.starts_with("qemu-system")
            && files.filter_map(|file| fs::read_link(file.path()).ok()).any(|file| file == disk)
    };
    let processes = fs::read_dir("/proc").expect("Linux has it").flatten();
    let emulators: Vec<_> =
        processes.map(|process| process.path()).filter(|process| has_disk(process)).collect();
    let [emulator] = &emulators[..] else { panic!("{emulators:?} have the disk {}", disk.display()) };
    let number = emulator.file_name().expect("it is in /proc");
    assert!(Command::new("kill").arg("-KILL").arg(number).status().expect("kill can be started").success());
}

/// The greatest number that the guest has told behind this word.
fn greatest(run: &Run, word: &str) -> u64 {
    run.lines("linux").filter_map(|line| line.strip_prefix(word)?.parse().ok()).max().unwrap_or(0)
}

/// So many cuts, one after the other, of the same disk.
fn outlives(cuts: u64) {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().canonicalize().unwrap().join("disk.img");
    fs::File::create(&disk).and_then(|file| file.set_len(BYTES)).unwrap();
    e2fsprogs("mke2fs", &["-q", "-F", "-t", "ext4"], &disk);
    let system = |args| {
        let linux = Guest::linux("journal").with_job("virtio").args(args).trusted_with_dma_at(AT);
        System::on(1).with_h().with(linux).disk("linux", &disk, "")
    };
    // Milliseconds to wait, of a generator of random numbers: the moments themselves are as the host has it.
    let mut rng = Rng::new(cuts);
    let mut durable = 0;
    for cut in 1..=cuts {
        let wait = Duration::from_millis(rng.below(LATEST_MS));
        let run = system("ainori.write=yes").run_and_when(Clock::Host, BEGINS, |_| {
            std::thread::sleep(wait);
            cut_power(&disk);
        });
        run.ended(Outcome::QemuDied);
        let found = greatest(&run, FOUND);
        run.check(
            found >= durable,
            format_args!("before cut {cut} file {durable} was durable, and {found} is the newest"),
        );
        durable = greatest(&run, DURABLE).max(found);
        println!("cut {cut}, {wait:?} after the begin: file {durable} is durable");
    }
    assert!(durable > 0, "the guest made nothing durable, so nothing could be lost");

    let run = system("ainori.write=no").run(Clock::Host);
    run.good();
    let found = run.number("linux", "newest");
    run.check(found >= durable, format_args!("file {durable} was durable, and {found} is the newest"));
    run.check(run.number("linux", "recovered") == 1, "the journal had something to put in order");
    e2fsprogs("e2fsck", &["-f", "-n"], &disk);
}

#[test]
fn a_file_system_outlives_power_cuts() {
    outlives(2);
}

#[test]
#[ignore = "soak: some minutes"]
fn a_file_system_outlives_thirty_power_cuts() {
    outlives(30);
}
