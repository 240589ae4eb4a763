//! Disks and network cards of guests that are trusted with them (`dma = "trusted"`): they work beside an RTOS that doesn't notice, and what a device
//! was told to do in a former life doesn't reach the next one.
use ainori::report::Outcome;
use ainori_report::StopReason;
use ainori_tests::{Clock, Guest, System, random::rng::Rng};
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const CLOCK: Clock = Clock::Lockstep { q: 250 };
/// Where a guest's memory is on a board with 2 GiB.
const AT: u64 = 0xe000_0000;
const MIB: usize = 1 << 20;
/// So many MiB of its disk Linux reads, and writes behind themselves.
const READ_MIB: usize = 4;
/// For how long the host's end of a connection waits for the guest's.
const PATIENCE: Duration = Duration::from_secs(1200);

fn linux() -> Guest {
    Guest::linux("virtio").with_job("virtio").args(&format!("ainori.mib={READ_MIB}")).trusted_with_dma_at(AT)
}

/// Bytes that no two sectors have in common.
fn contents(seed: u64, bytes: usize) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    (0..bytes).map(|_| rng.bits() as u8).collect()
}

fn sha256(file: &Path) -> String {
    let output = Command::new("sha256sum").arg(file).output().unwrap();
    String::from_utf8(output.stdout).unwrap().split(' ').next().unwrap().to_owned()
}

/// Sends these bytes to the first who connects. Returns the port.
fn server(bytes: Vec<u8>) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    listener.set_nonblocking(true).unwrap();
    std::thread::spawn(move || {
        let begin = Instant::now();
        // A guest that never comes must not keep this thread for longer than its test.
        while begin.elapsed() < PATIENCE {
            if let Ok((mut stream, _)) = listener.accept() {
                stream.set_nonblocking(false).unwrap();
                stream.write_all(&bytes).unwrap();
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    port
}

/// Linux's own drivers: what is on the disk is read, what is written is on the disk, and what the host sends comes, while FreeRTOS on one of its harts keeps its periods.
#[test]
fn linux_has_a_disk_and_a_network_beside_an_rtos() {
    let folder = tempfile::tempdir().unwrap();
    let (disk, sent) = (folder.path().join("disk.img"), folder.path().join("sent"));
    let before = contents(1, 4 * READ_MIB * MIB);
    std::fs::write(&disk, &before).unwrap();
    let head = folder.path().join("head");
    std::fs::write(&head, &before[..READ_MIB * MIB]).unwrap();
    let bytes = contents(2, 300_000);
    std::fs::write(&sent, &bytes).unwrap();

    let linux = linux().args(&format!("ainori.port={}", server(bytes))).vcpus(2).harts([0, 1]);
    let freertos = Guest::freertos("period_us=1000 periods=3000 burn_percent=30 report_ms=0").harts([1]);
    let run = System::on(2)
        .with_h()
        .policy("ainori")
        .with(linux)
        .with(freertos)
        .disk("linux", &disk, "")
        .network("linux", "mac = \"52:54:00:aa:bb:cc\"")
        .run(CLOCK);
    run.good();
    run.lost_no_tick("freertos", 3000).was_in_time("freertos", "beside a disk and a network");
    let result = run.result("linux");
    assert_eq!(result["read"], sha256(&head), "what Linux read");
    assert_eq!(result["received"], sha256(&sent), "what Linux got by the network");
    assert_eq!((&result["mac"], &result["replies"]), (&"52:54:00:aa:bb:cc".into(), &3.into()));
    assert!(run.number("linux", "interrupts") > 10, "its devices interrupt");
    let after = std::fs::read(&disk).unwrap();
    let (read, rest) = before.split_at(READ_MIB * MIB);
    let expected = [read, read, &rest[READ_MIB * MIB..]].concat();
    assert!(after == expected, "what Linux wrote, and nothing else, is in the file");
}

/// Writes go nowhere in the end if the manifest says so; and there are none to a disk that can only be read.
#[test]
fn a_disk_is_as_it_was_if_nothing_is_to_be_kept() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk.img");
    let before = contents(3, 2 * READ_MIB * MIB);
    std::fs::write(&disk, &before).unwrap();
    let run = System::on(1).with_h().with(linux()).disk("linux", &disk, "snapshot = true").run(CLOCK);
    run.good();
    run.result("linux");
    assert!(std::fs::read(&disk).unwrap() == before, "a snapshot");

    let run = System::on(1).with_h().with(linux()).disk("linux", &disk, "read_only = true").run(CLOCK);
    let told = run.guest("linux").results.first().and_then(|result| result.get("error")).cloned();
    run.check(told == Some("the disk can't be written".into()), format_args!("Linux says {told:?}"));
    assert!(std::fs::read(&disk).unwrap() == before, "a disk that can only be read");
}

/// A disk so slow that it is at work when its guest reboots: nothing of that is stored in the next life's memory, which finds the device reset.
#[test]
fn a_device_of_a_former_life_stores_nothing_in_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk.img");
    std::fs::write(&disk, contents(4, MIB)).unwrap();
    let drive =
        format!("if=none,id=slow,format=raw,read-only=on,throttling.bps-read=65536,file={}", disk.display());
    let device = "virtio-blk-device,drive=slow,bus=virtio-mmio-bus.7";
    let arguments = ["-global", "virtio-mmio.force-legacy=false", "-drive", &drive, "-device", device];
    // The disk is as slow as that in the host's time, whatever of the machine's goes by meanwhile: a life has taken 0.1 to 0.8 s.
    let probe = Guest::probe("dma", "until_ms=4000")
        .position_independent()
        .memory_mib(4)
        .trusted_with_dma_at(AT)
        .device("/soc/virtio_mmio@10008000")
        .restart("on-failure", 32, "10s");
    let run = System::on(1).with_h().with(probe).qemu_args(arguments.map(String::from)).run(CLOCK);
    run.good().stopped("dma", StopReason::Shutdown);
    let guest = run.guest("dma");
    let lives = guest.former_lives.iter().map(|life| &life.results).chain([&guest.results]);
    for (results, life) in lives.zip(1..) {
        let result = results.first().unwrap_or_else(|| run.fail(format_args!("life {life} says nothing")));
        run.check(result["ok"] == true, format_args!("life {life}: {result:?}"));
        run.check(result["pending"] == 1, format_args!("life {life} left nothing under way: {result:?}"));
    }
    let lives = guest.former_lives.len();
    run.check(lives >= 1, format_args!("{lives} former lives are too few to show anything"));
}

/// A device's loads and stores are seen by nobody: so nothing stands there for instructions that the guest has executed, whether its harts have H or not. (Without H breakpoints did. The device was given them
/// instead of the guest's memory, and instructions were put back over what the device had stored.)
#[test]
fn a_device_and_its_guest_have_the_same_memory() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk.img");
    for cpu in ["rv64", "rv64,h=false"] {
        std::fs::write(&disk, vec![0; MIB]).unwrap();
        let probe = Guest::probe("fill", "slot=0").position_independent().trusted_with_dma_at(AT);
        let run = System::on(1).cpu(cpu).with(probe).disk("fill", &disk, "").run(CLOCK);
        run.good().result("fill");
    }
}

/// Stock Linux gets `KEY_POWER` from its own driver, shuts down by itself, and is waited for; one that does nothing is stopped when its time is over.
#[test]
fn a_guest_is_asked_to_shut_down() {
    const WAITS: &str = "waits for its power button";
    let linux =
        |job: &str, patience| Guest::linux(job).with_job("virtio").trusted_with_dma_at(AT).shutdown(patience);
    let run = System::on(1).with_h().with(linux("button", "600s")).run_until(Clock::Host, WAITS);
    run.check(run.report.outcome == Outcome::Interrupted, format_args!("{:?}", run.report.outcome));
    run.stopped("linux", StopReason::Shutdown);
    // EV_KEY and KEY_POWER of Linux's input-event-codes.h.
    assert_eq!((run.number("linux", "kind"), run.number("linux", "key")), (1, 116));
    run.check(run.report.end.is_some(), "the hypervisor tells its end");

    // Nobody listens to the button.
    let run = System::on(1).with_h().with(linux("idle", "1s")).run_until(Clock::Host, "linux| Linux 6");
    run.check(run.report.outcome == Outcome::Interrupted, format_args!("{:?}", run.report.outcome));
    run.check(run.guest("linux").stopped.is_none(), "it was stopped from outside");
}
