//! QEMU's `sifive_u`, a board with other harts, contexts, and another serial port than `virt`. Its own harts have no H; QEMU gives it others.
use ainori::image::{self, Kernel};
use ainori_manifest::Manifest;
use ainori_tests::{Guest, System, checkout};
use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
    sync::mpsc::channel,
    thread,
    time::Duration,
};

/// Longest time of the host without a line.
const SILENCE: Duration = Duration::from_secs(120);

/// The tool doesn't run this board: what comes from its serial port until the hypervisor's last word.
/// Nothing on it switches it off.
fn run(system: &System) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let manifest = Manifest::parse("system.toml", &system.to_string(), Path::new("/"), "test")
        .unwrap_or_else(|findings| panic!("{findings:?}\n{system}"));
    let kernel = checkout(".cache/kernel/ainori-sbi-timer-uarts.elf");
    let image = Kernel::load(Some(&kernel), manifest.needs())
        .and_then(|kernel| image::build(&manifest, kernel))
        .unwrap_or_else(|error| panic!("there is no image: {error:?}\n{system}"));
    let file = folder.path().join("image.bin");
    std::fs::write(&file, image.bytes).expect("the temporary folder can be written");
    let mut machine = Command::new("qemu-system-riscv64")
        .args(["-M", "sifive_u", "-cpu", "rv64,sstc=false", "-smp", "5", "-m", "1G", "-bios", "default"])
        .args(["-display", "none", "-monitor", "none", "-serial", "stdio"])
        .arg("-kernel")
        .arg(&file)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("QEMU is there");
    let output = BufReader::new(machine.stdout.take().expect("piped"));
    let (sender, lines) = channel();
    thread::spawn(move || {
        for line in output.lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    let mut seen = Vec::new();
    while let Ok(line) = lines.recv_timeout(SILENCE) {
        let is_last = line.contains("\"record\":\"end\"");
        seen.push(line);
        if is_last {
            break;
        }
    }
    machine.kill().expect("it runs");
    machine.wait().expect("it was started");
    seen
}

/// Hart 0 has no supervisor mode, and the others have contexts 2, 4, 6 and 8 of the PLIC. IPIs are the firmware's, and so is the timer.
#[test]
fn guests_run_on_harts_1_to_4() {
    // Alone on its hart, it sleeps there until its timer: late in the host's time, but it comes. (With a slow clock it didn't: the hypervisor looked at it
    // twice, and the deadline was between.)
    let rtos = Guest::freertos("period_us=10000 periods=20 burn_percent=10 report_ms=0")
        .file(&checkout(".cache/guests/freertos/freertos-sbi-timer.elf"))
        .harts([2]);
    let three = Guest::probe("smp", "rounds=0020").vcpus(3).harts([1, 3, 4]);
    let seen = run(&System::on(5).memory_gib(1).cpu("rv64,sstc=false").with(rtos).with(three));
    let has = |part: &str| seen.iter().any(|line| line.contains(part));
    let all = seen.join("\n");
    assert!(has("\"record\":\"board\",\"model\":\"SiFive HiFive Unleashed A00\",\"harts\":4,"), "{all}");
    for core in 0..4 {
        assert!(has(&format!("\"core\":{core},\"hart\":{},", core + 1)), "{all}");
    }
    let result = |job: &str| {
        let begin = format!("{job}| @result {{\"job\":\"{job}\"");
        seen.iter().find(|line| line.starts_with(&begin)).map_or("none", String::as_str)
    };
    assert!(result("freertos").contains("\"periods\":20,"), "{all}");
    assert!(result("smp").ends_with("\"ok\":true}"), "{all}");
    assert!(has("\"console_bytes_lost\":0"), "{all}");
}
