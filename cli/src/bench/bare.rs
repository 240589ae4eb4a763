//! A guest on the bare machine: the same image, arguments, memory and number of harts, on QEMU without a hypervisor.
mod device_tree;

use super::plan::Run;
use crate::{
    checkout,
    report::{Clock, GuestOutcome, GuestReport, Host, Outcome, RunReport},
    run::{
        Options,
        files::{Files, Folder, joined, option},
        qemu::{self, Qemu, Wanted},
        streams::{self, Event},
    },
    serial::{self, Lines, Meaning, Source},
};
use ainori_manifest::Board;
use miette::{Result, miette};
use std::{
    ffi::OsStr,
    process::Command,
    sync::{atomic::Ordering, mpsc::RecvTimeoutError},
    time::{Duration, Instant},
};

/// How often the time limit and the wish to stop are looked at.
const TICK: Duration = Duration::from_millis(40);

/// Runs the only guest of a manifest. The report has what can be known without a hypervisor.
pub fn run(options: &mut Options, run: &Run, version: &str) -> Result<RunReport> {
    let manifest = &run.manifest;
    let (guest, files) = match (&manifest.system.guests[..], &manifest.files[..]) {
        ([guest], [files]) => (guest, files),
        (guests, _) => return Err(miette!("the bare machine runs one guest, not {}", guests.len())),
    };
    let board = run.board();
    if board.machine != "qemu-virt" {
        return Err(miette!(
            "the bare machine is QEMU's virt, but the manifest's board is {}",
            board.machine
        ));
    }
    let not_kept = Files::new(None)?;
    let tree = device_tree::without_foreign_devices(dump_tree(run, &board)?)?;
    let tree = not_kept.write("board.dtb", &tree)?;
    options.qemu_args.extend(["-nic".into(), "none".into(), "-dtb".into(), tree.path.clone().into()]);
    if let Some(initrd) = &files.initrd {
        options.qemu_args.extend(["-initrd".into(), initrd.into()]);
    }
    for load in &files.loads {
        let at = format!("loader,addr={:#x},force-raw=on,", load.address);
        options.qemu_args.extend(["-device".into(), joined(&[OsStr::new(&at), &option("file", &load.file)])]);
    }
    if !guest.args.is_empty() {
        options.qemu_args.extend(["-append".into(), guest.args.clone().into()]);
    }

    let started = Instant::now();
    let wanted = Wanted { board: &board, devices: &[], has_power_button: false, image: &files.image };
    let mut machine = Qemu::start(options, &[], wanted, not_kept)?;
    let mut report = RunReport {
        system: manifest.system.name.clone(),
        outcome: Outcome::Good,
        problems: Vec::new(),
        clock: options.clock.in_report(),
        qemu: version.to_owned(),
        board: None,
        guests: vec![GuestReport::new(guest)],
        cores: Vec::new(),
        end: None,
        console: Default::default(),
        trace: None,
        host: Host::default(),
    };
    report.guests[0].start();
    report.outcome = watch(options, &mut machine, &mut report)?;
    report.host.seconds = started.elapsed().as_secs_f64();
    if let Clock::Lockstep { stuck, hash, .. } = &mut report.clock {
        (*stuck, *hash) = qemu::lockstep_summary(&machine.messages);
        if matches!(report.outcome, Outcome::Good | Outcome::GuestFailed) && *stuck != Some(0) {
            report.outcome = Outcome::ClockInvalid;
        }
    }
    if report.guests[0].results.is_empty() && report.outcome != Outcome::Interrupted {
        report.problems.push(machine.last_words());
    }
    Ok(report)
}

/// The device tree that QEMU would give to this machine.
fn dump_tree(run: &Run, board: &Board) -> Result<Vec<u8>> {
    // QEMU makes a file beside this one and renames it, so it must have a name.
    let folder = Folder::new()?;
    let dump = folder.path().join("qemu.dtb");
    let status = Command::new(qemu::PROGRAM)
        .arg("-M")
        .arg(joined(&[OsStr::new("virt,"), &option("dumpdtb", &dump)]))
        .args(["-cpu", &board.cpu])
        .args(["-smp", &board.harts.to_string(), "-m", &format!("{}M", board.memory >> 20)])
        .args(["-nic", "none", "-display", "none", "-seed", &run.seed().to_string()])
        .output()
        .map_err(|error| miette!("{} can't be started: {error}", qemu::PROGRAM))?;
    if !status.status.success() {
        let message = String::from_utf8_lossy(&status.stderr).trim().to_owned();
        return Err(miette!("QEMU gave no device tree: {message}"));
    }
    checkout::read(&dump)
}

/// Takes what the guest prints, until QEMU has ended.
fn watch(options: &Options, machine: &mut Qemu, report: &mut RunReport) -> Result<Outcome> {
    let guest = &mut report.guests[0];
    let problems = &mut report.problems;
    let (sender, events) = streams::channel();
    machine.listen(sender)?;
    let deadline = options.timeout.and_then(|limit| Instant::now().checked_add(limit));
    let mut lines = Lines::default();
    let mut early = None;
    loop {
        match events.recv_timeout(TICK) {
            // Every line is the guest's: there is nobody else who writes marks.
            Ok(Event::Serial(bytes)) => {
                machine.record(&bytes);
                lines.feed(&bytes, |line, part| match serial::meaning(Source::Guest(0), part, line) {
                    Meaning::Result(result) => guest.results.push(result),
                    Meaning::Damaged(why) | Meaning::Incomplete(why) => {
                        problems.push(format!("a line of {} can't be read: {why}", guest.name))
                    }
                    _ => {}
                });
            }
            Ok(Event::Message(line)) => machine.messages.push(line),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if machine.poll() {
            continue; // what is left in the pipes still comes
        }
        if options.stop.load(Ordering::Relaxed) {
            early = Some(Outcome::Interrupted);
        } else if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            early = Some(Outcome::TimeLimit);
        } else {
            continue;
        }
        machine.ask_to_end();
    }
    machine.finish();
    guest.judge();
    // Without a hypervisor nobody tells of a shutdown; QEMU's end is one.
    if guest.outcome == GuestOutcome::Running && !guest.results.is_empty() && early.is_none() {
        guest.outcome = GuestOutcome::Done;
    }
    Ok(early.unwrap_or(match guest.outcome {
        GuestOutcome::Done => Outcome::Good,
        GuestOutcome::ShutDown => Outcome::Unreported,
        GuestOutcome::NotStarted | GuestOutcome::Running | GuestOutcome::Restarting => Outcome::QemuDied,
        GuestOutcome::Failed | GuestOutcome::Faulted => Outcome::GuestFailed,
    }))
}
