//! Which QEMU is installed: asked within a time limit, since what answers may not be QEMU at all.
use super::qemu::{PROGRAM, die_with_parent, kill_group};
use miette::{Result, miette};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};
use std::{
    io::Read,
    os::unix::process::CommandExt,
    process::{ChildStdout, Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

/// Oldest QEMU that the project is tested with.
const MIN_MAJOR: u32 = 10;
/// How long it may take to tell its version. It takes 50 ms; on a computer that is very busy, seconds.
pub const TIME: Duration = Duration::from_secs(30);
/// Most bytes of an answer that are looked at.
const MOST: usize = 4096;
/// How often the wish to stop is looked at.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 40_000_000 };

/// The version of the installed QEMU, e.g. `10.0.2 (Debian 1:10.0.2+ds-2)`. Waits for it at most for `limit`, and no longer than
/// until `stop` is set.
pub fn version(limit: Duration, stop: &AtomicBool) -> Result<String> {
    let help = "install Debian's qemu-system-misc (qemu-system-riscv in Debian 13); `make setup` does it";
    let mut command = Command::new(PROGRAM);
    command
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0);
    die_with_parent(&mut command);
    let mut child =
        command.spawn().map_err(|error| miette!(help = help, "{PROGRAM} can't be started: {error}"))?;
    let answer = read_answer(&mut child.stdout.take().expect("piped"), limit, stop);
    kill_group(&child);
    let _ = child.wait();
    let Some(answer) = answer else {
        return Err(if stop.load(Ordering::Relaxed) {
            miette!("interrupted while {PROGRAM} was asked for its version")
        } else {
            let seconds = limit.as_secs_f64();
            miette!(help = help, "{PROGRAM} --version did not end within {seconds} s: is it QEMU?")
        });
    };
    let text = String::from_utf8_lossy(&answer);
    let version =
        text.lines().next().and_then(|line| line.split_once("version ")).map(|(_, version)| version.trim());
    let major = version.and_then(|version| version.split('.').next()?.parse::<u32>().ok());
    match (version, major) {
        (Some(version), Some(major)) if major >= MIN_MAJOR => Ok(version.to_owned()),
        (Some(version), Some(_)) => {
            Err(miette!(help = help, "{PROGRAM} has version {version}, but {MIN_MAJOR}.0 or later is needed"))
        }
        _ => {
            let start: String = text.lines().next().unwrap_or_default().chars().take(60).collect();
            Err(miette!(help = help, "{PROGRAM} --version said something unexpected: {start:?}"))
        }
    }
}

/// What comes through the pipe until it is closed, or until it is enough. `None` if that takes too long.
fn read_answer(pipe: &mut ChildStdout, limit: Duration, stop: &AtomicBool) -> Option<Vec<u8>> {
    let started = Instant::now();
    let mut answer = Vec::new();
    while answer.len() < MOST {
        if started.elapsed() >= limit || stop.load(Ordering::Relaxed) {
            return None;
        }
        match poll(&mut [PollFd::new(&*pipe, PollFlags::IN)], Some(&TICK)) {
            Ok(0) | Err(Errno::INTR) => continue,
            Ok(_) => {}
            Err(_) => break,
        }
        let mut buffer = [0; MOST];
        match pipe.read(&mut buffer) {
            Ok(len @ 1..) => answer.extend_from_slice(&buffer[..len]),
            Ok(0) => break,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    Some(answer)
}
